"""The registry of chunking strategies, and what may be asked of them."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

from stemma.chunking.docling_hybrid import docling_hybrid
from stemma.chunking.markdown_aware import markdown_aware
from stemma.chunking.page import page
from stemma.chunking.recursive_character import recursive_character
from stemma.chunking.semantic import Embed, semantic
from stemma.chunking.sentence import sentence
from stemma.chunking.spans import Strategy
from stemma.chunking.token_based import token_based
from stemma.chunking.tokenizer import Tokenizer
from stemma.errors import RequestError

Unit = Literal["characters", "tokens"]

UNITS: Mapping[str, Unit] = {
    "recursive_character": "characters",
    "markdown_aware": "characters",
    "sentence": "characters",
    "page": "characters",
    "token_based": "tokens",
    "docling_hybrid": "tokens",
    "semantic": "tokens",
}
"""Every strategy, and what its size and overlap count."""


class UnknownStrategy(RequestError):
    """No chunking strategy has this name."""

    code, remedy = "unknown_strategy", "Set CHUNKING_STRATEGY to one that is listed."


class InvalidChunkSize(RequestError):
    """A size and an overlap that no chunking can keep."""

    code, remedy = "invalid_chunk_size", "CHUNK_SIZE must be at least 1, CHUNK_OVERLAP at least 0 and smaller than CHUNK_SIZE."


def strategy_named(name: str, *, tokenizer: Tokenizer, embed: Embed | None = None) -> Strategy:
    """The strategy of that name, given what it works with; `semantic` alone needs `embed`.

    Raises UnknownStrategy, which lists the known ones, and ValueError for `semantic` without `embed`.
    """
    strategies: dict[str, Strategy] = {
        "recursive_character": recursive_character,
        "markdown_aware": markdown_aware,
        "sentence": sentence,
        "page": page,
        "token_based": partial(token_based, tokenizer=tokenizer),
        "docling_hybrid": partial(docling_hybrid, tokenizer=tokenizer),
    }
    if embed is not None:
        strategies["semantic"] = partial(semantic, tokenizer=tokenizer, embed=embed)
    if name not in UNITS:
        raise UnknownStrategy(f"{name!r} is not a chunking strategy; known: {', '.join(sorted(UNITS))}")
    if name not in strategies:
        raise ValueError(f"{name} chunking needs an embedder")
    return strategies[name]


def check_sizes(*, size: int, overlap: int) -> None:
    """Raises InvalidChunkSize unless 0 <= overlap < size."""
    if not 0 <= overlap < size:
        raise InvalidChunkSize(f"size {size} with overlap {overlap} is impossible")
