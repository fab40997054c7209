"""Source code: the file's own characters, in blocks that begin where definitions do; no language is special."""

import re
from collections.abc import Iterator

from stemma.parsing.document import Block
from stemma.parsing.draft import Draft, Source
from stemma.parsing.plain import encoding_metadata, read_text

MAX_BLOCK_CHARS = 2_000  # a longer block is divided further in, such as a class between its methods
_MAX_DEPTH = 4
# A line after a blank one that closes or continues what stands before it begins nothing.
_CONTINUES = re.compile(r"[ \t]*(?:[)\]}]|(?:else|elif|except|finally|catch|end|then|fi|done|esac)\b)", re.IGNORECASE)
_TAB = " " * 4


def parse_code(source: Source) -> Draft:
    """The text as it stands; a block begins at every line without indent that follows a blank line.

    So a function stays whole with its comment, decorators and body, whatever the language. A block over MAX_BLOCK_CHARS is
    divided in the same way at its next smaller indent.
    """
    decoded = read_text(source)
    blocks = tuple(Block("code", start, end) for start, end in _units(decoded.text, 0, len(decoded.text), 0))
    return Draft(decoded.text, blocks, empty=not blocks, guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def _units(text: str, start: int, end: int, depth: int) -> Iterator[tuple[int, int]]:
    """Stretches of a text between blank lines followed by its smallest indent, without the blanks around them."""
    starts = [position for position in _openings(text, start, end) if position > start]
    for unit_start, unit_end in zip([start, *starts], [*starts, end], strict=True):
        bare_end = unit_start + len(text[unit_start:unit_end].rstrip())
        bare_start = _first_line(text, unit_start, bare_end)
        if bare_start >= bare_end:
            continue
        if bare_end - bare_start > MAX_BLOCK_CHARS and depth < _MAX_DEPTH and (body := text.find("\n", bare_start, bare_end)) >= 0:
            # The first line opens the block, so the indent that counts is that of the lines below it.
            pieces = list(_units(text, body + 1, bare_end, depth + 1))
            yield bare_start, pieces[0][1] if pieces else bare_end
            yield from pieces[1:]
        else:
            yield bare_start, bare_end


def _openings(text: str, start: int, end: int) -> list[int]:
    """Starts of the lines that follow a blank line and have the smallest indent of all such lines."""
    found: list[tuple[int, int]] = []
    after_blank = False
    for line in re.finditer(r"[^\n]*(?:\n|\Z)", text[start:end]):
        content = line[0]
        if not content.strip():
            after_blank = after_blank or bool(content)
            continue
        if after_blank and not _CONTINUES.match(content):
            indented = content.replace("\t", _TAB)
            found.append((len(indented) - len(indented.lstrip()), start + line.start()))
        after_blank = False
    smallest = min((indent for indent, _ in found), default=0)
    return [position for indent, position in found if indent == smallest]


def _first_line(text: str, start: int, end: int) -> int:
    """Where the first line that is not blank begins."""
    while start < end and (line_end := text.find("\n", start, end)) >= 0 and not text[start:line_end].strip():
        start = line_end + 1
    return start
