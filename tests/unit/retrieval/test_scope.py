"""Scopes in the form in which the corpus stores its values."""

import pytest

from stemma.lexical.index import Scope
from stemma.retrieval.scope import EVERYWHERE, matches_nothing, normalized


def test_an_absent_part_restricts_nothing_and_an_empty_one_matches_nothing():
    assert not matches_nothing(EVERYWHERE)
    assert all(matches_nothing(Scope(**{part: ()})) for part in ("workspaces", "folders", "documents", "file_types"))


@pytest.mark.parametrize("written", ["notes/2024", "notes/2024/", "/notes/2024"])
def test_slashes_around_a_folder_mean_nothing(written):
    assert normalized(Scope(folders=(written,))).folders == ("notes/2024",)


@pytest.mark.parametrize("root", ["", "/"])
def test_the_root_folder_is_the_whole_library(root):
    assert normalized(Scope(folders=(root, "a"))).folders is None


def test_an_empty_list_stays_empty():
    assert normalized(Scope(folders=(), file_types=())) == Scope(folders=(), file_types=())


def test_decomposed_names_are_composed_as_paths_are():
    assert normalized(Scope(workspaces=("Cafe\u0301",), folders=("Cafe\u0301/x",))) == Scope(workspaces=("Café",), folders=("Café/x",))


def test_file_types_are_lower_case_without_a_dot_and_ids_lower_case():
    assert normalized(Scope(documents=("ABCDEF0123456789",), file_types=(".PDF",))) == Scope(
        documents=("abcdef0123456789",), file_types=("pdf",)
    )


def test_a_value_that_postgresql_cannot_hold_matches_nothing():
    assert normalized(Scope(folders=("\ud800", "a\0b", "c"), documents=("\0",))) == Scope(folders=("c",), documents=())
