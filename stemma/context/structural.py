"""The document's title, the trail of headings over a chunk and the head of its table: says where a passage stands without a model.

Nothing else enters, so an edit elsewhere in the document changes no chunk's context.
"""

from collections.abc import Sequence

from stemma.chunking.breadcrumb import breadcrumb


def structural(title: str | None, section_path: Sequence[str], table_header: str | None = None) -> str | None:
    """`Title > Heading > Subheading`, and `> Column | Column` for a chunk below the head of its table; None when nothing is known.

    One line of at most `breadcrumb.MAX_CHARS` characters.
    """
    return breadcrumb(title, section_path, table_header) or None
