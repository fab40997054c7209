"""What every keyword index promises, whatever its engine: each backend of BACKENDS runs through all of it."""

import fcntl
import multiprocessing
import os
import signal
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from elasticsearch_under_test import client_of_server_under_test

from stemma.lexical.index import ENTRY_SCHEMA, HIT_SCHEMA, LexicalIndex, Scope

EVERYWHERE = Scope()
DEADLINE_S = 60.0


def open_tantivy(location: Path) -> LexicalIndex:
    """The index of this location in this process; writers of several processes exclude each other through a locked file."""
    from stemma.lexical.tantivy_index import TantivyIndex

    @contextmanager
    def exclusive() -> Iterator[None]:
        location.mkdir(exist_ok=True)
        with (location / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return TantivyIndex(location / "index", exclusive=exclusive)


def open_elasticsearch(location: Path) -> LexicalIndex:
    """The index of this location on the server under test."""
    from stemma.lexical.elasticsearch_index import ElasticsearchIndex

    return ElasticsearchIndex(
        client_of_server_under_test(), f"contract_{sha256(str(location).encode()).hexdigest()[:16]}", address="the server"
    )


BACKENDS: dict[str, Callable[[Path], LexicalIndex]] = {"elasticsearch": open_elasticsearch, "tantivy": open_tantivy}


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "elasticsearch":
        request.getfixturevalue("elasticsearch_url")
    return request.param


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "location"


@pytest.fixture
def index(backend: str, location: Path) -> Iterator[LexicalIndex]:
    opened = BACKENDS[backend](location)
    yield opened
    opened.close()


def entry(content: str, *, number: int = 0, publication_id: int = 1, context: str | None = None, **columns: Any) -> dict[str, Any]:
    doc_id = columns.pop("doc_id", f"{publication_id:016x}")
    now = datetime.now(UTC)
    return {
        "chunk_id": f"{doc_id}::{number}",
        "publication_id": publication_id,
        "source_id": f"source-{publication_id}",
        "doc_id": doc_id,
        "original_index": publication_id * 100_000 + number,
        "workspace": "default",
        "folders": [],
        "file_type": "txt",
        "document_type": "FILE",
        "language": "",
        "file_modified_at": now,
        "ingested_at": now,
        "page_start": None,
        "page_end": None,
        "sections": [],
        "content": content,
        "contextualized_content": content if context is None else f"{context}\n\n{content}",
    } | columns


def entries(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=ENTRY_SCHEMA)


def texts(*contents: str) -> pl.DataFrame:
    return entries(*(entry(content, number=number) for number, content in enumerate(contents)))


def found(index: LexicalIndex, query: str, scope: Scope = EVERYWHERE, k: int = 10) -> list[int]:
    """The numbers of the chunks found, best first."""
    return [int(chunk_id.rpartition("::")[2]) for chunk_id in index.search(query, k=k, scope=scope)["chunk_id"]]


# Words


@pytest.mark.parametrize("query", ["run", "running", "RUNS"])
def test_english_inflections_find_each_other(index: LexicalIndex, query: str):
    index.add(texts("The dogs were running home.", "A quiet cat"))
    assert found(index, query) == [0]


def test_a_possessive_finds_its_owner(index: LexicalIndex):
    index.add(texts("the captain's log", "the captain’s hat", "another log"))
    assert set(found(index, "captain")) == {0, 1}
    assert set(found(index, "Captain's")) == {0, 1}


@pytest.mark.parametrize("query", ["", "   ", "the", "To be, or not to be: that is it", "?!", "\0", "\ud800", "***"])
def test_a_query_without_a_word_that_counts_finds_nothing(index: LexicalIndex, query: str):
    index.add(texts("To be, or not to be: that is the question ?! ***"))
    hits = index.search(query, k=10, scope=EVERYWHERE)
    assert hits.is_empty()
    assert hits.schema == HIT_SCHEMA


def test_any_word_of_the_query_is_enough_and_more_are_better(index: LexicalIndex):
    index.add(texts("a ferry at noon", "the vault code", "the vault opens at noon"))
    assert found(index, "vault noon")[0] == 2
    assert set(found(index, "vault noon")) == {0, 1, 2}


def test_a_rare_word_counts_more_than_a_common_one(index: LexicalIndex):
    index.add(texts("common rare", *["common words"] * 8, "common common"))
    assert found(index, "rare common")[0] == 0


def test_words_of_the_context_alone_are_found(index: LexicalIndex):
    index.add(entries(entry("It grew by 3 %.", context="ACME quarterly report"), entry("It fell.", number=1)))
    assert found(index, "acme report") == [0]


def test_words_of_the_content_count_when_the_contextualized_text_lacks_them(index: LexicalIndex):
    index.add(entries(entry("needle", contextualized_content="something else"), entry("hay", number=1)))
    assert found(index, "needle") == [0]


# Scripts


@pytest.mark.parametrize(
    ("text", "inside", "absent"),
    [
        ("北京大学的图书馆每天开放", "图书馆", "汽车"),
        ("東京都の図書館は毎日開いています", "図書館", "病院"),
        ("ห้องสมุดเปิดทุกวันตั้งแต่เช้า", "ห้องสมุด", "โรงพยาบาล"),
        ("도서관은 매일 열려 있습니다", "도서관", "병원"),
    ],
)
def test_a_word_inside_a_run_without_spaces_is_found(index: LexicalIndex, text: str, inside: str, absent: str):
    index.add(texts(text, "nothing of the kind"))
    assert found(index, inside) == [0]
    assert found(index, absent) == []


def test_one_character_of_a_run_is_found(index: LexicalIndex):
    index.add(texts("我的猫很大", "我的狗很大"))
    assert found(index, "猫") == [0]


def test_hindi_words_are_whole(index: LexicalIndex):
    index.add(texts("हिन्दी किताबें यहाँ हैं", "हिमालय यहाँ है"))
    assert found(index, "हिन्दी") == [0]
    assert found(index, "हि") == []


@pytest.mark.parametrize(("stored", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_match_whether_composed_or_not(index: LexicalIndex, stored: Any, asked: Any):
    index.add(texts(unicodedata.normalize(stored, "Die Prüfung beim Café"), "Die Prufung"))
    assert found(index, unicodedata.normalize(asked, "prüfung")) == [0]


def test_german_words_are_found_in_any_case(index: LexicalIndex):
    index.add(texts("Die Straße nach Köln"))
    assert found(index, "STRASSE") == [0]


# Queries are data


def test_no_line_of_strange_queries_raises_and_none_is_read_as_syntax(index: LexicalIndex, shared: Path):
    folder = shared / "cases" / "29-query-characters"
    index.add(texts((folder / "query_syntax.txt").read_text("utf-8"), "an unrelated sentence", "one more"))
    for query in (folder / "queries.txt").read_text("utf-8").splitlines():
        assert set(found(index, query)) <= {0}, query
    for query in ("C++ and C#", "src/main/app.py", "ratio 3:1", "[1 TO 5]", "needle-syntax", "user@example.com", "50% off", "wild*card"):
        assert found(index, query) == [0], query


@pytest.mark.parametrize("query", ["* OR needle", "content:needle", "+needle -hay", "needle^100", "(needle", "needle\0", "needle\ud800"])
def test_operators_are_no_operators(index: LexicalIndex, query: str):
    index.add(texts("a needle in it", "nothing here", "much more of nothing"))
    assert found(index, query) == [0]


def test_a_query_of_a_megabyte_is_answered(index: LexicalIndex):
    index.add(texts("needle", "hay"))
    assert found(index, "needle " + " ".join(f"w{number}" for number in range(150_000))) == [0]


def test_a_megabyte_without_a_space_and_the_words_beside_it_are_found(index: LexicalIndex, shared: Path):
    folder = shared / "cases" / "09-tsvector-one-megabyte"
    index.add(texts((folder / "long_line_1mb.txt").read_text("utf-8"), (folder / "unique_words_1_7mb.txt").read_text("utf-8")))
    assert found(index, "needle-dna")[0] == 0
    assert found(index, "needle-lexemes")[0] == 1


# Versions


def test_two_publications_of_one_chunk_lie_side_by_side(index: LexicalIndex):
    index.add(entries(entry("the harbour is old", doc_id="d", publication_id=1)))
    index.add(entries(entry("the harbour is new", doc_id="d", publication_id=2)))
    assert index.search("old", k=10, scope=EVERYWHERE).select("chunk_id", "publication_id").rows() == [("d::0", 1)]
    assert index.search("new", k=10, scope=EVERYWHERE).select("chunk_id", "publication_id").rows() == [("d::0", 2)]


def test_removing_a_publication_leaves_the_other_version_of_its_chunks(index: LexicalIndex):
    index.add(entries(entry("harbour", doc_id="d", publication_id=1), entry("harbour", doc_id="d", publication_id=12)))
    index.remove([1])
    assert index.search("harbour", k=10, scope=EVERYWHERE)["publication_id"].to_list() == [12]
    assert index.publications() == {12: 1}


def test_an_entry_written_again_is_replaced(index: LexicalIndex):
    index.add(texts("first words"))
    index.add(texts("second words"))
    assert found(index, "first") == []
    assert found(index, "second") == [0]
    assert index.publications() == {1: 1}


def test_an_entry_twice_in_one_frame_is_stored_once(index: LexicalIndex):
    index.add(entries(entry("first"), entry("second")))
    assert (found(index, "first second"), index.publications()) == ([0], {1: 1})


def test_removing_nothing_or_the_unknown_removes_nothing(index: LexicalIndex):
    index.add(texts("harbour"))
    index.remove([])
    index.remove([2, 11, 0])
    assert index.publications() == {1: 1}


def test_publications_are_counted(index: LexicalIndex):
    index.add(entries(*(entry("x", number=number, publication_id=publication) for publication in (5, 7) for number in range(publication))))
    assert index.publications() == {5: 5, 7: 7}


def test_an_index_that_was_never_written_is_empty(index: LexicalIndex):
    index.remove([1])
    index.add(entries())
    assert (found(index, "anything"), index.publications()) == ([], {})


# Scopes


def in_year(year: int) -> dict[str, datetime]:
    return {"file_modified_at": datetime(year, 5, 1, tzinfo=UTC), "ingested_at": datetime(year + 10, 5, 1, tzinfo=UTC)}


LIBRARY: Sequence[dict[str, Any]] = (
    entry("harbour", number=0, publication_id=1, workspace="proj", folders=["proj", "proj/a"], file_type="pdf", doc_id="one",
          page_start=1, page_end=1, sections=["Results", "Tides"], language="en", **in_year(2001)),
    entry("harbour", number=1, publication_id=2, workspace="proj", folders=["proj", "proj/a", "proj/a/b"], file_type="md", doc_id="two",
          sections=["Results"], language="de", **in_year(2002)),
    entry("harbour", number=2, publication_id=3, workspace="proj-2", folders=["proj-2"], file_type="pdf", doc_id="three",
          page_start=3, page_end=5, sections=["Résumé / 结论"], **in_year(2003)),
    entry("harbour", number=3, publication_id=4, workspace="default", folders=[], file_type="", doc_id="four", document_type="NOTE",
          ingested_at=datetime(2014, 5, 1, tzinfo=UTC), file_modified_at=None),
)  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "numbers"),
    [
        (Scope(), {0, 1, 2, 3}),
        (Scope(workspaces=("proj",)), {0, 1}),
        (Scope(workspaces=("proj", "default")), {0, 1, 3}),
        (Scope(workspaces=()), set()),
        (Scope(folders=("proj",)), {0, 1}),
        (Scope(folders=("proj/a/b", "proj-2")), {1, 2}),
        (Scope(folders=("pro",)), set()),
        (Scope(folders=()), set()),
        (Scope(documents=("one", "source-3")), {0, 2}),
        (Scope(documents=("absent",)), set()),
        (Scope(documents=()), set()),
        (Scope(file_types=("pdf",)), {0, 2}),
        (Scope(file_types=("",)), {3}),
        (Scope(file_types=()), set()),
        (Scope(workspaces=("proj",), file_types=("pdf",)), {0}),
        (Scope(workspaces=("proj",), folders=("proj-2",)), set()),
        (Scope(workspaces=("proj", "\0", "\ud800")), {0, 1}),
        (Scope(workspaces=("\ud800",)), set()),
        (Scope(workspaces=("proj*",)), set()),
        (Scope(document_types=("FILE",)), {0, 1, 2}),
        (Scope(document_types=("NOTE", "ARTIFACT")), {3}),
        (Scope(document_types=()), set()),
        (Scope(languages=("de", "")), {1, 2, 3}),
        (Scope(languages=("en",)), {0}),
        (Scope(languages=()), set()),
        (Scope(pages=((1, 2),)), {0}),
        (Scope(pages=((4, 4),)), {2}),
        (Scope(pages=((1, 1), (5, 90))), {0, 2}),
        (Scope(pages=((2, 2), (6, 6))), set()),
        (Scope(pages=()), set()),
        (Scope(sections=("Results",)), {0, 1}),
        (Scope(sections=("Tides", "Résumé / 结论")), {0, 2}),
        (Scope(sections=("results", "Result")), set()),
        (Scope(sections=()), set()),
        (Scope(modified_from=datetime(2002, 5, 1, tzinfo=UTC)), {1, 2}),
        (Scope(modified_before=datetime(2002, 5, 1, tzinfo=UTC)), {0}),
        (Scope(modified_from=datetime(2002, 1, 1, tzinfo=UTC), modified_before=datetime(2003, 1, 1, tzinfo=UTC)), {1}),
        (Scope(ingested_before=datetime(2012, 5, 1, tzinfo=timezone(timedelta(hours=-2)))), {0, 1}),
        (Scope(modified_from=datetime(2003, 5, 1, 0, 0, 0, 1, tzinfo=UTC)), {2}),
        (Scope(sections=("Results",), languages=("en",), pages=((1, 1),), document_types=("FILE",)), {0}),
    ],
)
def test_a_scope_restricts_by_every_part_that_is_given(index: LexicalIndex, scope: Scope, numbers: set[int]):
    index.add(entries(*LIBRARY))
    assert set(found(index, "harbour", scope)) == numbers


def test_a_scope_changes_which_entries_are_found_and_not_their_scores(index: LexicalIndex):
    index.add(entries(*LIBRARY, entry("harbour harbour", number=4, publication_id=5, doc_id="five", workspace="proj")))
    everywhere = index.search("harbour", k=10, scope=EVERYWHERE)
    narrow = index.search("harbour", k=10, scope=Scope(workspaces=("proj",)))
    assert narrow.rows() == [row for row in everywhere.rows() if row[1] in (1, 2, 5)]


def test_files_of_any_clock_are_kept_and_found_by_it(index: LexicalIndex):
    years = (1500, 1990, 2400)
    index.add(entries(*(entry("harbour", number=year, file_modified_at=datetime(year, 5, 1, tzinfo=UTC)) for year in years)))
    assert set(found(index, "harbour", Scope(modified_before=datetime(1980, 1, 1, tzinfo=UTC)))) == {1500}
    assert set(found(index, "harbour", Scope(modified_before=datetime.max.replace(tzinfo=UTC)))) == set(years)
    assert set(found(index, "harbour", Scope(modified_from=datetime(1980, 1, 1, tzinfo=UTC)))) == {1990, 2400}
    assert set(
        found(index, "harbour", Scope(modified_from=datetime.min.replace(tzinfo=UTC), modified_before=datetime.max.replace(tzinfo=UTC)))
    ) == set(years)


def test_a_scope_of_ten_thousand_documents_is_answered(index: LexicalIndex):
    index.add(entries(*LIBRARY))
    assert found(index, "harbour", Scope(documents=("one", *(f"absent-{number}" for number in range(10_000))))) == [0]


# The query language, where it is asked for


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("old harbour", {0, 1, 2}),
        ('"old harbour"', {0}),
        ('"The Old Harbours"', {0}),
        ('"harbour old"', {1}),
        ("harbour -old", {2}),
        ("harbour -wall -old", set()),
        ("+harbour wall", {0, 1, 2}),
        ("+wall harbour", {2}),
        ('+harbour -"old harbour"', {1, 2}),
        ("harb*", {0, 1, 2}),
        ("wal*", {2}),
        ("-old", set()),
        ("“quoted”", set()),
        ('"北京大学"', {3}),
        ('"北大"', set()),
        ("北京 -图书馆", set()),
        ("+", set()),
        ('- + * " ""', set()),
        ('"old harbour', {0}),
        ("(harbour AND old) OR content:harbour", {0, 1, 2}),
    ],
)
def test_operators_mean_something_only_when_they_are_asked_for(index: LexicalIndex, query: str, numbers: set[int]):
    index.add(texts("the old harbour", "a harbour, old and grey", "the harbour wall", "北京大学的图书馆"))
    hits = index.search(query, k=10, scope=EVERYWHERE, operators=True)
    assert {int(chunk_id.rpartition("::")[2]) for chunk_id in hits["chunk_id"]} == numbers


# Order and paging


def test_equal_scores_are_ordered_by_chunk_id(index: LexicalIndex):
    for doc_id in ("c", "a", "d", "b"):
        index.add(entries(entry("the same words in every text", doc_id=doc_id, publication_id=ord(doc_id))))
    hits = index.search("same words text", k=3, scope=EVERYWHERE)
    assert hits["chunk_id"].to_list() == ["a::0", "b::0", "c::0"]
    assert hits["score"].n_unique() == 1


def test_pages_joined_are_the_whole_ranking(index: LexicalIndex):
    rows = [entry("harbour " * (1 + number % 3) + "filler " * (number % 5), number=number) for number in range(500)]
    index.add(entries(*rows[:170]))
    index.add(entries(*rows[170:]))
    whole = index.search("harbour", k=1_000, scope=EVERYWHERE)
    pages = [index.search("harbour", k=37, offset=offset, scope=EVERYWHERE) for offset in range(0, 520, 37)]
    assert len(whole) == 500
    assert pl.concat(pages).rows() == whole.rows()
    assert whole.rows() == whole.sort("score", "chunk_id", descending=[True, False]).rows()


def test_twelve_thousand_equal_hits_can_be_paged_to_the_end(index: LexicalIndex):
    index.add(entries(*(entry("needle", number=number) for number in range(12_000))))
    ordered = sorted(f"{1:016x}::{number}" for number in range(12_000))
    assert index.search("needle", k=10, offset=11_995, scope=EVERYWHERE)["chunk_id"].to_list() == ordered[11_995:]
    assert index.search("needle", k=10, offset=12_000, scope=EVERYWHERE).is_empty()


def test_the_best_hit_is_first(index: LexicalIndex):
    index.add(texts("harbour and many other words that say nothing at all of interest", "harbour harbour", "other"))
    scores = index.search("harbour", k=10, scope=EVERYWHERE)["score"]
    assert found(index, "harbour") == [1, 0]
    assert scores[0] > scores[1] > 0


# Visible at once, whoever writes, whatever dies


def test_what_was_added_or_removed_is_seen_at_once_by_another_reader(backend: str, location: Path, index: LexicalIndex):
    reader = BACKENDS[backend](location)
    for publication_id in range(1, 26):
        index.add(entries(entry(f"needle{publication_id}", publication_id=publication_id)))
        assert len(reader.search(f"needle{publication_id}", k=1, scope=EVERYWHERE)) == 1
        index.remove([publication_id])
        assert reader.search(f"needle{publication_id}", k=1, scope=EVERYWHERE).is_empty()
    reader.close()


def _add_publications(backend: str, location: Path, publication_ids: Sequence[int]) -> None:
    index = BACKENDS[backend](location)
    for publication_id in publication_ids:
        index.add(entries(*(entry(f"harbour {publication_id}", number=number, publication_id=publication_id) for number in range(5))))
    index.close()


def test_two_processes_write_at_once_and_nothing_is_lost(backend: str, location: Path, index: LexicalIndex):
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_add_publications, args=(backend, location, range(first, 30, 2))) for first in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(DEADLINE_S)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert index.publications() == dict.fromkeys(range(30), 5)


def _add_until_killed(backend: str, location: Path, acknowledged: Any) -> None:
    index = BACKENDS[backend](location)
    publication_id = 0
    while True:
        index.add(entries(*(entry(f"harbour {number}", number=number, publication_id=publication_id) for number in range(200))))
        acknowledged.send(publication_id)
        publication_id += 1


@pytest.mark.parametrize("n_acknowledged", [0, 1, 4])
def test_a_writer_killed_while_writing_loses_nothing_acknowledged_and_blocks_nobody(
    backend: str, location: Path, index: LexicalIndex, n_acknowledged: int
):
    spawn = multiprocessing.get_context("spawn")
    received, acknowledged = spawn.Pipe(duplex=False)
    writer = spawn.Process(target=_add_until_killed, args=(backend, location, acknowledged))
    writer.start()
    for _ in range(n_acknowledged + 1):
        assert received.poll(DEADLINE_S)
        received.recv()
    assert writer.pid
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(DEADLINE_S)
    before = index.publications()
    assert set(before) >= set(range(n_acknowledged + 1))
    assert set(before.values()) == {200}
    index.add(entries(entry("after the crash", publication_id=1_000)))
    assert index.publications() == before | {1_000: 1}
    assert len(index.search("crash", k=5, scope=EVERYWHERE)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("delay_ms", range(0, 100, 3))
def test_a_writer_killed_at_any_instant_leaves_whole_publications(backend: str, location: Path, index: LexicalIndex, delay_ms: int):
    spawn = multiprocessing.get_context("spawn")
    received, acknowledged = spawn.Pipe(duplex=False)
    writer = spawn.Process(target=_add_until_killed, args=(backend, location, acknowledged))
    writer.start()
    assert received.poll(DEADLINE_S)
    time.sleep(delay_ms / 1_000)  # not a wait for something: the instant of the kill
    assert writer.pid
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(DEADLINE_S)
    assert set(index.publications().values()) == {200}
    index.add(entries(entry("after the crash", publication_id=1_000)))
    assert index.publications()[1_000] == 1
