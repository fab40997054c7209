"""Damaged files of every format: each ends as text or as a coded failure, and what is ready is made of the file's own words."""

import json
import random
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from stemma.errors import DocumentError, UnsupportedFormat
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import FORMATS, HEAD_BYTES, require_format
from stemma.parsing.workers import ParseJob, ParserPool

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
PROSE = "The quarterly report names twelve harbours, und der Anhang nennt die Häfen im Überblick. "


def zipped(**parts: str) -> bytes:
    """A zip whose part names are given with `__` for `/`; `mimetype` is stored first, as OpenDocument and EPUB have it."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/"), text, zipfile.ZIP_STORED if name == "mimetype" else None)
    return buffer.getvalue()


def ods() -> bytes:
    cells = "".join(f"<table:table-cell><text:p>{word}</text:p></table:table-cell>" for word in PROSE.split())
    body = f'<table:table table:name="A">{f"<table:table-row>{cells}</table:table-row>" * 3}</table:table>'
    names = " ".join(f'xmlns:{prefix}="{OFFICE}:{prefix}:1.0"' for prefix in ("office", "text", "table"))
    content = f"<office:document-content {names}><office:body><office:spreadsheet>{body}</office:spreadsheet></office:body></office:document-content>"
    return zipped(**{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": content})


def epub() -> bytes:
    package = (
        '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>'
    page = f"<html><body><h1>Harbours</h1>{f'<p>{PROSE}</p>' * 5}</body></html>"
    return zipped(**{"mimetype": "application/epub+zip", "META-INF__container.xml": container, "p.opf": package, "a.xhtml": page})


RECORDS = [{"id": i, "words": PROSE, "nested": {"list": [1, 2.5, None, "Größe"]}} for i in range(5)]
CELLS = [
    {"cell_type": "markdown", "source": ["# Harbours\n", PROSE]},
    {"cell_type": "code", "source": "print('Häfen')", "outputs": [{"output_type": "stream", "text": [PROSE]}]},
]
MESSAGE = "From a@example.org Thu Jan  1 00:00:00 2026\nFrom: a@example.org\nSubject: Harbours\nContent-Type: text/plain; charset=utf-8\n\n"
MADE: dict[str, tuple[str, bytes]] = {
    "text": ("txt", (PROSE * 10).encode()),
    "tsv": ("tsv", ("\t".join(PROSE.split()) + "\n").encode() * 5),
    "ods": ("ods", ods()),
    "epub": ("epub", epub()),
    "notebook": ("ipynb", json.dumps({"cells": CELLS, "metadata": {}}, ensure_ascii=False).encode()),
    "latex": ("tex", f"\\section{{Harbours}}\n{PROSE * 3}\n\\begin{{itemize}}\\item {PROSE}\\end{{itemize}} $x^2$".encode()),
    "xml": ("xml", f"<report><title>Harbours</title>{f'<p>{PROSE}</p>' * 5}</report>".encode()),
    "json": ("json", json.dumps(RECORDS, ensure_ascii=False).encode()),
    "jsonl": ("jsonl", "\n".join(json.dumps(record) for record in RECORDS).encode()),
    "code": ("py", f'def harbours():\n    """{PROSE}"""\n\n    return 1\n'.encode() * 5),
    "subtitles": ("vtt", ("WEBVTT\n\n" + "".join(f"00:0{i}.000 --> 00:0{i}.900\n{PROSE}\n\n" for i in range(9))).encode()),
    "mbox": ("mbox", (f"{MESSAGE}{PROSE * 3}\n\n" * 3).encode()),
    "zip": ("zip", zipped(**{"harbours.txt": PROSE * 3, "Häfen__overview.txt": PROSE})),
}
GIVEN = {
    "markdown": "md/d_mixed.md",
    "html": "html/d_html_rich_table_cells.html",
    "csv": "csv/u_stanley-cups-utf-16.csv",
    "eml": "generated/eml/koi8_quoted_printable.eml",
    "pdf": "pdf/k_movie-theater-booking-2024.pdf",
    "docx": "docx/u_tables-with-incomplete-rows.docx",
    "pptx": "generated/pptx/notes_table_group_hidden.pptx",
    "xlsx": "xlsx/d_xlsx_06_edge_cases_.xlsx",
    "odt": "generated/odt/note_table.odt",
    "odp": "odt/d_odf_presentation_01.odp",
    "rtf": "other/u_fake-doc.rtf",
    "rst": "generated/rst/basic.rst",
    "svg": "generated/image/svg_text.svg",
    "image": "generated/image/exif_rotated.jpg",
    "ole": "docx/t_testWORD_protected_passtika.docx",
}
FIXTURES = {"xls": "rooms.xls", "xlsb": "rooms.xlsb", "msg": "minutes.msg"}


def test_every_format_is_damaged():
    assert {*MADE, *GIVEN, *FIXTURES} == set(FORMATS)


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    with ParserPool(timeout_s=30, memory_bytes=1_500_000_000) as pool:
        yield pool


def sound_file(format_id: str, shared: Path) -> tuple[str, bytes]:
    """Extension and bytes of an undamaged file."""
    if format_id in MADE:
        return MADE[format_id]
    files = Path(__file__).parents[2] / "unit/parsing/files"
    path = files / FIXTURES[format_id] if format_id in FIXTURES else shared / "files" / GIVEN[format_id]
    return path.suffix[1:], path.read_bytes()


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes cut off, with up to twenty flipped, or with a stretch of them copied over another place."""
    match chance.choice(("truncate", "flip", "splice")):
        case "truncate":
            return data[: chance.randrange(len(data))]
        case "flip":
            changed = bytearray(data)
            for _ in range(chance.randint(1, 20)):
                changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        case _:
            start, length, target = chance.randrange(len(data)), chance.randint(1, 200), chance.randrange(len(data))
            return data[:target] + data[start : start + length] + data[target + length * chance.randrange(2) :]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]{3,}", text.lower())


def rubbish(document: ParsedDocument, known: set[str]) -> str | None:
    """Why a ready document is none: characters without meaning, or words that the sound file does not have."""
    visible = [character for character in document.text if not character.isspace()]
    senseless = sum(character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cn", "Co") for character in visible)
    if senseless > max(20, 0.2 * len(visible)):
        return f"{senseless} of {len(visible)} characters mean nothing"
    found = words(document.text)
    strange = [word for word in found if word not in known]
    if len(found) > 20 and len(strange) > 0.5 * len(found):
        return f"{len(strange)} of {len(found)} words are strange: {strange[:5]}"
    return None


def check_damage(format_id: str, n_files: int, pool: ParserPool, shared: Path, folder: Path) -> None:
    extension, data = sound_file(format_id, shared)
    chance = random.Random(f"{format_id}: seeds are fixed, so a failure comes again")
    jobs: list[ParseJob] = []
    for number in range(n_files + 1):
        content = damaged(data, chance) if number else data
        path = folder / f"{number}.{extension}"
        path.write_bytes(content)
        try:
            format = require_format(content[:HEAD_BYTES], extension, source_path=path.name, zip_archives=True)
        except UnsupportedFormat:
            continue
        jobs.append(ParseJob(path, path.name, format, ParsingOptions(ocr_engine="none")))
    results = {job.source_path: result for job, result in pool.parse(jobs)}
    assert len(results) == len(jobs)
    sound = results.pop(f"0.{extension}")
    known = {*words(sound.text if isinstance(sound, ParsedDocument) else ""), *words(data.decode("utf-8", "ignore"))}
    for name, result in results.items():
        if isinstance(result, DocumentError):
            assert result.code not in ("parse_timeout", "worker_died", "unreadable"), (folder / name, result.detail)
        else:
            assert rubbish(result, known) is None, (folder / name, rubbish(result, known))
            assert "\0" not in result.text
            assert all(0 <= block.char_start < block.char_end <= len(result.text) for block in result.blocks), folder / name


@pytest.mark.parametrize("format_id", sorted(FORMATS))
def test_damaged_files_end_as_text_or_as_a_coded_failure(format_id, pool, shared, tmp_path):
    check_damage(format_id, 30, pool, shared, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("format_id", sorted(FORMATS))
def test_many_damaged_files_end_as_text_or_as_a_coded_failure(format_id, pool, shared, tmp_path):
    check_damage(format_id, 500, pool, shared, tmp_path)
