"""The embedded keyword index: BM25 (k1 1.2, b 0.75) by tantivy, in one folder, for any number of readers and one writer at a time."""

import shutil
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from stemma.failpoints import reach
from stemma.lexical.errors import LexicalIndexDamaged, LexicalIndexUnavailable
from stemma.lexical.index import ENTRY_SCHEMA, HIT_SCHEMA, Scope
from stemma.lexical.tantivy_terms import analyzers, document, query_of, schema

if TYPE_CHECKING:
    import tantivy

WRITER_BYTES = 50_000_000
LOCK_TIMEOUT_S = 30.0

# Two equal texts may get scores that differ in the last bits of a float, since segments add terms up in different orders.
_SAME_SCORE = 1e-6

# What tantivy's messages hold when files are missing, cut short or of another release, and when the system refused.
_DAMAGED = ("schema does not match", "Data corrupted", "FileDoesNotExist", "InvalidData", "UnexpectedEof", "Incompatible")
_UNAVAILABLE = ("os error", "Os {", "worker thread", "Path exists but is not a directory")


class TantivyIndex:
    """A `LexicalIndex` in a folder, made at the first write.

    Args:
        folder: holds the index and nothing else.
        exclusive: a lock that every process that may write here shares; held during each write.
        lock_timeout_s: how long a write waits for tantivy's own lock, which a writer outside `exclusive` may hold.
        language: whose stems and stop words the index is made with; an index of another language counts as damaged.
    """

    def __init__(
        self,
        folder: Path,
        *,
        exclusive: Callable[[], AbstractContextManager[None]],
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        language: str = "english",
    ) -> None:
        self.folder = folder
        self._exclusive = exclusive
        self._lock_timeout_s = lock_timeout_s
        self._language = language
        self._opening = Lock()
        self._index: tantivy.Index | None = None

    def add(self, entries: pl.DataFrame) -> None:
        """Write entries (ENTRY_SCHEMA) in one commit. Raises LexicalIndexUnavailable or LexicalIndexDamaged; then nothing was written."""
        rows = entries.match_to_schema(ENTRY_SCHEMA)
        if rows.is_empty():
            return
        with self._writer() as writer:
            for row in rows.iter_rows(named=True):
                entry = f"{row['chunk_id']}@{row['publication_id']}"
                writer.delete_documents_by_term("entry", entry)
                writer.add_document(document(entry, row))

    def remove(self, publication_ids: Sequence[int]) -> None:
        """Remove every entry of these publications in one commit. Raises as `add`."""
        if not publication_ids or not (self._exists() or self._segments()):
            return
        with self._writer() as writer:
            for publication_id in publication_ids:
                writer.delete_documents_by_term("publication", str(publication_id))

    def search(self, query: str, *, k: int, scope: Scope, offset: int = 0, operators: bool = False) -> pl.DataFrame:
        """The hits (HIT_SCHEMA) ranked offset+1 to offset+k; none for a query without a word that counts."""
        wanted = query_of(query, scope, language=self._language, operators=operators)
        if wanted is None or k <= 0:
            return HIT_SCHEMA.to_frame()
        with _explained(self.folder):
            searcher = self._searcher()
            ranked = _ranked(searcher, wanted, k=k, offset=offset) if searcher else []
        return pl.DataFrame(ranked, schema=HIT_SCHEMA, orient="row")

    def publications(self) -> dict[int, int]:
        """publication_id -> number of entries, of everything in the index."""
        with _explained(self.folder):
            if (searcher := self._searcher()) is None:
                return {}
            import tantivy

            # Without a query the counts include removed entries that are not merged away yet.
            counts = searcher.terms_with_prefix("publication", "", tantivy.Query.all_query())
        return {int(publication_id): n_entries for publication_id, n_entries in counts}

    def recreate(self) -> None:
        """Start again with an empty index, whatever the folder holds: the first step of rebuilding a damaged one."""
        with self._exclusive(), _explained(self.folder):
            self.close()
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self._open()

    def close(self) -> None:
        """Forget the open index; the next call opens it again."""
        with self._opening:
            self._index = None

    def _exists(self) -> bool:
        return (self.folder / "meta.json").exists()

    def _segments(self) -> bool:
        return any(self.folder.glob("*.store"))

    def _open(self) -> "tantivy.Index":
        """The open index, made if missing (only under `exclusive`)."""
        import tantivy

        with self._opening:
            if self._index is None:
                if not self._exists() and self._segments():
                    raise LexicalIndexDamaged(f"{self.folder.name} holds segments without meta.json")  # tantivy would begin anew
                self.folder.mkdir(parents=True, exist_ok=True)
                index = tantivy.Index(schema(self._language), str(self.folder))
                for name, analyzer in analyzers(self._language).items():
                    index.register_tokenizer(name, analyzer)
                self._index = index
            return self._index

    def _searcher(self) -> "tantivy.Searcher | None":
        """What is committed now; None before the first write."""
        if self._index is None and not self._exists() and not self._segments():
            return None
        index = self._open()
        try:
            index.reload()  # 0.2 ms
        except ValueError:
            self.close()  # the folder was replaced or removed: the next call opens what is there then
            raise
        return index.searcher()

    @contextmanager
    def _writer(self) -> Generator["tantivy.IndexWriter"]:
        """A writer that commits at the end; after an exception nothing of it is visible. Its memory and lock last no longer."""
        with self._exclusive(), _explained(self.folder):
            writer = self._locked_writer(self._open())
            try:
                yield writer
                reach("keywords.before_commit")
                writer.commit()
            finally:
                writer.wait_merging_threads()

    def _locked_writer(self, index: "tantivy.Index") -> "tantivy.IndexWriter":
        deadline = time.monotonic() + self._lock_timeout_s
        while True:
            try:
                return index.writer(WRITER_BYTES, 1)
            except ValueError as error:
                if "LockBusy" not in str(error):
                    self.close()  # the folder was replaced under the open index
                    raise
                if time.monotonic() > deadline:
                    raise LexicalIndexUnavailable(f"{self.folder.name} is being written by another process") from error
            time.sleep(0.05)


def _ranked(searcher: "tantivy.Searcher", query: "tantivy.Query", *, k: int, offset: int) -> list[tuple[str, int, float]]:
    """(chunk_id, publication_id, score) of the ranks offset+1 to offset+k, ties by chunk_id across the whole result."""
    n_entries = max(searcher.num_docs, 1)
    limit = min(offset + k + 32, n_entries)
    while True:
        hits = searcher.search(query, limit, count=False).hits
        last = min(offset + k, len(hits)) - 1
        # The ranks asked for are decided once a hit with a lower score than the last of them was seen.
        if len(hits) < limit or limit == n_entries or not _tied(hits[last][0], hits[-1][0]):
            break
        limit = min(limit * 2, n_entries)
    scores: list[float] = []
    for score, _ in hits:
        scores.append(scores[-1] if scores and _tied(scores[-1], score) else score)
    if last < offset:
        return []
    first_tied = scores.index(scores[offset])
    tied = [(score, address) for score, (_, address) in zip(scores, hits, strict=True) if scores[last] <= score <= scores[offset]]
    entries = [(*_addressed(searcher.doc(address)["entry"][0]), score) for score, address in tied]
    entries.sort(key=lambda entry: (-entry[2], entry[0], entry[1]))
    return entries[offset - first_tied : offset - first_tied + k]


def _tied(score: float, lower: float) -> bool:
    return score - lower <= _SAME_SCORE * score


def _addressed(entry: str) -> tuple[str, int]:
    chunk_id, _, publication_id = entry.rpartition("@")
    return chunk_id, int(publication_id)


@contextmanager
def _explained(folder: Path) -> Generator[None]:
    """Turn what tantivy says (always a ValueError) about its files into the errors of this part."""
    try:
        yield
    except OSError as error:
        raise LexicalIndexUnavailable(f"{folder.name}: {error.strerror or error}") from error
    except ValueError as error:
        message = f"{folder.name}: {str(error).replace(str(folder), folder.name)[:200]}"
        if any(sign in message for sign in _DAMAGED):
            raise LexicalIndexDamaged(message) from error
        if any(sign in message for sign in _UNAVAILABLE):
            raise LexicalIndexUnavailable(message) from error
        if "An IO error occurred" in message:  # no error of the system, so it is the bytes that make no sense
            raise LexicalIndexDamaged(message) from error
        raise
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise LexicalIndexDamaged(f"{folder.name}: {error}") from error  # an assertion in tantivy about what it read
