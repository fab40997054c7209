"""A bulk answer of 200 says nothing: every item of it is looked at."""

import json
from collections import Counter
from pathlib import Path

import pytest

from stemma.lexical.elasticsearch_bulk import CHARS_PER_REQUEST, ENTRIES_PER_REQUEST, TRIES, Entry, RequestTooLarge, write_entries
from stemma.lexical.errors import LexicalIndexUnavailable


class Server:
    """Answers with what each address meets, in turn; what is not named is stored."""

    def __init__(self, meets: dict[str, list[dict]] | None = None, *, largest: int = ENTRIES_PER_REQUEST) -> None:
        self.meets, self.largest = meets or {}, largest
        self.stored: Counter[str] = Counter()
        self.requests: list[list[str]] = []
        self.waits: list[float] = []

    def send(self, entries):
        if len(entries) > self.largest:
            raise RequestTooLarge(f"{len(entries)} entries are too many")
        self.requests.append([entry.address for entry in entries])
        return {"errors": True, "items": [{"index": {"_id": entry.address, **self._result(entry.address)}} for entry in entries]}

    def write(self, *entries: Entry) -> dict[str, str]:
        return write_entries(entries, send=self.send, wait=self.waits.append)

    def _result(self, address: str) -> dict:
        if self.meets.get(address):
            return self.meets[address].pop(0)
        self.stored[address] += 1
        return {"status": 201}


def entries(n: int, content: str = "x") -> list[Entry]:
    return [Entry(f"d::{number}", {"content": content}) for number in range(n)]


def failed(status: int, kind: str, reason: str = "x") -> dict:
    return {"status": status, "error": {"type": kind, "reason": reason}}


BUSY = failed(429, "es_rejected_execution_exception", "queue full")
BLOCKED = failed(403, "cluster_block_exception", "index [i] blocked by: [FORBIDDEN/8/index write (api)];")


def test_of_the_reported_answer_the_busy_item_is_sent_again_alone_and_the_refused_one_is_named(shared: Path):
    items = json.loads((shared / "cases" / "23-bulk-answer-with-errors" / "bulk_response.json").read_text("utf-8"))["items"]
    meets = {item["index"]["_id"]: [item["index"]] for item in items if item["index"]["status"] >= 300}
    server = Server(meets)
    refused = server.write(*(Entry(item["index"]["_id"], {"content": "x"}) for item in items))
    assert refused == {"d::40": "mapper_parsing_exception: x"}
    assert len(server.requests) == 2 and len(server.requests[1]) == 1
    assert len(server.stored) == len(items) - 1 and set(server.stored.values()) == {1}


def test_waits_grow_while_the_server_is_busy():
    server = Server({"d::0": [BUSY] * 3})
    assert server.write(*entries(2)) == {}
    assert server.waits == [0.5, 1.0, 2.0]


def test_a_server_that_stays_busy_ends_the_write():
    server = Server({"d::1": [BUSY] * 100})
    with pytest.raises(LexicalIndexUnavailable, match="queue full"):
        server.write(*entries(3))
    assert len(server.requests) == TRIES


def test_an_index_closed_to_writes_ends_the_write_at_once():
    server = Server({"d::1": [BLOCKED]})
    with pytest.raises(LexicalIndexUnavailable, match="closed to writes"):
        server.write(*entries(3))
    assert server.waits == []


def test_a_request_that_is_too_large_is_halved_until_it_fits():
    server = Server(largest=3)
    assert server.write(*entries(10)) == {}
    assert sorted(server.stored) == sorted(entry.address for entry in entries(10)) and set(server.stored.values()) == {1}


def test_an_entry_too_large_alone_is_refused_and_the_others_are_written():
    class Small(Server):
        def send(self, entries):
            if any(entry.n_chars > 10 for entry in entries):
                raise RequestTooLarge("too large")
            return super().send(entries)

    server = Small()
    assert server.write(Entry("d::0", {"content": "x"}), Entry("big", {"content": "x" * 11}), Entry("d::2", {"content": "x"})) == {
        "big": "too large"
    }
    assert set(server.stored) == {"d::0", "d::2"}


def test_requests_are_bounded_in_entries_and_in_characters():
    server = Server()
    server.write(*entries(ENTRIES_PER_REQUEST + 1), Entry("big", {"content": "x" * CHARS_PER_REQUEST}), Entry("last", {"content": "x"}))
    assert [len(request) for request in server.requests] == [ENTRIES_PER_REQUEST, 1, 1, 1]
