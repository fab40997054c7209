"""Names survive the way from disk to source_path to partition key and back."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.library.paths import (
    DEFAULT_WORKSPACE,
    MAX_NAME_KEY_BYTES,
    disk_name,
    document_id,
    file_type,
    fitted,
    folder_names,
    folders_of,
    partition_key,
    source_name,
    source_names,
    source_path_of,
    workspace_key,
)

FORBIDDEN_IN_KEYS = re.compile(r"\.\.\.|[\x00-\x1f]|^@|^$")

disk_names = st.binary(min_size=1, max_size=40).map(lambda name: re.sub(rb"[\x00/]", b"%", name)) | st.text(
    alphabet=st.one_of(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), st.sampled_from("%258FAe~.\u0301é")), min_size=1, max_size=20
).map(str.encode)  # fmt: skip
paths = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("%0125E4@.\n")), max_size=30)


@given(paths)
def test_a_partition_key_leads_back_to_its_path(path: str):
    assert source_path_of(partition_key(path)) == path


@given(paths)
def test_a_partition_key_holds_nothing_that_dagster_forbids(path: str):
    assert not FORBIDDEN_IN_KEYS.search(partition_key(path))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("reports/Q3 50%, a|b.txt", "reports/Q3 50%, a|b.txt"),
        ("percent%20name.txt", "percent%20name.txt"),
        ("three...dots.txt", "three..%2Edots.txt"),
        ("new\nline.txt", "new%0Aline.txt"),
        ("@note/x.txt", "%40note/x.txt"),
        ("already%0Aescaped", "already%250Aescaped"),
    ],
)
def test_a_partition_key_is_encoded_only_where_it_must_be(path: str, key: str):
    assert partition_key(path) == key


def test_the_partition_of_a_note_is_no_file():
    with pytest.raises(ValueError, match="no file"):
        source_path_of("@note/0d4f0d7e")


@given(disk_names)
def test_a_name_leads_back_to_its_bytes_or_to_their_nfc_spelling(name: bytes):
    spelled = source_name(name)
    try:
        assert disk_name(spelled) == unicodedata.normalize("NFC", name.decode("utf-8")).encode()
    except UnicodeDecodeError:
        assert disk_name(spelled) == name


@given(disk_names)
def test_a_name_is_nfc_text_that_utf8_can_carry(name: bytes):
    spelled = source_name(name)
    assert spelled == unicodedata.normalize("NFC", spelled) == spelled.encode().decode()


@given(st.lists(disk_names, unique=True, max_size=8))
def test_the_names_of_a_folder_are_all_different(names: list[bytes]):
    assert len(set(source_names(names))) == len(names)


@given(st.lists(disk_names, unique=True, max_size=8))
def test_the_names_of_a_folder_do_not_depend_on_the_order_they_are_met_in(names: list[bytes]):
    assert dict(zip(names, source_names(names), strict=True)) == dict(zip(names[::-1], source_names(names[::-1]), strict=True))


def test_the_nfc_spelling_keeps_the_plain_name_and_the_other_is_escaped():
    nfc, nfd = "Résumé.txt".encode(), unicodedata.normalize("NFD", "Résumé.txt").encode()
    assert source_names([nfd, nfc]) == ["Re%CC%81sume%CC%81.txt", "Résumé.txt"]


def test_an_nfd_name_alone_reads_as_its_nfc_spelling():
    assert source_names([unicodedata.normalize("NFD", "Résumé.txt").encode()]) == ["Résumé.txt"]


def test_bytes_that_are_not_utf8_are_escaped_one_by_one():
    assert source_name(b"bad\xff\xfe.txt") == "bad%FF%FE.txt"


def test_a_name_that_looks_escaped_is_told_apart_from_one_that_is():
    assert source_names([b"bad%FF.txt", b"bad\xff.txt"]) == ["bad%25FF.txt", "bad%FF.txt"]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=3000))
def test_a_listed_path_and_its_key_fit_into_an_index(path: str):
    listed, _ = fitted(path, path.encode())
    assert len(listed.encode()) <= 2_000
    assert len(partition_key(listed).encode()) <= 2_400


def test_two_long_paths_with_one_beginning_are_listed_apart():
    one, other = ("d" * 2_000 + "/one.txt", "d" * 2_000 + "/other.txt")
    assert fitted(one, one.encode())[0] != fitted(other, other.encode())[0]


def test_a_path_over_the_limit_says_so():
    _, error = fitted("d" * 2_001, b"d" * 2_001)
    assert error is not None
    assert error.code == "path_too_long"


@pytest.mark.parametrize("path", ["a.txt", "é" * 1_000, "d" * 2_000])
def test_a_path_at_the_limit_is_its_own(path: str):
    assert fitted(path, path.encode()) == (path, None)


def test_no_disk_name_reads_as_a_cut_path():
    listed, _ = fitted("d" * 2_001, b"d" * 2_001)
    assert source_name(listed.encode()) != listed


def test_the_first_folder_is_the_workspace():
    assert (workspace_key("sales/2024/a.txt"), workspace_key("a.txt")) == ("sales", DEFAULT_WORKSPACE)


def test_the_folders_of_a_path_are_listed_from_the_top():
    assert folders_of("a/b/c.txt") == ["a", "a/b"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a/b.PDF", "pdf"), ("archive.tar.gz", "gz"), ("a.b/noextension", ""), (".profile", ""), ("trailing dot..txt", "txt"), ("  end .txt", "txt")],
)  # fmt: skip
def test_a_file_type_is_the_last_extension_in_lower_case(path: str, kind: str):
    assert file_type(path) == kind


def test_folders_below_the_eighth_are_joined_into_it():
    path = "/".join(["ws", *"abcdefghij", "file.txt"])
    assert [folder.name for folder in folder_names(path, path.encode())] == [*"abcdefg", "h / i / j"]


def test_spellings_of_one_folder_share_its_key():
    nfc, nfd = "ws/STRASSE é/f", unicodedata.normalize("NFD", "ws/Straße é/f")
    keys = {folder_names(path, path.encode())[0].name_key for path in (nfc, unicodedata.normalize("NFC", nfd))}
    assert keys == {"strasse é"}


def test_a_folder_keeps_its_spelling_on_disk():
    spelled = unicodedata.normalize("NFD", "ws/é/f")
    assert folder_names("ws/é/f", spelled.encode())[0].disk_name == spelled.split("/")[1]


@given(
    st.lists(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=80), min_size=1, max_size=60)
)
def test_a_folder_key_fits_into_an_index(names: list[str]):
    path = "/".join(["ws", *names, "f"])
    assert all(len(folder.name_key.encode()) <= MAX_NAME_KEY_BYTES for folder in folder_names(path, path.encode()))


def test_a_doc_id_differs_for_another_path_and_for_other_bytes():
    assert len({document_id("a.txt", "0" * 64), document_id("b.txt", "0" * 64), document_id("a.txt", "1" * 64)}) == 3


def test_a_doc_id_is_the_beginning_of_the_sha256_of_path_and_hash():
    assert document_id("a.txt", "00") == "70da1bedc0dd3d8e"
