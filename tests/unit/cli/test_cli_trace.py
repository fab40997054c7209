"""What `stemma trace` prints of a lineage."""

from datetime import UTC, datetime

from stemma.cli.trace import _print
from stemma.library.lineage import TracedChunk, TracedDocument, TracedFile, TracedStage
from stemma.service.lineage import LineageLinks, LinkedLineage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HASH, OTHER = "a" * 64, "b" * 64


def lineage(**file) -> LinkedLineage:
    return LinkedLineage(
        chunk=TracedChunk(
            chunk_id="0f3c9a1b2d4e5f60::3", chunk_index=3, original_index=9, content="the  words\nof it", context=None, char_start=4, char_end=19,
            is_exact=True, start_line=2, end_line=3, page_start=None, page_end=None, section_path=["Top", "Part"], chunk_type="prose", n_tokens=4,
            text_hash=HASH, input_hash=HASH, created_at=NOW,
        ),
        document=TracedDocument(
            doc_id="0f3c9a1b2d4e5f60", source_id="s", title="A title", document_type="FILE", n_chars=100, n_chunks=4, document_output_hash=HASH,
            output_hash=HASH, publication_id=7, published_at=NOW, ingested_at=NOW, partition_key="a.md", run_id="r1", warning_code=None,
        ),
        file=TracedFile(**{"source_path": "a.md", "content_hash": HASH, "on_disk": "same", "content_hash_on_disk": HASH, "container_path": None} | file),
        recipe=[TracedStage(stage="chunking", fingerprint=HASH, made_by="sentence", settings={"CHUNK_SIZE": 800})],
        links=LineageLinks(run="http://d/runs/r1", partition="http://d/assets", page="http://s/#/document"),
    )  # fmt: skip


def test_every_step_from_the_passage_to_the_run_is_named(capsys):
    _print(lineage())
    shown = capsys.readouterr().out
    for part in (
        "0f3c9a1b2d4e5f60::3", "the words of it", "Top › Part", "lines 2-3, chars 4-19: the text there is the chunk", "A title",
        "publication 7, live since 2026-01-02 03:04:05 UTC", f"{HASH}: the file on disk still has it", "chunking        sentence",
        "CHUNK_SIZE=800", "http://d/runs/r1", "http://s/#/document",
    ):  # fmt: skip
        assert part in shown


def test_other_bytes_on_disk_are_told_with_their_hash(capsys):
    _print(lineage(on_disk="changed", content_hash_on_disk=OTHER))
    shown = capsys.readouterr().out
    assert "has other bytes now" in shown and OTHER in shown


def test_what_lies_in_a_mail_is_told_with_the_mail(capsys):
    _print(lineage(source_path="a.eml//b.txt", on_disk="contained", content_hash_on_disk=None, container_path="a.eml"))
    shown = capsys.readouterr().out
    assert "lies_in    a.eml" in shown and "taken out of its container" in shown
