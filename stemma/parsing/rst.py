"""reStructuredText: the source with its headings bare and its tables as Markdown; directives are not executed, nothing is included."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from stemma.parsing.cleaning import stated_title
from stemma.parsing.document import BlockKind
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.plain import encoding_metadata, read_text
from stemma.parsing.tables import markdown_table

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")
_DIRECTIVE = re.compile(r"\.\. +([\w:.+-]+)::[ \t]*(.*)$")
_COMMENT = re.compile(r"\.\.(?: +(?!\[|_|\|)|$)")  # footnotes, targets and substitutions are none
_ITEM = re.compile(r"(?:[-*+•‣]|#\.|\(?\d{1,4}[.)]|\(?[a-zA-Z][.)])[ \t]+\S")
_GRID = re.compile(r"\+[-=+]+\+[ \t]*$")
_SIMPLE = re.compile(r"=+(?: +=+)+[ \t]*$")
_CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "highlight", "parsed-literal", "prompt", "doctest"})
_FIGURE_DIRECTIVES = frozenset({"image", "figure"})

_Row = dict[int, list[str]]
"""Column, from 0 -> what each line of the row has of it."""


def parse_rst(source: Source) -> Draft:
    """Headings by their adornments, levels in the order of first use; paragraphs, lists and directives as they are written.

    Literal and code blocks are code, formulas are formulas, grid and simple tables become Markdown tables, comments are left out.
    """
    decoded = read_text(source)
    reader = _Reader(source, [line.expandtabs(8) for line in decoded.text.split("\n")])
    reader.read()
    return reader.builder.finish(
        title=reader.title, empty=not decoded.text.strip(), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded)
    )


class _Reader:
    def __init__(self, source: Source, lines: Sequence[str]) -> None:
        self.builder = DraftBuilder(source)
        self.title: str | None = None
        self._lines = lines
        self._at = 0
        self._in_list = False
        # Where simple tables may end: below a border that a blank line or the end of the file follows.
        blank = [i for i in range(1, len(lines) + 1) if i == len(lines) or not lines[i].strip()]
        self._table_ends = [i for i in blank if _SIMPLE.match(lines[i - 1])]
        self._styles: list[str] = []  # adornments in the order of first use

    def read(self) -> None:
        """Append every block."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._in_list = self._in_list and (not line.strip() or line[:1] == " " or bool(_ITEM.match(line)))
            if not line.strip():
                self._at += 1
            elif heading := self._heading():
                title, style, n_lines = heading
                self._at += n_lines
                if style not in self._styles:
                    self._styles.append(style)
                self.builder.add(title, "heading", level=min(self._styles.index(style) + 1, 6))
                self.title = self.title or stated_title(title)
            elif directive := _DIRECTIVE.match(line):
                self._directive(directive[1], directive[2])
            elif _COMMENT.match(line):
                self._at += 1
                self._indented()
            elif _GRID.match(line):
                self.builder.add(markdown_table(_grid_rows(self._paragraph())), "table")
            elif _SIMPLE.match(line) and (rows := self._simple_table()) is not None:
                self.builder.add(markdown_table(rows), "table")
            elif line.startswith(">>> "):
                self.builder.add("\n".join(self._paragraph()), "code")
            elif _ADORNMENT.fullmatch(line) and len(line.strip()) >= 4:
                self._at += 1  # a transition
            else:
                self._text()

    def _heading(self) -> tuple[str, str, int] | None:
        """Title, style and number of lines of a heading that begins here."""
        here, below, after = (self._lines[self._at + i] if self._at + i < len(self._lines) else "" for i in range(3))
        if _ADORNMENT.fullmatch(here) and below.strip() and here.strip() == after.strip() and len(below.strip()) <= len(here.strip()):
            return below.strip(), here[0] * 2, 3
        is_title = here[:1].strip() and not _ADORNMENT.fullmatch(here)
        if is_title and _ADORNMENT.fullmatch(below) and len(below.strip()) >= min(4, len(here.strip())):
            return here.strip(), below[0], 2
        return None

    def _directive(self, name: str, argument: str) -> None:
        start = self._at
        self._at += 1
        content = self._indented()
        options = [line for line in content if re.match(r"\s*:[\w-]+:", line)]
        if name in _CODE_DIRECTIVES:
            body = content[len(options) :] if content[: len(options)] == options else content
            self.builder.add("\n".join(_dedented(body)), "code")
        elif name == "math":
            self.builder.add("\n".join([argument, *_dedented(content)]).strip(), "formula")
        elif name in _FIGURE_DIRECTIVES:
            alt = next((line.split(":", 2)[2].strip() for line in options if line.strip().startswith(":alt:")), "")
            self.builder.add_figure(alt or None)
            stated = frozenset(options)
            self.builder.add("\n".join(line.strip() for line in content if line not in stated), "caption")
        else:
            self.builder.add("\n".join(self._lines[start : self._at]))

    def _text(self) -> None:
        """A paragraph, quote or list, and the literal block that its `::` announces."""
        first = self._lines[self._at]
        lines = self._paragraph()
        indented = first[:1] == " "
        kind: BlockKind = "list" if _ITEM.match(first.strip()) or (indented and self._in_list) else "quote" if indented else "paragraph"
        announces = lines[-1].rstrip().endswith("::")
        if announces:
            lines[-1] = lines[-1].rstrip()[:-1] if lines[-1].strip() != "::" else ""
        self.builder.add("\n".join(lines), kind, continues=kind == "list")
        self._in_list = kind == "list"
        if announces:
            indent = len(lines[0]) - len(lines[0].lstrip()) if lines[0].strip() else 0
            self.builder.add("\n".join(_dedented(self._indented(indent))), "code")

    def _paragraph(self) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at].strip():
            self._at += 1
        return list(self._lines[start : self._at])

    def _indented(self, indent: int = 0) -> list[str]:
        """The lines further in than `indent`, blank ones between them included."""
        start = self._at
        while self._at < len(self._lines) and (not self._lines[self._at].strip() or self._lines[self._at][: indent + 1].isspace()):
            self._at += 1
        return list(self._lines[start : self._at])

    def _simple_table(self) -> list[list[str]] | None:
        """The rows of a simple table, whose columns lie below its `===`; None when no border closes it."""
        border = self._lines[self._at]
        following = bisect_left(self._table_ends, self._at + 3)
        if following == len(self._table_ends):
            return None
        end = self._table_ends[following]
        starts = [match.start() for match in re.finditer(r"=+", border)]
        spans = list(zip(starts, [*starts[1:], None], strict=True))
        rows: list[_Row] = []
        for line in self._lines[self._at + 1 : end]:
            if _SIMPLE.match(line) or re.fullmatch(r"[- ]*", line):
                continue
            cells = [line[start:stop] for start, stop in spans[: bisect_left(starts, len(line))]]
            if not (rows and not cells[0].strip()):
                rows.append({})
            for column, cell in enumerate(cells):
                rows[-1].setdefault(column, []).append(cell)
        self._at = end
        return _joined(rows)


def _grid_rows(lines: Sequence[str]) -> list[list[str]]:
    """The cells between the bars of a grid table; a cell over several columns has its text in the first."""
    edges = [i for i, character in enumerate(lines[0]) if character == "+"]
    ends = edges[1:]
    rows: list[_Row] = [{}]
    for line in lines[1:]:
        if line.startswith("+"):
            rows.append({})
            continue
        start = 0
        for column, edge in enumerate(ends):
            if line[edge : edge + 1] in ("|", "+", ""):
                rows[-1].setdefault(start, []).append(line[edges[start] + 1 : edge])
                start = column + 1
            if edge >= len(line):
                break
    return _joined(rows)


def _joined(rows: Sequence[_Row]) -> list[list[str]]:
    """Rows of whole cells, each up to its last one."""
    return [[" ".join(row.get(column, ())) for column in range(max(row, default=-1) + 1)] for row in rows]


def _dedented(lines: Sequence[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:].rstrip() for line in lines]
