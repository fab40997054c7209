"""LaTeX: prose as it reads, with headings, lists and tables; formulas and code as they are written. No file is included."""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.document import BlockKind
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.plain import encoding_metadata, read_text
from stemma.parsing.tables import markdown_table

_CODE = "verbatim|Verbatim|lstlisting|minted|alltt"
_MATH = "equation|align|alignat|gather|multline|eqnarray|displaymath|flalign|math"
_TABLE = "tabular|tabularx|tabulary|longtable|tabu"
_LIST = "itemize|enumerate|description"
_SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_TOKEN = re.compile(
    rf"\\begin\{{(?:(?P<code>{_CODE})|(?P<math>{_MATH})|(?P<table>{_TABLE}))\*?\}}|(?P<display>\\\[|(?<!\\)\$\$)"
    rf"|\\(?P<edge>begin|end)\{{(?P<list>{_LIST})\}}|\\item\b[ \t]*(?:\[(?P<label>[^\]]{{0,200}})\])?"
    rf"|\\(?P<section>{'|'.join(_SECTIONS)})\*?[ \t]*(?:\[[^\]]{{0,500}}\])?(?=\{{)|\\caption\*?[ \t]*(?:\[[^\]]{{0,500}}\])?(?=\{{)"
    r"|(?P<break>\n[ \t]*\n\s*)|(?P<comment>(?<!\\)%[^\n]*(?:\n[ \t]*|\Z))"
)
_REFERENCES = ("cite", "citet", "citep", "citeauthor", "ref", "eqref", "pageref", "autoref", "cref", "Cref")
_DISPLAY_ENDS = {"\\[": "\\]", "$$": "$$"}
_PREAMBLE = re.compile(r".*?\\begin\{document\}", re.DOTALL)
_RULES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot)\b|\\(?:cline|cmidrule)(?:\([^)]{0,100}\))?\{[^}]{0,100}\}"
)
_MULTICOLUMN = re.compile(r"\\multicolumn\{(\d{1,2})\}\{[^}]{0,500}\}")
# Arguments that lay out the text, and marks without words of their own. What is bounded is looked through again for every opening.
_LAYOUT = re.compile(r"\\(?:label|vspace|hspace|includegraphics|input|include|bibliographystyle|bibliography|setlength|pagestyle)\*?(?:\[[^\]]{0,500}\])?(?:\{[^}]{0,500}\})+|\\(?:centering|noindent|maketitle|tableofcontents|newpage|clearpage|raggedright|small|footnotesize|large|bfseries|itshape)\b|\\(?:begin|end)\{[a-zA-Z*]+\}(?:\[[^\]]{0,100}\])?")  # fmt: skip


def parse_latex(source: Source) -> Draft:
    """The body of a document, or the whole of a part that has no `\\begin{document}`.

    Accents and symbols are characters, marks of emphasis go, the text of a footnote stands in the paragraph; formulas keep
    their source, between dollars where they stand in a line. Comments, labels and layout are left out.
    """
    decoded = read_text(source)
    text = decoded.text
    preamble = _PREAMBLE.match(text)
    body = text[preamble.end() : _end(text)] if preamble else text
    builder = DraftBuilder(source)
    _Reader(builder, body).read()
    stated = {name: _argument_of(text, name) for name in ("title", "author")}
    return builder.finish(
        title=stated_title(stated["title"]),
        empty=not text.strip(),
        guessed_encoding=decoded.guessed,
        metadata={"author": stated["author"], **encoding_metadata(decoded)},
    )


class Closings:
    """Where what was opened is closed. What is closed nowhere is looked for once, so that a text full of openings is read in linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._absent: set[str] = set()

    def after(self, position: int, closing: str) -> tuple[int, int] | None:
        """Start and end of the next `closing`; an environment's is given without its end, which is `}` or `*}`."""
        start = position
        while closing not in self._absent:
            start = self._text.find(closing, start)
            if start < 0:
                self._absent.add(closing)
                break
            end = start + len(closing)
            if not closing.startswith("\\end"):
                return start, end
            end += self._text.startswith("*", end)
            if self._text.startswith("}", end):
                return start, end + 1
            start = end
        return None


class _Reader:
    def __init__(self, builder: DraftBuilder, text: str) -> None:
        self._builder = builder
        self._text = text
        self._pending: list[str] = []
        self._lists: list[tuple[str, int]] = []  # open environments and how many items each has had
        self._marker = ""
        self._closings = Closings(text)
        used = [name for name in _SECTIONS if re.search(rf"\\{name}\*?\s*[\[{{]", text)]
        self._levels = {name: min(level, 6) for level, name in enumerate(used, 1)}

    def read(self) -> None:
        """Append every block."""
        position = 0
        while found := _TOKEN.search(self._text, position):
            self._pending.append(self._text[position : found.start()])
            position = self._token(found)
        self._pending.append(self._text[position:])
        self._flush()

    def _token(self, found: re.Match[str]) -> int:
        """Take one token; returns where the text goes on."""
        source = found[0]
        if whole := found["code"] or found["math"] or found["table"] or found["display"]:
            return self._whole(found, whole)
        if found["comment"] is not None:
            return found.end() - (1 if source.endswith("\n") and self._text[found.end() : found.end() + 1] == "\n" else 0)
        self._flush()
        if found["edge"] == "begin":
            self._lists.append((found["list"], 0))
        elif found["edge"] == "end":
            self._lists = self._lists[:-1]
        elif source.startswith("\\item"):
            self._item(found["label"])
        elif found["section"] or source.startswith("\\caption"):
            argument, end = _argument(self._text, found.end())
            kind: BlockKind = "heading" if found["section"] else "caption"
            self._builder.add(_spoken(argument), kind, level=self._levels[found["section"]] if found["section"] else 0)
            return end
        return found.end()

    def _whole(self, found: re.Match[str], name: str) -> int:
        """Take an environment that is one block, or its opening alone as text where nothing closes it; returns where the text goes on."""
        closing = self._closings.after(found.end(), _DISPLAY_ENDS.get(name, f"\\end{{{name}"))
        if closing is None:
            self._pending.append(found[0])
            return found.end()
        body, end = self._text[found.end() : closing[0]], closing[1]
        self._flush()
        if found["code"]:
            self._builder.add(re.sub(r"^(?:\[[^\]]*\]|\{[^}]*\})+", "", body), "code")
        elif found["table"]:
            self._builder.add(markdown_table(_rows(body)), "table")
        else:
            self._builder.add(self._text[found.start() : end], "formula")
        return end

    def _item(self, label: str | None) -> None:
        name, number = self._lists.pop() if self._lists else ("itemize", 0)
        self._lists.append((name, number + 1))
        mark = f"{_spoken(label)}: " if label else f"{number + 1}. " if name == "enumerate" else "- "
        self._marker = "  " * min(len(self._lists) - 1, 9) + mark

    def _flush(self) -> None:
        text = _spoken("".join(self._pending))
        self._pending.clear()
        if text and self._lists:
            self._builder.add(self._marker + text, "list", continues=True)
            self._marker = "  " * min(len(self._lists), 9)
        else:
            self._builder.add(text)


def _end(text: str) -> int:
    end = text.rfind("\\end{document}")
    return end if end >= 0 else len(text)


def _argument_of(text: str, command: str) -> str | None:
    found = re.search(rf"\\{command}\s*(?=\{{)", text)
    return _spoken(_argument(text, found.end())[0]) if found else None


def _argument(text: str, start: int) -> tuple[str, int]:
    """What stands between the brace at `start` and the one that closes it, and where it ends; 5,000 characters at most."""
    depth = 0
    for found in re.finditer(r"\\.|[{}]", text[start : start + 5_000], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0 and found[0] == "}":
            return text[start + 1 : start + found.start()], start + found.end()
    line_end = text.find("\n", start)
    return text[start + 1 : line_end if line_end >= 0 else len(text)], line_end if line_end >= 0 else len(text)


def _rows(body: str) -> Iterator[list[str]]:
    body = re.sub(r"^\s*(?:\[[^\]]*\]|\{(?:[^{}]|\{[^{}]*\})*\})+", "", body)  # the columns' layout
    for row in re.split(r"\\\\(?:\[[^\]]{0,100}\])?|\\tabularnewline\b", _RULES.sub("", re.sub(r"(?<!\\)%[^\n]*(?:\n|\Z)", "", body))):
        cells: list[str] = []
        for cell in re.split(r"(?<!\\)&", row):
            merged = _MULTICOLUMN.search(cell)
            cells.append(_spoken(_MULTICOLUMN.sub("", cell)))
            cells += [""] * (min(int(merged[1]), 50) - 1 if merged else 0)
        yield cells


def _spoken(source: str) -> str:
    """A stretch of LaTeX as a reader reads it, on one line."""
    source = _LAYOUT.sub(" ", source)
    if not re.search(r"[\\{}$~`'-]", source):
        return clean_line(source)
    return clean_line(_converter().latex_to_text(source))


@lru_cache(maxsize=1)
def _converter() -> Any:
    latex2text: Any = import_module("pylatexenc.latex2text")
    context = latex2text.get_default_latex_context_db()
    macro = latex2text.MacroTextSpec
    context.add_context_category(
        "stemma",
        prepend=True,
        macros=[
            macro("footnote", simplify_repl=_last_argument(" ({})")),
            *(macro(name, simplify_repl=_last_argument("[{}]")) for name in _REFERENCES),
            macro("href", simplify_repl=_last_argument("{}")),
        ],
    )
    return latex2text.LatexNodes2Text(math_mode="verbatim", latex_context=context, strict_latex_spaces=True)


def _last_argument(pattern: str) -> Any:
    """What a macro becomes: its last argument, as text, in a pattern."""

    def replaced(node: Any, l2tobj: Any) -> str:
        arguments = [argument for argument in (node.nodeargd.argnlist or ()) if argument is not None] if node.nodeargd else []
        return pattern.format(l2tobj.nodelist_to_text([arguments[-1]])) if arguments else ""

    return replaced
