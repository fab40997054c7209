"""CSV and TSV: one Markdown table."""

import csv
import io

from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.plain import encoding_metadata, read_text
from stemma.parsing.tables import markdown_table

_DELIMITERS = ",;\t|"


def parse_csv(source: Source) -> Draft:
    """The table of a comma- (or semicolon-, tab-, bar-) separated file; the first row is its header."""
    return _parse(source, None)


def parse_tsv(source: Source) -> Draft:
    """The table of a tab-separated file."""
    return _parse(source, "\t")


def _parse(source: Source, delimiter: str | None) -> Draft:
    decoded = read_text(source)
    text = decoded.text
    csv.field_size_limit(max(len(text), 131_072))  # the default fails on cells that the file's own size allows
    rows = csv.reader(io.StringIO(text), delimiter=delimiter or sniff_delimiter(text))
    builder = DraftBuilder(source)
    try:
        builder.add(markdown_table(rows), "table")
    except csv.Error as error:
        raise source.corrupt(f"it is no table: {error}") from error
    return builder.finish(empty=not text.strip(), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def sniff_delimiter(text: str) -> str:
    """The delimiter that cuts the first rows into the most equal and most numerous cells; `,` when none does.

    csv.Sniffer is not used: it takes letters for delimiters in tables of one column.
    """
    sample = text[:65_536]

    def score(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row, _ in zip(csv.reader(io.StringIO(sample), delimiter=delimiter), range(50), strict=False) if row]
        except csv.Error:
            return (0.0, 0)
        common = max(set(widths), key=widths.count, default=1)
        return (widths.count(common) / len(widths), common) if common > 1 else (0.0, 0)

    best = max(_DELIMITERS, key=score)
    return best if score(best)[1] else ","
