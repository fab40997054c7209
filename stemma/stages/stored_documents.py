"""Detached documents: no file of theirs was ever seen here, so later stages work from the text that is published of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from psycopg.rows import class_row

from sql import load_queries
from stemma.parsing.document import Asset, Block, Page, ParsedDocument
from stemma.stages.run import Run, now
from stemma.store.publications import decompressed
from stemma.store.stage_results import find_results, store_results

DOCUMENT_FRAME = pl.Schema({"key": pl.String, "title": pl.String, "document": pl.String})


@dataclass(frozen=True)
class _Stored:
    """A published document with what the stage `documents` recorded of it."""

    result_key: str
    recorded_output: str
    fingerprint: str
    title: str
    file_name: str
    text: str
    blocks: bytes
    pages: bytes
    document_metadata: dict[str, Any]
    parser: str
    parser_version: str
    extraction: Literal["text", "ocr", "ocr_fallback"]
    ocr_pages: list[int]
    warning_code: str | None
    assets: list[dict[str, Any]]

    def parsed(self) -> ParsedDocument:
        """What the parser made. A title that is the file's name may be one that the content states: the recorded hash tells."""
        unnamed = self._parsed(None)
        if self.title == self.file_name and unnamed.output_hash == self.recorded_output:
            return unnamed
        return self._parsed(self.title)

    def _parsed(self, title: str | None) -> ParsedDocument:
        return ParsedDocument(
            text=self.text,
            parser=self.parser,
            parser_version=self.parser_version,
            blocks=tuple(Block(**block) for block in decompressed(self.blocks)),
            pages=tuple(Page(**page) for page in decompressed(self.pages)),
            assets=tuple(Asset(**asset) for asset in self.assets),
            title=title,
            extraction=self.extraction,
            ocr_pages=tuple(self.ocr_pages),
            warning=self.warning_code,
            metadata=self.document_metadata,
        )


def hand_over_stored(run: Run, source_ids: Sequence[str]) -> None:
    """Put the published documents of these sources into the lake under the keys that were recorded for them, where it lacks them."""
    if not source_ids:
        return
    with run.pool.connection() as connection:
        with connection.cursor(row_factory=class_row(_Stored)) as cursor:
            rows = cursor.execute(load_queries("stage_results")["stored_documents"], {"source_ids": list(source_ids)}).fetchall()
        found = find_results(connection, run.lake, "documents", [row.result_key for row in rows], now=now())
        for row in rows:
            if row.result_key in found:
                continue
            document = row.parsed()
            frame = pl.DataFrame([(row.result_key, document.title, document.to_json())], schema=DOCUMENT_FRAME, orient="row")
            outputs = {row.result_key: row.recorded_output}
            store_results(connection, run.lake, "documents", frame, outputs, fingerprint=row.fingerprint, now=now())
