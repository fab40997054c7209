"""The engine of each keyword index: a folder in the home, or an index of the Elasticsearch server."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING

from stemma.lexical.elasticsearch_index import ElasticsearchIndex
from stemma.lexical.elasticsearch_server import address_of, connect
from stemma.lexical.index import LexicalIndex
from stemma.lexical.tantivy_index import TantivyIndex
from stemma.settings import Settings
from stemma.store.sparse_indexes import SparseIndex

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch


class KeywordEngines:
    """Opens the engines of one process, which share its connections to the server.

    Args:
        settings: name the home and the server.
        exclusive: what an embedded index is written under; a server keeps its writers apart itself.
    """

    def __init__(self, settings: Settings, *, exclusive: Callable[[], AbstractContextManager[None]]) -> None:
        self._settings = settings
        self._exclusive = exclusive
        self._connecting = Lock()
        self._client: Elasticsearch | None = None

    def open(self, index: SparseIndex) -> LexicalIndex:
        """The engine of an index; the caller closes it. Raises ElasticsearchNotConfigured or ElasticsearchRefused."""
        if index.backend == "tantivy":
            return TantivyIndex(index.folder(self._settings.home), exclusive=self._exclusive, language=index.language)
        return self._on_server(index)

    def can_open(self, index: SparseIndex) -> bool:
        """Whether the settings name what the index lies in."""
        return index.backend == "tantivy" or self._settings.elasticsearch_url is not None

    def remove(self, index: SparseIndex) -> None:
        """Remove what the engine keeps of an index. Raises LexicalIndexUnavailable, and as `open`."""
        if index.backend == "elasticsearch":
            self._on_server(index).drop()
        elif (folder := index.folder(self._settings.home)).exists():
            shutil.rmtree(folder)

    def show(self, index: SparseIndex) -> None:
        """Let the alias that other programs read name this index, where it lies on the server. Raises as `remove`."""
        if index.backend == "elasticsearch":
            self._on_server(index).show_as(self._settings.elasticsearch_alias)

    def close(self) -> None:
        """Close the connections; a later call opens them again."""
        with self._connecting:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _on_server(self, index: SparseIndex) -> ElasticsearchIndex:
        with self._connecting:
            if self._client is None:
                self._client = connect(self._settings)
            return ElasticsearchIndex(self._client, index.name, address=address_of(self._settings), language=index.language)
