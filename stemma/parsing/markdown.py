"""Markdown: the canonical text is the source itself; markdown-it only says where its blocks lie."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from stemma.parsing.cleaning import stated_title
from stemma.parsing.document import Asset, Block, BlockKind
from stemma.parsing.draft import Draft, Source
from stemma.parsing.plain import encoding_metadata, read_text

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "blockquote_open": "quote",
    "fence": "code",
    "code_block": "code",
    "html_block": "paragraph",
}
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?\n)?(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.+)$", re.MULTILINE | re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\]]{0,1000})\]\([^)]{0,2000}\)")
_CODE = re.compile(r"(`{1,3})(.+?)\1")
_STARS = re.compile(r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1")
_UNDERSCORES = re.compile(r"(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)")  # inside a word they are its own


def parse_markdown(source: Source) -> Draft:
    """The source text with its blocks. Headings inside lists and quotes are text, as are `#` lines in code.

    YAML front matter stays in the text as a block of its own; its `title` is the document's, else the first heading of
    level 1.
    """
    decoded = read_text(source)
    text = decoded.text
    front = _FRONT_MATTER.match(text)
    body_start = front.end() if front else 0
    blocks = ([Block("paragraph", 0, len(front[0].rstrip()))] if front else []) + markdown_blocks(text, body_start)
    assets = tuple(Asset("table", block.char_start, block.char_end) for block in blocks if block.kind == "table")
    return Draft(
        text,
        tuple(blocks),
        assets=assets,
        title=_title(text, blocks, front[1] or "" if front else ""),
        empty=not text.strip(),
        guessed_encoding=decoded.guessed,
        metadata=encoding_metadata(decoded),
    )


def markdown_blocks(text: str, body_start: int = 0) -> list[Block]:
    """Where the blocks of a Markdown text lie, from `body_start` on."""
    body = text[body_start:]
    line_starts = [body_start]
    for line in body.split("\n"):
        line_starts.append(line_starts[-1] + len(line) + 1)
    blocks: list[Block] = []
    for token in _parser().parse(body):
        kind = _KINDS.get(token.type)
        if kind is None or token.level or token.map is None:
            continue
        start, end = line_starts[token.map[0]], min(line_starts[token.map[1]], len(text))
        stretch = text[start:end]
        if kind != "code":
            start += len(stretch) - len(stretch.lstrip())
        end = max(start, end - (len(stretch) - len(stretch.rstrip())))
        if start < end:
            blocks.append(Block(kind, start, end, _level(token)))
    return blocks


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # Offsets need blocks alone; inline parsing would be most of the time and its pathological cases.
    parser.core.ruler.disable(["inline", "text_join"])
    return parser


def _level(token: Token) -> int:
    return int(token.tag[1:]) if token.type == "heading_open" else 0


def _title(text: str, blocks: list[Block], front_matter: str) -> str | None:
    stated = _FRONT_TITLE.search(front_matter)
    if stated and (title := stated_title(stated[1].strip().strip("\"'"))):
        return title
    first = next((text[block.char_start : block.char_end] for block in blocks if block.kind == "heading" and block.level == 1), "")
    return stated_title(heading_text(first))


def heading_text(heading: str) -> str:
    """A heading's words without its own marks (`#`, an underline) and those of emphasis, code and links."""
    words = re.sub(r"^#{1,6}\s*|\s+#+\s*$|\n[=-]+\s*$", "", heading.strip()[:1_000])
    spoken: list[str] = []
    end = 0
    for code in _CODE.finditer(words):  # what is code has no marks
        spoken += [_without_marks(words[end : code.start()]), code[2]]
        end = code.end()
    return "".join([*spoken, _without_marks(words[end:])])


def _without_marks(words: str) -> str:
    return _UNDERSCORES.sub(r"\2", _STARS.sub(r"\2", _LINK.sub(r"\1", words)))
