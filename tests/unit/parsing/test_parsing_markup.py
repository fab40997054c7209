"""reStructuredText, LaTeX, XML and SVG."""

import pytest

from stemma.errors import CorruptDocument
from stemma.parsing.latex import Closings


def blocks(document):
    return [(block.kind, document.text[block.char_start : block.char_end]) for block in document.blocks]


def headings(document):
    return [(block.level, document.text[block.char_start : block.char_end]) for block in document.blocks if block.kind == "heading"]


RST = """\
======
Manual
======

.. a comment
   that goes on

Intro with ``code``::

    literal # block

      deeper

Section
-------

- one

  more
- two

.. code-block:: python
   :linenos:

   def f():
       pass

.. note:: Be careful
   here.

Sub
~~~

=====  =====
A      B
=====  =====
1      two
       lines
=====  =====

+-------+---+
| head  | x |
+=======+===+
| multi | y |
| line  |   |
+-------+---+
| over both |
+-------+---+

.. math:: a^2

.. image:: x.png
   :alt: A picture

Again
-----
.. include:: /etc/hostname
"""


def test_restructured_text_has_headings_lists_code_and_tables(parse):
    document = parse(RST, "rst")
    assert headings(document) == [(1, "Manual"), (2, "Section"), (3, "Sub"), (2, "Again")]
    assert [block for block in blocks(document) if block[0] != "heading"] == [
        ("paragraph", "Intro with ``code``:"),
        ("code", "literal # block\n\n  deeper"),
        ("list", "- one\n  more\n- two"),
        ("code", "def f():\n    pass"),
        ("paragraph", ".. note:: Be careful\n   here."),
        ("table", "| A | B |\n| --- | --- |\n| 1 | two lines |"),
        ("table", "| head | x |\n| --- | --- |\n| multi line | y |\n| over both |  |"),
        ("formula", "a^2"),
        ("paragraph", ".. include:: /etc/hostname"),
    ]
    assert [asset.caption for asset in document.assets if asset.kind == "figure"] == ["A picture"]


def test_restructured_text_of_the_shared_files(parse, shared):
    document = parse(shared / "files/generated/rst/basic.rst")
    assert document.title == "Plan"
    assert [kind for kind, _ in blocks(document)] == ["heading", "paragraph", "table", "code"]


LATEX = r"""% a remark
\documentclass{article}
\title{On \emph{Caf\'e} Theory} \author{J. M\"uller}
\begin{document}\maketitle
\begin{abstract}
We study caf\'es---and 50\% of bars. % hidden remark
It goes on.
\end{abstract}
\section{Introduction}\label{sec:intro}
As in \cite[p.~3]{knuth84}, the \textbf{quick} fox~jumps over $x^2 + 1$\footnote{A note.}.

\subsection*{A {nested} title}
\begin{itemize}
  \item First
  \item Second with
  more
  \begin{enumerate} \item Inner \end{enumerate}
\end{itemize}
\begin{equation} E = mc^2 \end{equation}
\begin{table}[ht]\centering
\begin{tabular}{l|cr} \hline
Name & \textbf{Value} & Unit \\ \hline
Speed & 3 \& 4 & m/s \\
\multicolumn{2}{c}{both} & x \\
\end{tabular}\caption{The \emph{caption}}\end{table}
\begin{lstlisting}[language=Python]
def f(x):  % kept
\end{lstlisting}
\input{/etc/hostname}
Last.
\end{document}
trailing
"""


def test_latex_reads_as_prose_with_its_structure(parse):
    document = parse(LATEX, "tex")
    assert (document.title, document.metadata["author"]) == ("On Café Theory", "J. Müller")
    assert headings(document) == [(1, "Introduction"), (2, "A nested title")]
    assert [block for block in blocks(document) if block[0] != "heading"] == [
        ("paragraph", "We study cafés—and 50% of bars. It goes on."),
        ("paragraph", "As in [knuth84], the quick fox jumps over $x^2 + 1$ (A note.)."),
        ("list", "- First\n- Second with more\n  1. Inner"),
        ("formula", r"\begin{equation} E = mc^2 \end{equation}"),
        ("table", "| Name | Value | Unit |\n| --- | --- | --- |\n| Speed | 3 & 4 | m/s |\n| both |  | x |"),
        ("caption", "The caption"),
        ("code", "def f(x):  % kept"),
        ("paragraph", "Last."),
    ]


def test_a_part_of_latex_without_document_is_read_whole(parse):
    assert parse("\\section{A}\nText {\\it here", "tex").text == "A\n\nText here"


def test_xml_has_a_line_per_element_with_text(parse):
    document = parse(
        '<?xml version="1.0"?><book><title>The Book</title><info><isbn>123</isbn><year>1999</year></info>'
        "<chapter><title>One</title><para>Some <b>marked</b> text.</para><script>x()</script><price currency='EUR'>3</price></chapter></book>",
        "xml",
    )
    assert document.text == "The Book\n\nisbn: 123\nyear: 1999\n\nOne\n\nSome marked text.\n\nprice: 3"
    assert (document.title, headings(document)) == ("The Book", [(1, "The Book"), (2, "One")])


LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>'
OUTSIDE = '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/hostname">]><l>&x;</l>'


@pytest.mark.parametrize("file_type", ["xml", "svg"])
@pytest.mark.parametrize("text", [LAUGHS, OUTSIDE], ids=["multiplying", "outside"])
def test_entities_are_refused(parse, text, file_type):
    with pytest.raises(CorruptDocument, match="declares entities"):
        parse(text, file_type)


def test_broken_xml_is_read_as_it_stands_with_a_warning(parse):
    document = parse("<a>one<b>two</a>", "xml")
    assert (document.text, document.warning) == ("<a>one<b>two</a>", "invalid_syntax")


def test_deep_xml_is_read_as_it_stands_or_refused(parse):
    text = "<a>" * 100_000 + "x" + "</a>" * 100_000
    assert parse(text, "xml").warning == "invalid_syntax"


def test_the_words_of_a_drawing_are_read(parse, shared):
    assert parse(shared / "files/generated/image/svg_text.svg").text == "needle-svg"
    drawing = parse("<svg><title>Plan</title><g><text>one <tspan>two</tspan></text></g><style>text{}</style></svg>", "svg")
    assert (drawing.title, drawing.text) == ("Plan", "Plan\n\none two")


class Scanned(str):
    """A text that counts how many of its characters are looked through for a closing."""

    n_scanned = 0

    def find(self, sub, start=0, end=None):
        found = super().find(sub, start)
        self.n_scanned += (len(self) if found < 0 else found + len(sub)) - start
        return found


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("\\begin{verbatim}", "\\end{verbatim"), ("$$", "\\]"), ("\\end{mathx}\\begin{math}", "\\end{math")],
)
def test_openings_that_nothing_closes_are_looked_through_once(opening, closing):
    def scanned(n: int) -> float:
        text = Scanned(opening * n + "words")
        closings = Closings(text)
        assert {closings.after(position, closing) for position in range(0, len(text), len(opening))} == {None}
        return text.n_scanned / len(text)

    assert scanned(2_000) <= scanned(1_000) <= 1


def test_closings_are_looked_through_up_to_the_next_one_only():
    text = Scanned("\\begin{verbatim}code\\end{verbatim}" * 1_000)
    closings, position = Closings(text), 0
    while found := closings.after(position, "\\end{verbatim"):
        position = found[1]
    assert position == len(text) and text.n_scanned <= len(text) + 100


@pytest.mark.parametrize("opening", ["\\begin{verbatim}", "\\begin{tabular}{ll}", "\\begin{align*}", "\\[", "a $$ b"])
def test_an_environment_that_is_not_closed_is_text(parse, opening):
    document = parse(f"Before.\n\n{opening}\nIt goes on.\n\n\\section{{Later}}", "tex")
    assert "It goes on." in document.text and document.text.startswith("Before.")
    assert headings(document) == [(1, "Later")]


def test_a_starred_environment_ends_at_its_starred_end(parse):
    document = parse("A\n\\begin{align*}x &= y\\end{align*}\nB\n\\begin{verbatim}%c\\end{verbatim}\nC \\[ z \\] D", "tex")
    assert blocks(document) == [
        ("paragraph", "A"), ("formula", "\\begin{align*}x &= y\\end{align*}"), ("paragraph", "B"), ("code", "%c"), ("paragraph", "C"),
        ("formula", "\\[ z \\]"), ("paragraph", "D"),
    ]  # fmt: skip
