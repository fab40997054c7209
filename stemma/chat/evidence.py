"""Evidence: the passages that an answer stands on, as it is shown and kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sql import load_queries
from stemma.retrieval.answer import Hit
from stemma.store.postgres import Connection


@dataclass(frozen=True)
class Evidence:
    """A passage of an answer."""

    hit: Hit
    rank: int
    """From 1, best first."""
    file_name: str
    file_created_at: datetime | None
    file_modified_at: datetime | None

    def snapshot(self) -> dict[str, Any]:
        """Everything that a reader is shown of it, as JSON: it is kept with the answer and never read from the corpus again."""
        hit = self.hit.model_dump(mode="json")
        return {
            **{name: hit[name] for name in _KEPT},
            "source": self.hit.source_path,
            "page": self.hit.page_start,
            "file_name": self.file_name,
            "file_created_at": _moment(self.file_created_at),
            "file_modified_at": _moment(self.file_modified_at),
            "trace": hit["trace"],
        }


_KEPT = (
    "chunk_id", "doc_id", "source_id", "publication_id", "workspace", "title", "file_type", "content", "context", "char_start", "char_end",
    "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "extraction", "score",
)  # fmt: skip


def evidence_of(connection: Connection, hits: Sequence[Hit]) -> list[Evidence]:
    """The hits with the clocks of their files; those of a version that was replaced since the search are not known any more."""
    found = connection.execute(load_queries("conversations")["file_clocks"], {"publication_ids": [hit.publication_id for hit in hits]})
    clocks = {publication_id: clock for publication_id, *clock in found.fetchall()}
    shown: list[Evidence] = []
    for rank, hit in enumerate(hits, start=1):
        name, created_at, modified_at = clocks.get(hit.publication_id, (hit.source_path.rpartition("/")[2], None, None))
        shown.append(Evidence(hit, rank, name, created_at, modified_at))
    return shown


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
