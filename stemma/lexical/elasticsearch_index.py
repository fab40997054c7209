"""The keyword index in an Elasticsearch server (8 or 9), for any number of readers and writers at a time."""

import contextlib
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from stemma.failpoints import reach
from stemma.lexical.elasticsearch_bulk import Entry, RequestTooLarge, write_entries
from stemma.lexical.elasticsearch_server import explained
from stemma.lexical.elasticsearch_terms import FORMAT, document, index_settings, mapping, query_of
from stemma.lexical.errors import ElasticsearchRefused, EntriesRefused, LexicalIndexDamaged, LexicalIndexUnavailable
from stemma.lexical.index import ENTRY_SCHEMA, HIT_SCHEMA, Scope

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

WINDOW = 10_000
"""Hits that a server gives in one answer at most, and the depth down to which it counts ranks itself."""
PUBLICATIONS_PER_ANSWER = 10_000
PUBLICATIONS_PER_REMOVAL = 500
KEEP_OPEN = "1m"
CONFLICTS_MET = 5

# Best first; equal scores in the order of the chunks, whatever order the server holds them in.
_ORDER: list[dict[str, Any]] = [{"_score": "desc"}, {"chunk_id": "asc"}, {"publication_id": "asc"}]


class ElasticsearchIndex:
    """A `LexicalIndex` that is one index of the server, made at the first write.

    Args:
        client: shared; whoever made it closes it.
        name: of the index.
        address: of the server, as messages name it.
        language: whose stems and stop words the index is made with.
    """

    def __init__(self, client: "Elasticsearch", name: str, *, address: str, language: str = "english") -> None:
        self.name = name
        self._client = client
        self._address = address
        self._language = language
        self._is_made = False

    def add(self, entries: pl.DataFrame) -> None:
        """Write entries (ENTRY_SCHEMA), and make them visible together.

        Raises:
            EntriesRefused: the server does not take some of them; the others are written.
            LexicalIndexUnavailable, LexicalIndexDamaged: some may be written.
        """
        rows = entries.match_to_schema(ENTRY_SCHEMA)
        if rows.is_empty():
            return
        addressed = [Entry(f"{row['chunk_id']}@{row['publication_id']}", document(row)) for row in rows.iter_rows(named=True)]
        with explained(self._address):
            self._make()
            refused = write_entries(addressed, send=self._send)
            reach("keywords.before_commit")
            self._client.indices.refresh(index=self.name)
        if refused:
            raise EntriesRefused({int(address.rpartition("@")[2]): reason for address, reason in refused.items()})

    def remove(self, publication_ids: Sequence[int]) -> None:
        """Remove every entry of these publications. Raises LexicalIndexUnavailable; then some may be removed."""
        with explained(self._address), self._none_if_missing():
            if publication_ids:
                self._client.indices.refresh(index=self.name)  # what a killed writer left behind is not seen before
            for start in range(0, len(publication_ids), PUBLICATIONS_PER_REMOVAL):
                self._remove(list(publication_ids[start : start + PUBLICATIONS_PER_REMOVAL]))

    def search(self, query: str, *, k: int, scope: Scope, offset: int = 0, operators: bool = False) -> pl.DataFrame:
        """The hits (HIT_SCHEMA) ranked offset+1 to offset+k; none for a query without a word that counts."""
        wanted = query_of(query, scope, operators=operators)
        hits: list[dict[str, Any]] = []
        if wanted is not None and k > 0:
            with explained(self._address), self._none_if_missing():
                hits = self._ranked(wanted, k=k, offset=offset)
        addresses = [hit["_id"].rpartition("@") for hit in hits]
        scores = [
            (chunk_id, int(publication_id), hit["sort"][0]) for (chunk_id, _, publication_id), hit in zip(addresses, hits, strict=True)
        ]
        return pl.DataFrame(scores, schema=HIT_SCHEMA, orient="row")

    def publications(self) -> dict[int, int]:
        """publication_id -> number of entries, of everything in the index."""
        counts: dict[int, int] = {}
        by_id = {"terms": {"field": "publication_id", "size": PUBLICATIONS_PER_ANSWER, "order": {"_key": "asc"}}}
        with explained(self._address), self._none_if_missing():
            self._check_format()
            while True:
                later: dict[str, Any] = {"range": {"publication_id": {"gt": max(counts)}}} if counts else {"match_all": {}}
                found = self._search(size=0, query=later, aggs={"by_id": by_id})["aggregations"]["by_id"]["buckets"]
                counts |= {int(bucket["key"]): int(bucket["doc_count"]) for bucket in found}
                if len(found) < PUBLICATIONS_PER_ANSWER:
                    break
        return counts

    def drop(self) -> None:
        """Remove the index from the server; no error if it is not there."""
        with explained(self._address):
            self._client.indices.delete(index=self.name, ignore_unavailable=True)
        self._is_made = False

    def show_as(self, alias: str) -> None:
        """Let the alias name this index and no other, in one step, for whoever else reads the server.

        Raises:
            ElasticsearchRefused: the alias is the name of an index.
        """
        from elasticsearch import BadRequestError, NotFoundError

        with explained(self._address), self._none_if_missing():
            try:
                named = set(self._client.indices.get_alias(name=alias))
            except NotFoundError:
                named = set[str]()
            if named == {self.name}:
                return
            moves = [{"remove": {"index": other, "alias": alias}} for other in sorted(named - {self.name})]
            try:
                self._client.indices.update_aliases(actions=[*moves, {"add": {"index": self.name, "alias": alias}}])
            except BadRequestError as error:
                raise ElasticsearchRefused(f"{self._address} cannot name an alias {alias}: {error.message}") from error

    def close(self) -> None:
        """Nothing is held: the connections are the client's."""

    def _make(self) -> None:
        """Make the index if it is missing; check that it is one of ours if not."""
        from elasticsearch import BadRequestError

        if self._is_made:
            return
        try:
            self._check_format()
        except _Missing:
            try:
                self._client.indices.create(index=self.name, settings=index_settings(self._language), mappings=mapping(self._language))
            except BadRequestError as error:
                if error.message != "resource_already_exists_exception":  # another process made it in between
                    raise
        self._is_made = True

    def _check_format(self) -> None:
        """Raises LexicalIndexDamaged, and _Missing where there is no such index."""
        from elasticsearch import NotFoundError

        try:
            found = self._client.indices.get_mapping(index=self.name)[self.name]["mappings"]
        except NotFoundError as error:
            raise _Missing from error
        if found.get("_meta", {}).get("format") != FORMAT:
            raise LexicalIndexDamaged(f"the index {self.name} was not made by this release")

    def _send(self, entries: Sequence[Entry]) -> dict[str, Any]:
        from elasticsearch import ApiError

        operations = [part for entry in entries for part in ({"index": {"_id": entry.address}}, entry.document)]
        try:
            # A whole request that meets a busy server is sent again by the client.
            return self._client.bulk(index=self.name, operations=operations, refresh=False).body
        except ApiError as error:
            if error.status_code == 413:
                raise RequestTooLarge(
                    f"the server takes no request of this size ({sum(entry.n_chars for entry in entries):,} characters)"
                ) from error
            raise

    def _remove(self, publication_ids: list[int]) -> None:
        for _ in range(CONFLICTS_MET):
            done = self._client.delete_by_query(
                index=self.name, query={"terms": {"publication_id": publication_ids}}, conflicts="proceed", refresh=True
            )
            if done.get("failures") or done.get("timed_out"):
                raise LexicalIndexUnavailable(f"{self._address} did not remove every entry: {str(done.get('failures'))[:200]}")
            if not done.get("version_conflicts"):
                return
        raise LexicalIndexUnavailable(f"entries in {self.name} were written while they were removed, {CONFLICTS_MET} times")

    def _ranked(self, query: dict[str, Any], *, k: int, offset: int) -> list[dict[str, Any]]:
        """The hits ranked offset+1 to offset+k: in one answer, or walked from the top in one state of the index."""
        if offset + k <= WINDOW:
            return self._search(query=query, from_=offset, size=k, sort=_ORDER)["hits"]["hits"]
        opened = self._client.open_point_in_time(index=self.name, keep_alive=KEEP_OPEN)["id"]
        try:
            hits: list[dict[str, Any]] = []
            passed, after = 0, list[Any]()
            while passed < offset + k:
                at: dict[str, Any] = {"search_after": after} if after else {}
                at |= {"pit": {"id": opened, "keep_alive": KEEP_OPEN}}
                answer = self._search(query=query, size=min(WINDOW, offset + k - passed), sort=_ORDER, **at)
                page, opened = answer["hits"]["hits"], answer.get("pit_id", opened)
                if not page:
                    break
                hits += page[max(offset - passed, 0) :]
                passed, after = passed + len(page), page[-1]["sort"]
            return hits
        finally:
            self._client.close_point_in_time(id=opened)

    def _search(self, **request: Any) -> dict[str, Any]:
        """One answer, whole: what a part of the server could not answer is an error, not a shorter answer."""
        whole = {"source": False, "track_total_hits": False, "allow_partial_search_results": False}
        index: dict[str, Any] = {} if "pit" in request else {"index": self.name}
        options: dict[str, Any] = {**request, **index, **whole}
        return self._client.search(**options).body

    @contextlib.contextmanager
    def _none_if_missing(self) -> Generator[None]:
        """An index that was never written is empty."""
        from elasticsearch import NotFoundError

        try:
            yield
        except _Missing:
            return
        except NotFoundError as error:
            if error.message != "index_not_found_exception":
                raise


class _Missing(Exception):
    """There is no such index."""
