"""How stale sources are cut into batches."""

import polars as pl

from stemma.library.claims import cut_batches
from stemma.library.staleness import STALE_SCHEMA
from stemma.settings import load_settings


def stale(*rows: tuple[str, int, bool]) -> pl.DataFrame:
    """One row per (path, size, claimable)."""
    data = [
        {"source_id": path, "partition_key": path, "source_path": path, "size": size, "stage": "documents", "reason": "new file", "version": "", "claimable": claimable, "settling": False}
        for path, size, claimable in rows
    ]  # fmt: skip
    return pl.DataFrame(data, schema=STALE_SCHEMA)


def taken(frame: pl.DataFrame, **settings) -> list[str]:
    return next(cut_batches(frame, load_settings(**settings), {}))["source_path"].to_list()


def cut(frame: pl.DataFrame, limits: dict[str, int], **settings) -> list[list[str]]:
    return [batch["source_path"].to_list() for batch in cut_batches(frame, load_settings(**settings), limits)]


def test_a_batch_ends_with_the_document_that_reaches_its_text():
    assert taken(stale(("a.txt", 60, True), ("b.txt", 60, True), ("c.txt", 1, True)), batch_text_bytes=100) == ["a.txt", "b.txt"]


def test_a_document_larger_than_a_batch_is_taken_alone():
    assert taken(stale(("a.txt", 1_000, True), ("b.txt", 1, True)), batch_text_bytes=100) == ["a.txt"]


def test_pictures_and_pdfs_count_for_the_text_they_are_likely_to_hold():
    assert taken(stale(("a.PDF", 1_000, True), ("b.png", 9_000, True), ("c.txt", 1, True)), batch_text_bytes=100) == [
        "a.PDF",
        "b.png",
        "c.txt",
    ]


def test_what_is_not_claimable_takes_no_room():
    assert taken(stale(("a.txt", 1_000, False), ("b.txt", 1, True), ("c", 1, True)), batch_text_bytes=100, batch_size=1) == ["b.txt"]


def test_what_was_interrupted_goes_last_in_batches_of_half_the_size_and_among_itself():
    frame = stale(*((name, 1, True) for name in "abcdefgh"))
    limits = dict.fromkeys("abd", 2) | {"f": 1}
    assert cut(frame, limits, batch_size=3) == [["c", "e", "g"], ["h"], ["a", "b"], ["d"], ["f"]]
