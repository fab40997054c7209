"""Names in mails and archives become paths that stay inside, differ from each other and can be turned back."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stemma.parsing.member_names import MAX_MEMBER_PATH_BYTES, MemberPaths, member_names, member_path

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates and NUL included
HOSTILE = st.sampled_from(
    ["", ".", "..", "%", "%25", "%2F", "%~2", "a/b", "/", "\0", "@note", "CON", "a\\b", "e\u0301", "\u00e9", "\ud800", "x.pdf"]
)
NAMES = st.lists(HOSTILE | ANY_TEXT, min_size=1, max_size=4)


@given(NAMES)
@example(["..", "..", "etc", "passwd"])
@example(["%2E", "%252E"])
def test_a_path_says_its_names_and_climbs_nowhere(names):
    path = member_path(names)
    assert member_names(path) == tuple(unicodedata.normalize("NFC", name) for name in names)
    components = path.split("/")
    assert len(components) == len(names)
    assert not {"", ".", ".."} & set(components)
    path.encode()  # text that PostgreSQL, JSON and URLs can carry
    assert not any(ord(character) < 32 for character in path)


@given(st.lists(NAMES, max_size=12))
@example([["a.pdf"], ["a.pdf"], ["a%~2.pdf"]])
@example([["e\u0301"], ["\u00e9"]])
@example([["x" * 2_000 + ".pdf"], ["x" * 2_000 + ".pdf"], ["x" * 2_001 + ".pdf"]])
def test_no_two_members_share_a_path_and_the_same_names_give_the_same_paths(members):
    given, again = MemberPaths(), MemberPaths()
    paths = [given.of(names) for names in members]
    assert len(set(paths)) == len(paths)
    assert paths == [again.of(names) for names in members]
    assert all(len(path.encode()) <= MAX_MEMBER_PATH_BYTES + 20 for path in paths)


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (["report.pdf"], "report.pdf"),
        (["folder", "report.pdf"], "folder/report.pdf"),
        (["..", "..", "etc", "passwd"], "%2E./%2E./etc/passwd"),
        (["", "etc", "passwd"], "%/etc/passwd"),
        (["a/b.txt"], "a%2Fb.txt"),
        (["@note"], "@note"),
        (["a\0b"], "a%00b"),
        (["100%.txt"], "100%.txt"),
        (["100%25.txt"], "100%2525.txt"),
        (["Re\u0301sume\u0301.doc"], "R\u00e9sum\u00e9.doc"),
    ],
)
def test_ordinary_names_stay_as_they_are_and_the_others_are_marked(names, path):
    assert member_path(names) == path


def test_a_repeated_name_is_numbered_before_its_extension_and_case_tells_names_apart():
    paths = MemberPaths()
    assert [paths.of([name]) for name in ("a.pdf", "a.pdf", "A.pdf", "a.pdf", "notes", "notes")] == [
        "a.pdf", "a%~2.pdf", "A.pdf", "a%~3.pdf", "notes", "notes%~2",
    ]  # fmt: skip
    assert member_names("a%~2.pdf") == ("a.pdf",)


def test_a_long_name_is_cut_to_its_beginning_and_a_hash_and_keeps_its_extension():
    path = MemberPaths().of(["x" * 2_000 + ".pdf"])
    assert path.startswith("x" * 200 + "%~") and path.endswith(".pdf") and len(path) == 200 + 2 + 32 + 4
