"""The search structure over vectors: made again from the vectors alone, with other parameters, after a build that was cut off."""

from collections.abc import Iterator

import pytest
from searchable_corpus import SearchableCorpus, open_corpus

from stemma.lexical.index import Scope
from stemma.retrieval.semantic import semantic_ranking
from stemma.store.hnsw import Hnsw, InvalidHnsw, build_hnsw, hnsw_of


@pytest.fixture
def corpus(database_url, tmp_path) -> Iterator[SearchableCorpus]:
    for corpus in open_corpus(database_url, tmp_path):
        for n in range(30):
            corpus.publish(f"{n}.md", *(f"word{n} thing{part} needle" for part in range(4)))
        corpus.connection.autocommit = True
        yield corpus


def answers(corpus) -> list[tuple]:
    vector = corpus.embedder.embed_query("word7 needle")
    found = semantic_ranking(corpus.connection, vector, index=corpus.embedding_index, depth=10, scope=Scope(), exact_scan_max_chunks=0)
    return found.rows()


def test_the_vectors_are_kept_apart_so_that_it_is_rebuilt_without_a_model(corpus):
    before, embedder = answers(corpus), corpus.embedder
    corpus.embedder = None
    table = corpus.embedding_index.vector_table
    assert build_hnsw(corpus.connection, table, again=True)
    corpus.embedder = embedder
    assert answers(corpus) == before and len(before) == 10


def test_other_parameters_are_built_beside_and_exchanged(corpus):
    table = corpus.embedding_index.vector_table
    assert hnsw_of(corpus.connection, table).hnsw == Hnsw(16, 64)
    assert build_hnsw(corpus.connection, table, Hnsw(8, 32))
    built = hnsw_of(corpus.connection, table)
    assert (built.hnsw, built.whole) == (Hnsw(8, 32), True)
    names = corpus.connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s ORDER BY 1", [table]).fetchall()
    assert names == [(f"{table}_hnsw",), (f"{table}_pk",)]


def test_what_is_as_it_is_wanted_is_not_built_again(corpus):
    assert not build_hnsw(corpus.connection, corpus.embedding_index.vector_table)


def test_what_a_cut_off_build_left_is_cleared_away(corpus):
    table = corpus.embedding_index.vector_table
    corpus.connection.execute(f"CREATE INDEX {table}_hnsw_next ON {table} USING hnsw (embedding vector_cosine_ops) WITH (m = 4)")
    corpus.connection.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{table}_hnsw_next'::regclass")
    assert build_hnsw(corpus.connection, table, Hnsw(8, 32))
    assert hnsw_of(corpus.connection, table).hnsw == Hnsw(8, 32)


def test_a_finished_build_that_was_not_exchanged_is_taken(corpus):
    table = corpus.embedding_index.vector_table
    corpus.connection.execute(
        f"CREATE INDEX {table}_hnsw_next ON {table} USING hnsw (embedding vector_cosine_ops) WITH (m = 8, ef_construction = 32)"
    )
    (made,) = corpus.connection.execute(f"SELECT '{table}_hnsw_next'::regclass::oid::bigint").fetchone()
    build_hnsw(corpus.connection, table, Hnsw(8, 32))
    assert corpus.connection.execute(f"SELECT '{table}_hnsw'::regclass::oid::bigint").fetchone() == (made,)


@pytest.mark.parametrize(("m", "ef_construction"), [(1, 64), (101, 1_000), (16, 31), (16, 1_001)])
def test_parameters_that_pgvector_refuses_are_refused_before_anything_is_done(m, ef_construction):
    with pytest.raises(InvalidHnsw):
        Hnsw(m, ef_construction)
