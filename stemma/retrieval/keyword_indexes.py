"""The keyword indexes that searches read, each opened once per process."""

from contextlib import nullcontext
from threading import Lock

from stemma.lexical.index import LexicalIndex
from stemma.settings import Settings
from stemma.store.keyword_engines import KeywordEngines
from stemma.store.sparse_indexes import SparseIndex

KEPT = 2
"""The active index and the one before it, which searches that began before the switch read."""


class OpenKeywordIndexes:
    """Called with the row of a keyword index, it gives the open index. For reading only: its indexes take no writer's lock."""

    def __init__(self, settings: Settings) -> None:
        self._engines = KeywordEngines(settings, exclusive=nullcontext)
        self._open: dict[str, LexicalIndex] = {}
        self._opening = Lock()

    def __call__(self, active: SparseIndex) -> LexicalIndex:
        """Raises ElasticsearchNotConfigured or ElasticsearchRefused."""
        with self._opening:
            if active.name not in self._open:
                self._open[active.name] = self._engines.open(active)
                for name in list(self._open)[:-KEPT]:  # a search that began before a switch still has its own
                    self._open.pop(name).close()
            return self._open[active.name]

    def close(self) -> None:
        """Close all that is open; a later call opens again."""
        with self._opening:
            for index in self._open.values():
                index.close()
            self._open.clear()
            self._engines.close()
