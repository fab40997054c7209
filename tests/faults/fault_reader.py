"""A reader that queries in a loop while everything else changes and dies, and judges every answer."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Protocol

from fault_library import NEEDLE, Library
from psycopg import sql

from stemma.embedding.embedder import Embedder, EmbeddingSpec
from stemma.errors import Unavailable
from stemma.lexical.tantivy_index import TantivyIndex
from stemma.retrieval.answer import METHODS, Hit, SearchAnswer
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.search import search_by_active_model
from stemma.retrieval.snapshot import snapshot
from stemma.settings import Settings
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Connection, Pool
from stemma.store.sparse_indexes import active_sparse_index

K = 1_000  # more than there is: every answer names every live chunk

ASK_EVERY_S = 0.2
"""Often enough to meet every state; oftener only takes the processor from what is tested."""


class Asks(Protocol):
    """A way to search: None while nobody answers."""

    def __call__(self, method: str) -> SearchAnswer | None: ...


@dataclass
class Judge:
    """Knows what the library ever held, and remembers what was answered; one per reader, whose answers come one after the other."""

    library: Library
    n_answers: int = 0
    n_away: int = 0
    violations: list[str] = field(default_factory=list)
    _newest: dict[str, int] = field(default_factory=dict)
    """source_id -> the newest publication seen."""
    _seen: dict[str, str] = field(default_factory=dict)
    """source path -> source_id, of what was found and has to be found from then on."""

    def judge(self, answer: SearchAnswer) -> None:
        """Every document complete and of one version; none older than one seen before; none missing that nobody took away."""
        self.n_answers += 1
        hits: dict[str, list[Hit]] = defaultdict(list)
        for hit in answer.hits:
            hits[hit.source_id].append(hit)
        for source_id, of_source in hits.items():
            self._judge_document(source_id, of_source, answer)
        found = {of_source[0].source_path for of_source in hits.values()}
        for path in self._seen.keys() - found - self.library.disturbed:
            self._say(answer, f"{path} is not found, though nobody took it away")
        self._seen |= {of_source[0].source_path: source_id for source_id, of_source in hits.items()}

    def _judge_document(self, source_id: str, hits: list[Hit], answer: SearchAnswer) -> None:
        path = hits[0].source_path
        versions = {(hit.publication_id, hit.doc_id, hit.source_path) for hit in hits}
        if len(versions) > 1:
            self._say(answer, f"{path} is answered in several versions: {sorted(versions)}")
            return
        [(publication_id, doc_id, _)] = versions
        if publication_id < self._newest.get(source_id, 0):
            self._say(answer, f"{path}: publication {publication_id} after {self._newest[source_id]} was seen")
        self._newest[source_id] = max(publication_id, self._newest.get(source_id, 0))
        text = next((content.decode() for content in list(self.library.versions.get(path, ())) if doc_id == _doc_id(path, content)), None)
        if text is None:
            self._say(answer, f"{path}: {doc_id} is no version that the file ever had")
            return
        covered = bytearray(len(text))
        for hit in hits:
            if text[hit.char_start : hit.char_end] != hit.content:
                self._say(answer, f"{path}: {hit.chunk_id} is not the text between its offsets")
            covered[hit.char_start : hit.char_end] = b"\1" * (hit.char_end - hit.char_start)
        if lost := [text[i] for i in range(len(text)) if not covered[i] and not text[i].isspace()]:
            self._say(answer, f"{path}: {len(lost)} characters of publication {publication_id} are in no hit, {''.join(lost)[:40]!r}")
        one_armed = [hit.chunk_id for hit in hits if hit.trace and None in (hit.trace.semantic_rank, hit.trace.bm25_rank)]
        if answer.method == "hybrid" and one_armed and not answer.degraded and path not in self.library.disturbed:
            self._say(answer, f"{path}: only one arm knows {one_armed}")

    def _say(self, answer: SearchAnswer, sentence: str) -> None:
        self.violations.append(f"{answer.method}: {sentence}")


def _doc_id(path: str, content: bytes) -> str:
    return hashlib.sha256(f"{path}:{hashlib.sha256(content).hexdigest()}".encode()).hexdigest()[:16]


class Reader(Thread):
    """Asks by each method in turn, as fast as it is answered, until it is stopped."""

    def __init__(self, library: Library, ask: Asks, *, look: Callable[[], Sequence[str]] | None = None) -> None:
        super().__init__(daemon=True)
        self.judge = Judge(library)
        self._ask, self._look = ask, look
        self._ending = Event()
        self.n_looks = 0

    def run(self) -> None:
        turn = 0
        while not self._ending.wait(ASK_EVERY_S):
            turn += 1
            try:
                answer = self._ask(METHODS[turn % len(METHODS)])
                if self._look is not None:
                    self.judge.violations += self._look()
                    self.n_looks += 1
            except Unavailable:
                answer = None
            except Exception as error:  # a reader that dies would judge nothing
                self.judge.violations.append(f"{type(error).__name__}: {error}")
                continue
            if answer is None:
                self.judge.n_away += 1
            else:
                self.judge.judge(answer)

    def stop(self) -> Judge:
        """End the loop; returns the judge."""
        self._ending.set()
        self.join()
        return self.judge


class DirectQueries:
    """Searches through the library of the query service, and looks at the stores within one snapshot."""

    def __init__(self, library: Library, settings: Settings, pool: Pool, embedder_of: Callable[[EmbeddingSpec], Embedder]) -> None:
        self._library, self._settings, self._pool, self._embedder_of = library, settings, pool, embedder_of
        self._keywords = OpenKeywordIndexes(settings)

    def __call__(self, method: str) -> SearchAnswer:
        return search_by_active_model(
            SearchRequest(NEEDLE, method=method, k=K),
            pool=self._pool, lexical=self._keywords, embedder_of=self._embedder_of, settings=self._settings,
        )  # fmt: skip

    def look(self) -> list[str]:
        """What one snapshot shows of documents that are in scope: counts, spans, vectors, coverage and entries of one version."""
        with snapshot(self._pool, timeout_s=self._settings.query_timeout_s) as connection:
            said = [f"{promise}: {row}" for promise, query in _IN_FLUX.items() for row in connection.execute(query).fetchall()]
            said += _without_vectors(connection)
            live = connection.execute(
                "SELECT d.source_path, d.publication_id, d.n_chunks FROM documents AS d JOIN sources AS s USING (source_id) "
                "WHERE d.n_chunks > 0 AND s.deletion_intent IS NULL ORDER BY 1"
            ).fetchall()
            sparse = active_sparse_index(connection)
            if sparse is not None and live:
                engine = TantivyIndex(sparse.folder(self._settings.home), exclusive=nullcontext)
                held = engine.publications()
                engine.close()
                said += [
                    f"{path}: {held.get(publication_id, 0)} keyword entries of {n_chunks}"
                    for path, publication_id, n_chunks in live
                    if held.get(publication_id) != n_chunks and path not in self._library.disturbed
                ]
        return said


_IN_FLUX = {
    "a chunk is not its span": """
        SELECT c.chunk_id FROM chunks AS c JOIN documents AS d USING (publication_id)
         WHERE c.content <> substr(d.text, c.char_start + 1, c.char_end - c.char_start)""",
    "a document has another number of chunks": """
        SELECT d.source_path FROM documents AS d
         WHERE d.n_chunks <> (SELECT count(*) FROM chunks AS c WHERE c.publication_id = d.publication_id)""",
    "a document is not the live publication of its source": """
        SELECT d.source_path FROM documents AS d LEFT JOIN publications AS p USING (publication_id)
         WHERE p.state IS DISTINCT FROM 'live' OR p.source_id <> d.source_id OR p.doc_id <> d.doc_id OR p.n_chunks <> d.n_chunks""",
    "coverage is not the number of chunks": """
        SELECT d.source_path FROM documents AS d CROSS JOIN corpus_state AS s JOIN sources USING (source_id)
          LEFT JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = s.active_sparse_index
         WHERE d.n_chunks > 0 AND c.n_entries IS DISTINCT FROM d.n_chunks AND sources.deletion_intent IS NULL""",
}


def _without_vectors(connection: Connection) -> list[str]:
    active = active_embedding_index(connection)
    if active is None:
        return []
    rows = connection.execute(
        sql.SQL(
            "SELECT c.chunk_id FROM chunks AS c LEFT JOIN {} AS v USING (publication_id, chunk_index) WHERE v.embedding IS NULL"
        ).format(sql.Identifier(active.vector_table))
    ).fetchall()
    return [f"{chunk_id} has no vector in the active index" for (chunk_id,) in rows]
