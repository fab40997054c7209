"""Parses bytes or a file as the product would, in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, require_format
from stemma.parsing.parse import parse_file


@pytest.fixture
def parse(tmp_path: Path) -> Callable[..., ParsedDocument]:
    """`parse(path)` or `parse(data, "md")`; keyword arguments are options of the parsing stage."""

    def parse(given: Path | bytes | str, file_type: str = "", **options: object) -> ParsedDocument:
        if not isinstance(given, Path):
            path = tmp_path / f"file.{file_type}"
            path.write_bytes(given.encode() if isinstance(given, str) else given)
            given = path
        with given.open("rb") as file:
            format = require_format(file.read(HEAD_BYTES), given.suffix[1:], source_path=given.name, zip_archives=True)
        return parse_file(given, source_path=given.name, format=format, options=ParsingOptions(**options))

    return parse
