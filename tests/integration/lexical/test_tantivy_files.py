"""The embedded index's folder: made late, damaged, held by another writer, begun again."""

import contextlib
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
import tantivy

from stemma.lexical.errors import LexicalIndexDamaged, LexicalIndexUnavailable
from stemma.lexical.index import ENTRY_SCHEMA, Scope
from stemma.lexical.tantivy_index import TantivyIndex

NOW = datetime.now(UTC)


def entries(n_entries: int = 50, publication_id: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (
                f"d::{number}",
                publication_id,
                "s",
                "d",
                number,
                "default",
                [],
                "txt",
                "FILE",
                "",
                NOW,
                NOW,
                None,
                None,
                [],
                f"harbour word{number}",
                "",
            )
            for number in range(n_entries)
        ],
        schema=ENTRY_SCHEMA,
        orient="row",
    )


def opened(folder: Path, lock_timeout_s: float = 5.0) -> TantivyIndex:
    return TantivyIndex(folder, exclusive=contextlib.nullcontext, lock_timeout_s=lock_timeout_s)


def test_reading_makes_no_folder(tmp_path: Path):
    index = opened(tmp_path / "home" / "bm25")
    assert index.search("harbour", k=5, scope=Scope()).is_empty()
    assert index.publications() == {}
    index.remove([1])
    assert not (tmp_path / "home").exists()


def test_the_first_write_makes_the_folder_and_its_parents(tmp_path: Path):
    index = opened(tmp_path / "home" / "bm25")
    index.add(entries())
    assert opened(tmp_path / "home" / "bm25").publications() == {1: 50}


def damage_meta(folder: Path) -> None:
    (folder / "meta.json").write_text("{")


def lose_meta(folder: Path) -> None:
    (folder / "meta.json").unlink()


def lose_terms(folder: Path) -> None:
    next(folder.glob("*.term")).unlink()


def truncate_terms(folder: Path) -> None:
    with next(folder.glob("*.term")).open("r+b") as file:
        file.truncate(7)


def overwrite_postings(folder: Path) -> None:
    postings = next(folder.glob("*.idx"))
    postings.write_bytes(b"\xff" * postings.stat().st_size)


def put_another_schema(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    tantivy.Index(tantivy.SchemaBuilder().add_text_field("body").build(), str(folder))


@pytest.mark.parametrize("damage", [damage_meta, lose_meta, lose_terms, truncate_terms, overwrite_postings, put_another_schema])
def test_a_damaged_folder_is_named_as_such_and_can_be_begun_again(tmp_path: Path, damage):
    opened(tmp_path / "bm25").add(entries())
    damage(tmp_path / "bm25")
    index = opened(tmp_path / "bm25")
    for use in (lambda: index.search("harbour", k=5, scope=Scope()), lambda: index.add(entries(1, 2))):
        with pytest.raises(LexicalIndexDamaged, match=r"bm25.*PostgreSQL"):
            use()
    index.recreate()
    assert index.publications() == {}
    index.add(entries())
    assert index.publications() == {1: 50}


def test_a_folder_removed_under_an_open_index_is_reported_and_then_made_anew(tmp_path: Path):
    index = opened(tmp_path / "bm25")
    index.add(entries())
    opened(tmp_path / "bm25").recreate()
    assert index.publications() == {}
    for file in (tmp_path / "bm25").iterdir():
        file.unlink()
    (tmp_path / "bm25").rmdir()
    with pytest.raises(LexicalIndexUnavailable):
        index.add(entries())
    index.add(entries())
    assert index.publications() == {1: 50}


def test_a_writer_waits_for_tantivys_own_lock_and_gives_up_in_time(tmp_path: Path):
    opened(tmp_path / "bm25").add(entries())
    foreign = tantivy.Index.open(str(tmp_path / "bm25")).writer(15_000_000, 1)
    with pytest.raises(LexicalIndexUnavailable, match="another process"):
        opened(tmp_path / "bm25", lock_timeout_s=0.2).add(entries(1, 2))
    threading.Timer(0.3, foreign.wait_merging_threads).start()
    index = opened(tmp_path / "bm25")
    index.add(entries(1, 2))
    assert index.publications() == {1: 50, 2: 1}


def test_a_write_that_fails_half_way_leaves_nothing_and_releases_the_lock(tmp_path: Path):
    index = opened(tmp_path / "bm25")
    index.add(entries())
    broken = entries(3, 2).with_columns(original_index=pl.Series([1, 2, None], dtype=pl.Int64))
    with pytest.raises((TypeError, ValueError)):
        index.add(broken)
    assert index.publications() == {1: 50}
    index.add(entries(3, 2))
    assert index.publications() == {1: 50, 2: 3}


def test_a_frame_of_another_schema_is_refused(tmp_path: Path):
    with pytest.raises(pl.exceptions.PolarsError):
        opened(tmp_path / "bm25").add(entries().drop("folders"))
    assert not (tmp_path / "bm25").exists()


def test_searches_of_many_threads_meet_writes_without_harm(tmp_path: Path):
    index = opened(tmp_path / "bm25")
    index.add(entries())
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                assert len(index.search("harbour", k=5, scope=Scope())) == 5
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=search) for _ in range(4)]
    for reader in readers:
        reader.start()
    for publication_id in range(2, 12):
        index.add(entries(50, publication_id))
        index.remove([publication_id - 1])
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_the_folder_is_held_exclusively_during_every_write_and_never_during_a_read(tmp_path: Path):
    held: list[str] = []

    @contextlib.contextmanager
    def exclusive():
        held.append("taken")
        yield
        held.append("released")

    index = TantivyIndex(tmp_path / "bm25", exclusive=exclusive)
    index.add(entries())
    index.remove([1])
    index.recreate()
    assert held == ["taken", "released"] * 3
    index.search("harbour", k=5, scope=Scope())
    index.publications()
    assert len(held) == 6


def test_importing_the_index_does_not_import_the_engine():
    check = "import sys, stemma.lexical.tantivy_index; sys.exit('tantivy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
