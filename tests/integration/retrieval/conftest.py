"""A corpus, and a search over it."""

from collections.abc import Iterator

import pytest
from searchable_corpus import SearchableCorpus, open_corpus

from stemma.lexical.index import Scope
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.passages import Shape
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.search import search
from stemma.store.postgres import open_pool

PLAIN = Shape()


@pytest.fixture
def corpus(database_url, tmp_path) -> Iterator[SearchableCorpus]:
    yield from open_corpus(database_url, tmp_path)


@pytest.fixture
def ask(corpus, database_url):
    """search(query, …) over the corpus: keyword arguments `method`, `k`, `shape`, those of Scope, and `lexical`, `embedder`, `settings`."""
    pool = open_pool(database_url)
    keywords = OpenKeywordIndexes(corpus.settings)

    def run(query, *, method="hybrid", k=10, operators=False, shape=PLAIN, lexical=None, embedder=None, settings=None, **scope):
        return search(
            SearchRequest(query, method=method, k=k, scope=Scope(**scope), operators=operators, shape=shape),
            pool=pool, lexical=lexical or keywords, embedder=embedder or corpus.embedder, settings=settings or corpus.settings,
        )  # fmt: skip

    yield run
    pool.close()
    keywords.close()
