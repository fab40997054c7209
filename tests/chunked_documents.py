"""Documents for the tests of chunking: marked-up text with its blocks, by hand, and random ones of mixed scripts; and stand-ins for
tokenizer and model where their own answers are not what is tested."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from stemma.chunking.strategies import UNITS
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.parsing.document import Block, BlockKind, Page, ParsedDocument


class Words:
    """A tokenizer for which every word is a token."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\S+", text)]


def embed_letters(texts: Sequence[str]) -> np.ndarray:
    """Vectors of length 1 by how often each letter occurs (modulo 16): texts of other letters lie apart."""
    counts = np.array([np.bincount([ord(letter) % 16 for letter in text] or [0], minlength=16) for text in texts], dtype=np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def measured(strategy: str, text: str) -> int:
    """The text's length in the strategy's unit, by the real tokenizer."""
    return len(text) if UNITS[strategy] == "characters" else minilm_tokenizer().count([text])[0]


def plain(text: str) -> ParsedDocument:
    """A document without blocks and pages."""
    return ParsedDocument(text, parser="test", parser_version="1")


def composed(*parts: tuple[str, str] | tuple[str, str, int], separator: str = "\n\n") -> ParsedDocument:
    """A document of (kind, text) or ("heading", text, level) parts, each a block."""
    blocks: list[Block] = []
    text = ""
    for kind, words, *level in parts:
        text += separator if text else ""
        blocks.append(Block(kind, len(text), len(text) + len(words), level[0] if level else int(kind == "heading")))
        text += words
    return ParsedDocument(text, parser="test", parser_version="1", blocks=tuple(blocks))


def paged(*pages: str, separator: str = "\n\n") -> ParsedDocument:
    """A document whose pages hold the given texts."""
    spans: list[Page] = []
    start = 0
    for number, page in enumerate(pages, start=1):
        spans.append(Page(number, start, start + len(page)))
        start += len(page) + len(separator)
    return ParsedDocument(separator.join(pages), parser="test", parser_version="1", pages=tuple(spans))


_SCRIPTS = [
    "abc defg. Hij! kl, mn\n\nOp? ",
    "汉字，处理。文本！「好」",
    "これはテスト。カタカナﾊﾟ゙",
    "ภาษาไทย ไม่มีเว้นวรรค ",
    "النص العربي، جملة؟ ثانية۔ ",
    "हिन्दी वाक्य। क्षि त्र॥ ",
    "e\u0301o\u0308 a\u0327\u0301 \u0301",
    "👨\u200d👩\u200d👧\u200d👦👍🏽🇩🇪🇫🇷❤\ufe0f☎\ufe0e",
    "\u00a0\u200b\u200c\ufeff\u2060\u3164\u2003 \t\n\n",
    "각힣한국어 문장. ",
    "| a | b |\n| - | - |\n",
    "אבג דהו. \u05b0\u05b1",
    "a\r\nb\rc\x0c\td\x85e\x1c \r\n\r\n",
    "```py\nx = 1\n```\n\n# y\n",
    "verylongtoken" * 12 + "-",
]

_words = st.sampled_from(_SCRIPTS).flatmap(lambda script: st.text(alphabet=script, min_size=1, max_size=40))
_whole = st.sampled_from(_SCRIPTS)
_any = st.text(alphabet=st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"]), max_size=30)
texts = st.lists(st.one_of(_words, _whole, _any), max_size=12).map("".join)
"""Texts of mixed scripts without NUL and lone surrogates, as parsers return them; carriage returns too, though parsers leave none."""

_kinds: st.SearchStrategy[BlockKind] = st.sampled_from(["heading", "paragraph", "list", "table", "code", "formula", "quote"])


@st.composite
def documents(draw: st.DrawFn) -> ParsedDocument:
    """A random text; blocks of random kinds over random stretches of it, at any offset, with gaps; pages or none, likewise."""
    text = draw(texts)
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    blocks: list[Block] = []
    for start, end in zip(edges[::2], edges[1::2], strict=False):
        kind = draw(_kinds)
        blocks.append(Block(kind, start, end, draw(st.integers(1, 4)) if kind == "heading" else 0))
    turns = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pages = [Page(number, start, end) for number, (start, end) in enumerate(pairwise(turns), start=1)]
    return ParsedDocument(text, parser="test", parser_version="1", blocks=tuple(blocks), pages=tuple(pages))


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    """(size, overlap), small enough to cut the random texts many times."""
    size = draw(st.one_of(st.integers(1, 12), st.integers(13, 200)))
    return size, draw(st.integers(0, size - 1))
