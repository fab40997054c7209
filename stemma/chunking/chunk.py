"""From a document to its chunks: runs a strategy and derives everything else from the offsets it returns."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from stemma.chunking.frame import CHUNK_SCHEMA
from stemma.chunking.headings import HeadingTrails
from stemma.chunking.semantic import Embed
from stemma.chunking.spans import Span
from stemma.chunking.strategies import check_sizes, strategy_named
from stemma.chunking.table_headers import table_headers
from stemma.chunking.tokenizer import Tokenizer
from stemma.parsing.document import Extraction, ParsedDocument


def chunk_document(
    document: ParsedDocument, *, strategy: str, size: int, overlap: int, tokenizer: Tokenizer, embed: Embed | None = None
) -> pl.DataFrame:
    """The chunks of a document (CHUNK_SCHEMA), in order; no row for a document in which nothing is visible.

    Lines and pages are those of the whole chunk, overlap included. The section path is the trail of headings over the text that
    a chunk adds, where that text begins.

    Args:
        size, overlap: in the strategy's unit (`UNITS`).
        embed: for `semantic` alone.
    Raises:
        UnknownStrategy: no strategy has this name.
        InvalidChunkSize: not 0 <= overlap < size.
    """
    chosen = strategy_named(strategy, tokenizer=tokenizer, embed=embed)
    check_sizes(size=size, overlap=overlap)
    spans = chosen(document, size=size, overlap=overlap)
    starts = np.array([span.char_start for span in spans], dtype=np.int64)
    ends = np.array([span.char_end for span in spans], dtype=np.int64)
    contents = [document.text[span.char_start : span.char_end] for span in spans]
    pages = [_pages(document, span) for span in spans]
    return pl.DataFrame(
        {
            "chunk_index": np.arange(len(spans), dtype=np.uint32),
            "char_start": starts,
            "char_end": ends,
            "start_line": _lines(document.text, starts),
            "end_line": _lines(document.text, ends - 1),
            "page_start": [numbers[0] if numbers else None for numbers in pages],
            "page_end": [numbers[-1] if numbers else None for numbers in pages],
            "section_path": _section_paths(document, spans),
            "chunk_type": [span.chunk_type for span in spans],
            "table_header": table_headers(document, [span.char_start for span in spans]),
            "content": contents,
            "n_tokens": tokenizer.count(contents) if contents else [],
            "text_hash": [hashlib.sha256(content.encode()).hexdigest() for content in contents],
            "extraction": [_extraction(document, numbers) for numbers in pages],
        },
        schema=CHUNK_SCHEMA,
    )


def _lines(text: str, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The line of each position, from 1."""
    # One pass over the code points: counting line ends per chunk would be quadratic.
    line_ends = np.flatnonzero(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4") == ord("\n"))
    return 1 + np.searchsorted(line_ends, positions, side="left")


def _pages(document: ParsedDocument, span: Span) -> tuple[int, ...]:
    """Numbers of the pages that have a part of the span; none for formats without pages."""
    pages = document.pages
    first = bisect_right(pages, span.char_start, key=lambda page: page.char_end)
    stop = bisect_left(pages, span.char_end, lo=first, key=lambda page: page.char_start)
    return tuple(page.number for page in pages[first:stop] if page.char_start < page.char_end)


def _section_paths(document: ParsedDocument, spans: Sequence[Span]) -> list[list[str]]:
    trails = HeadingTrails(document)
    covered = 0
    paths: list[list[str]] = []
    for span in spans:
        paths.append(trails.over(max(covered, span.char_start), span.char_end))
        covered = span.char_end
    return paths


def _extraction(document: ParsedDocument, pages: tuple[int, ...]) -> Extraction:
    """How the chunk's text was won: of a document read in part from pixels, only chunks on those pages say so."""
    if document.extraction == "ocr" or not document.ocr_pages or not pages:
        return document.extraction
    return "ocr_fallback" if not set(pages).isdisjoint(document.ocr_pages) else "text"
