"""Many entries in few requests: what of a request failed, what of it is sent again, and what the server refuses for good."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stemma.lexical.elasticsearch_server import is_blocked, reason_of
from stemma.lexical.errors import LexicalIndexUnavailable

ENTRIES_PER_REQUEST = 1_000
CHARS_PER_REQUEST = 2_000_000
"""Of both texts, as they are and in their neutral reading: below 10 MB in any script; servers take 100 MB, what stands before them may take less."""
TRIES = 6
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0


@dataclass(frozen=True)
class Entry:
    """A document under the address that makes writing it twice the same as writing it once."""

    address: str
    document: dict[str, Any]

    @property
    def n_chars(self) -> int:
        """Characters of its texts."""
        return sum(len(value) for value in self.document.values() if isinstance(value, str))


class RequestTooLarge(Exception):
    """The server, or something before it, does not take a request of this size."""


Send = Callable[[Sequence[Entry]], dict[str, Any]]
"""Sends one bulk request and returns the answer. Raises RequestTooLarge, LexicalIndexUnavailable."""


def write_entries(entries: Sequence[Entry], *, send: Send, wait: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Write all entries; an answer of 200 says nothing about any of them, so each is looked at.

    What the server was too busy for is sent again, alone, with growing waits. What it does not take for good does not hold up the rest.

    Args:
        send: sends one request.
        wait: waits so many seconds.
    Returns:
        address -> reason, of those refused for good.
    Raises:
        LexicalIndexUnavailable: the server stayed too busy, or the index is closed to writes.
    """
    refused: dict[str, str] = {}
    portions = list(_portions(entries))[::-1]
    while portions:
        portion = portions.pop()
        try:
            refused |= _write_portion(portion, send=send, wait=wait)
        except RequestTooLarge as error:
            if len(portion) == 1:
                refused[portion[0].address] = str(error)
            else:
                middle = len(portion) // 2
                portions += [portion[middle:], portion[:middle]]
    return refused


def _write_portion(portion: Sequence[Entry], *, send: Send, wait: Callable[[float], None]) -> dict[str, str]:
    refused: dict[str, str] = {}
    busy: dict[str, str] = {}
    for attempt in range(TRIES):
        if attempt:
            wait(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))
        busy = {}
        for result in send(portion)["items"]:
            (item,) = result.values()
            if 200 <= item["status"] < 300:
                continue
            reason = reason_of(item)
            if item["status"] in (429, 502, 503, 504):
                busy[item["_id"]] = reason
            elif is_blocked(reason):
                raise LexicalIndexUnavailable(f"the keyword index is closed to writes: {reason}")
            else:
                refused[item["_id"]] = reason
        if not busy:
            return refused
        portion = [entry for entry in portion if entry.address in busy]
    raise LexicalIndexUnavailable(f"{len(busy)} entries were not taken in {TRIES} tries: {next(iter(busy.values()))}")


def _portions(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries in portions that one request holds; one larger than that goes alone."""
    portion: list[Entry] = []
    n_chars = 0
    for entry in entries:
        if portion and (len(portion) == ENTRIES_PER_REQUEST or n_chars + entry.n_chars > CHARS_PER_REQUEST):
            yield portion
            portion, n_chars = [], 0
        portion.append(entry)
        n_chars += entry.n_chars
    if portion:
        yield portion
