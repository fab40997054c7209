"""What every chunk frame promises, checked before it is written: a breach is a fault in a strategy, never in a document."""

from collections.abc import Iterable, Iterator

import polars as pl

from stemma.chunking.frame import CHUNK_SCHEMA
from stemma.chunking.graphemes import next_visible


def broken_promises(text: str, chunks: pl.DataFrame) -> list[str]:
    """What is wrong with the chunks (CHUNK_SCHEMA) of a text, one sentence each; empty when all promises are kept.

    Exact offsets, strictly increasing starts, dense indexes, no blank chunk, and every visible character in a chunk.
    """
    if chunks.schema != CHUNK_SCHEMA:
        return [f"the frame's columns are {chunks.schema}"]
    return list(broken_spans(text, chunks.select("chunk_index", "char_start", "char_end", "content").iter_rows()))


def broken_spans(text: str, chunks: Iterable[tuple[int, int, int, str]]) -> Iterator[str]:
    """The same of chunks given as (chunk_index, char_start, char_end, content), in order."""
    covered, last_start = 0, -1
    for position, (chunk_index, char_start, char_end, content) in enumerate(chunks):
        if chunk_index != position:
            yield f"chunk {position} has the index {chunk_index}"
        if text[char_start:char_end] != content:
            yield f"chunk {position} is not the text between {char_start} and {char_end}"
        if char_start <= last_start:
            yield f"chunk {position} does not begin after the one before it"
        if next_visible(content, 0, len(content)) is None:
            yield f"chunk {position} is blank"
        if next_visible(text, covered, char_start) is not None:
            yield f"text between {covered} and {char_start} is in no chunk"
        covered, last_start = max(covered, char_end), char_start
    if next_visible(text, covered, len(text)) is not None:
        yield f"text from {covered} on is in no chunk"
