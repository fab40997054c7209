"""The registry of chunking strategies, and what may be asked of them."""

from collections.abc import Mapping

from stemma.chunking.markdown_aware import markdown_aware
from stemma.chunking.recursive_character import recursive_character
from stemma.chunking.spans import Strategy
from stemma.errors import RequestError

STRATEGIES: Mapping[str, Strategy] = {
    "recursive_character": recursive_character,
    "markdown_aware": markdown_aware,
}


class UnknownStrategy(RequestError):
    """No chunking strategy has this name."""

    code, remedy = "unknown_strategy", "Set CHUNKING_STRATEGY to one that is listed."


class InvalidChunkSize(RequestError):
    """A size and an overlap that no chunking can keep."""

    code, remedy = "invalid_chunk_size", "CHUNK_SIZE must be at least 1, CHUNK_OVERLAP at least 0 and smaller than CHUNK_SIZE."


def strategy_named(name: str) -> Strategy:
    """The strategy of that name. Raises UnknownStrategy, which lists the known ones."""
    if name not in STRATEGIES:
        raise UnknownStrategy(f"{name!r} is not a chunking strategy; known: {', '.join(sorted(STRATEGIES))}")
    return STRATEGIES[name]


def check_sizes(*, size: int, overlap: int) -> None:
    """Raises InvalidChunkSize unless 0 <= overlap < size."""
    if not 0 <= overlap < size:
        raise InvalidChunkSize(f"size {size} with overlap {overlap} is impossible")
