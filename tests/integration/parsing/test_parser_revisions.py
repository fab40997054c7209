"""A parser that gives another output for the same bytes has another revision: what it made before is found stale by that alone.

`REWRITE_GOLDEN=1 pytest` of this file rewrites golden_outputs.json, after a revision was raised or a library was upgraded.
"""

import hashlib
import json
import os
import random
from pathlib import Path

import pytest
from test_parsing_fuzz import damaged, sound_file

from stemma.errors import UnsupportedFormat
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import FORMATS, HEAD_BYTES, require_format
from stemma.parsing.workers import ParseJob, ParserPool

GOLDEN = Path(__file__).parent / "golden_outputs.json"
N_DAMAGED = 8
ENCODED = {
    "utf-8 with damage": "Häfen, öfter gefährlich, größer".encode() * 20 + b"\xff\xc3(",
    "a cut character": "Die Größe".encode() + b"\xc3",
    "latin-1": "Häfen im Überblick; die Größe steht unten.".encode("latin-1") * 10,
    "utf-16": "Häfen im Überblick".encode("utf-16"),
}


def samples(format_id: str, shared: Path) -> list[bytes]:
    """A sound file, and damaged ones; for formats that are text, in several encodings."""
    _, data = sound_file(format_id, shared)
    chance = random.Random(f"revision of {format_id}")
    encoded = list(ENCODED.values()) if format_id in ("text", "csv", "tsv", "markdown", "code", "rst", "subtitles") else []
    return [data, *(damaged(data, chance) for _ in range(N_DAMAGED)), *encoded]


@pytest.fixture(scope="module")
def outputs(shared, tmp_path_factory) -> dict[str, str]:
    """Format -> sha256 over what becomes of its samples, without versions of parsers."""
    folder = tmp_path_factory.mktemp("samples")
    jobs: list[ParseJob] = []
    for format_id in sorted(FORMATS):
        extension, _ = sound_file(format_id, shared)
        for number, data in enumerate(samples(format_id, shared)):
            path = folder / f"{format_id}-{number}.{extension}"
            path.write_bytes(data)
            try:
                format = require_format(data[:HEAD_BYTES], extension, source_path=path.name, zip_archives=True)
            except UnsupportedFormat:
                continue
            if format.id == format_id:
                jobs.append(ParseJob(path, path.name, format, ParsingOptions(ocr_engine="none")))
    digests = {format_id: hashlib.sha256() for format_id in FORMATS}
    with ParserPool(timeout_s=60, memory_bytes=1_500_000_000) as pool:
        for job, result in pool.parse(jobs):
            said = result.to_json() if isinstance(result, ParsedDocument) else result.code
            digests[job.format.id].update(said.replace(job.format.parser_version, "VERSION").encode())
    return {format_id: digest.hexdigest() for format_id, digest in digests.items()}


def test_another_output_has_another_revision(outputs):
    found = {format_id: {"version": FORMATS[format_id].parser_version, "sha256": outputs[format_id]} for format_id in sorted(FORMATS)}
    if os.environ.get("REWRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    golden = json.loads(GOLDEN.read_text("utf-8"))
    unraised = [name for name, now in found.items() if name in golden and now != golden[name] and now["version"] == golden[name]["version"]]
    assert unraised == [], "raise the revision of these formats in stemma/parsing/formats.py: their output has changed"
    assert found == golden, "a revision was raised, or a library upgraded: rewrite the golden outputs"
