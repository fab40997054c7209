"""The keyword indexes that searches read, each opened once per process."""

from contextlib import nullcontext
from pathlib import Path
from threading import Lock

from stemma.errors import ConfigurationError
from stemma.lexical.index import LexicalIndex
from stemma.lexical.tantivy_index import TantivyIndex
from stemma.store.sparse_indexes import SparseIndex

KEPT = 2
"""The active index and the one before it, which searches that began before the switch read."""


class UnknownBackend(ConfigurationError):
    """The active keyword index belongs to an engine that this release cannot read."""

    code, remedy = "unknown_backend", "Use the release that built the index, or rebuild it."


class OpenKeywordIndexes:
    """Called with the row of a keyword index, it gives the open index. For reading only: its indexes take no writer's lock."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open: dict[str, LexicalIndex] = {}
        self._opening = Lock()

    def __call__(self, active: SparseIndex) -> LexicalIndex:
        """Raises UnknownBackend."""
        with self._opening:
            if active.name not in self._open:
                if active.backend != "tantivy":
                    raise UnknownBackend(f"the active keyword index is one of {active.backend}")
                self._open[active.name] = TantivyIndex(active.folder(self._home), exclusive=nullcontext)
                for name in list(self._open)[:-KEPT]:  # a search that began before a switch still has its own
                    self._open.pop(name).close()
            return self._open[active.name]

    def close(self) -> None:
        """Close all that is open; a later call opens again."""
        with self._opening:
            for index in self._open.values():
                index.close()
            self._open.clear()
