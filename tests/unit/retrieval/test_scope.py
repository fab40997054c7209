"""Scopes in the form in which the corpus stores its values."""

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from stemma.lexical.index import Scope
from stemma.retrieval.scope import EVERYWHERE, matches_nothing, normalized


def test_an_absent_part_restricts_nothing_and_an_empty_one_matches_nothing():
    assert not matches_nothing(EVERYWHERE)
    lists = [part.name for part in fields(Scope) if "tuple" in str(part.type)]
    assert len(lists) == 8
    assert all(matches_nothing(Scope(**{part: ()})) for part in lists)


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


def test_page_ranges_are_cut_to_the_numbers_that_a_page_can_have():
    assert normalized(Scope(pages=((-3, 2), (5, 10**12), (4, 3), (-2, 0)))).pages == ((1, 2), (5, 2**31 - 1))
    assert normalized(Scope(pages=((9, 8),))).pages == ()


def test_a_moment_without_a_time_zone_is_utc():
    moment = datetime(2024, 2, 29, 12)
    assert normalized(Scope(modified_from=moment)).modified_from == moment.replace(tzinfo=UTC)


def test_every_part_is_normalized():
    whole = Scope(**{part.name: () if "tuple" in str(part.type) else datetime(2024, 1, 1, tzinfo=UTC) for part in fields(Scope)})
    assert normalized(whole) == whole


def test_types_and_languages_match_whatever_their_case():
    assert normalized(Scope(document_types=("note",), languages=("DE",))) == Scope(document_types=("NOTE",), languages=("de",))
