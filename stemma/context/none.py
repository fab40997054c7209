"""No context: the chunk itself is embedded and indexed."""

from collections.abc import Sequence


def none(title: str | None, section_path: Sequence[str], table_header: str | None) -> None:
    """None, whatever the document says."""
    return None
