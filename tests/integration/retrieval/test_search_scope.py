"""Scopes: what each part lets through, in both arms."""

from datetime import UTC, datetime

import pytest

METHODS = ["semantic", "bm25", "hybrid"]
PATHS = [
    "proj/a.md", "proj/sub/b.md", "proj-2/c.md", "projx/d.md", "pro/e.md", "a_b/f.md", "axb/g.md", "a%b/h.md", "aXXb/i.md", "root.pdf",
    "Proj/j.md", "deep/proj/k.md",
]  # fmt: skip


@pytest.fixture
def found(corpus, ask):
    """The paths that a scope lets through, by every method the same."""
    corpus.published = {path: corpus.publish(path, f"a needle in {path}") for path in PATHS}

    def paths(**scope):
        answers = {method: {hit.source_path for hit in ask("needle", method=method, k=50, **scope).hits} for method in METHODS}
        assert answers["semantic"] == answers["bm25"] == answers["hybrid"]
        return answers["hybrid"]

    return paths


def test_no_restriction_lets_everything_through(found):
    assert found() == set(PATHS)


@pytest.mark.parametrize("part", ["workspaces", "folders", "documents", "file_types"])
def test_an_empty_list_matches_nothing(found, part):
    assert found(**{part: ()}) == set()


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("proj", {"proj/a.md", "proj/sub/b.md"}),
        ("proj/", {"proj/a.md", "proj/sub/b.md"}),
        ("proj/sub", {"proj/sub/b.md"}),
        ("proj/a.md", set()),
        ("pro", {"pro/e.md"}),
        ("a_b", {"a_b/f.md"}),
        ("a%b", {"a%b/h.md"}),
        ("%", set()),
        ("deep", {"deep/proj/k.md"}),
        ("absent", set()),
        ("", set(PATHS)),
    ],
)
def test_a_folder_is_its_subtree_by_whole_names(found, folder, expected):
    assert found(folders=(folder,)) == expected


def test_several_folders_are_joined_by_or(found):
    assert found(folders=("proj/sub", "axb")) == {"proj/sub/b.md", "axb/g.md"}


def test_workspaces_are_the_first_folder_or_the_default(found):
    assert found(workspaces=("proj", "default")) == {"proj/a.md", "proj/sub/b.md", "root.pdf"}


def test_documents_are_named_by_source_or_by_version(found, corpus):
    first, second = corpus.published["proj/a.md"], corpus.published["axb/g.md"]
    assert found(documents=(first.source_id, second.doc_id.upper())) == {"proj/a.md", "axb/g.md"}
    assert found(documents=("not-an-id",)) == set()


def test_file_types_match_whatever_their_case_and_dot(found):
    assert found(file_types=(".PDF",)) == {"root.pdf"}


def test_the_parts_are_joined_by_and(found):
    assert found(workspaces=("proj",), folders=("proj/sub",), file_types=("md",)) == {"proj/sub/b.md"}
    assert found(workspaces=("pro",), folders=("proj",)) == set()


def test_a_renamed_source_is_found_under_its_published_path_until_it_is_published_anew(found, corpus):
    with corpus.connection.transaction():
        corpus.connection.execute("UPDATE sources SET source_path = 'moved/a.md' WHERE source_path = 'proj/a.md'")
    assert "proj/a.md" in found(folders=("proj",))
    assert found(folders=("moved",)) == set()


def moment(day):
    return datetime(2024, 5, day, 12, tzinfo=UTC)


@pytest.fixture
def passages(corpus, ask):
    """The contents that a scope lets through, by every method the same, of two reports with pages, headings and clocks, and a note."""
    corpus.publish(
        "report.pdf", "needle one", "needle two", "needle three", pages=[1, 2, 7], modified_at=moment(1), ingested_at=moment(3), language="en",
        sections=[["Intro"], ["Method"], ["Method", "Results"]],
    )  # fmt: skip
    corpus.publish(
        "later.pdf", "needle four", pages=[2], modified_at=moment(2), ingested_at=moment(4), sections=[["Results"]], language="de"
    )
    corpus.publish("note", "needle five", document_type="NOTE", ingested_at=moment(5), sections=[[]])

    def contents(**scope):
        answers = {
            method: {hit.content.removeprefix("needle ") for hit in ask("needle", method=method, **scope).hits} for method in METHODS
        }
        assert answers["semantic"] == answers["bm25"] == answers["hybrid"]
        return answers["hybrid"]

    return contents


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"pages": ((2, 2),)}, {"two", "four"}),
        ({"pages": ((1, 1), (3, 9))}, {"one", "three"}),
        ({"pages": ((8, 99),)}, set()),
        ({"pages": ()}, set()),
        ({"pages": ((2, 7),), "documents": ("report.pdf",)}, set()),
        ({"sections": ("Method",)}, {"two", "three"}),
        ({"sections": ("Intro", "Results")}, {"one", "three", "four"}),
        ({"sections": ("method", "Metho")}, set()),
        ({"sections": ("Method",), "pages": ((7, 7),)}, {"three"}),
        ({"document_types": ("note",)}, {"five"}),
        ({"document_types": ("FILE", "NOTE"), "file_types": ("pdf",), "pages": ((7, 7),)}, {"three"}),
        ({"languages": ("DE", "")}, {"four", "five"}),
        ({"languages": ("en",), "sections": ("Results",)}, {"three"}),
        ({"languages": ("fr",)}, set()),
        ({"modified_from": moment(2)}, {"four"}),
        ({"modified_before": moment(2)}, {"one", "two", "three"}),
        ({"modified_from": moment(1), "modified_before": moment(1)}, set()),
        ({"ingested_from": moment(4)}, {"four", "five"}),
        ({"ingested_from": moment(3), "ingested_before": moment(4), "sections": ("Results",)}, {"three"}),
        ({"modified_from": moment(1).replace(tzinfo=None)}, {"one", "two", "three", "four"}),
    ],
)
def test_pages_headings_types_and_clocks_narrow_down(passages, scope, expected):
    assert passages(**scope) == expected
