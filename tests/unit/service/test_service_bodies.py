"""What a request may carry."""

import json
from dataclasses import fields

import pytest
from pydantic import ValidationError

from stemma.lexical.index import Scope
from stemma.retrieval.passages import Shape
from stemma.retrieval.scope import LAST_PAGE
from stemma.service.bodies import ScopeBody, SearchBody, ShapeBody
from stemma.service.bodies_conversations import stored_scope
from stemma.service.middleware import allowed_hosts


def body(text):
    return SearchBody.model_validate(json.loads(text))


def test_only_the_query_is_required():
    assert body('{"query": "x"}').model_dump() == {"query": "x", "method": None, "k": 10, "scope": None, "operators": False, "shape": None}


def test_null_and_absent_parts_are_the_same_and_an_empty_list_stays_one():
    assert body('{"query": "x", "scope": {"folders": null}}').scope.scope() == Scope()
    assert body('{"query": "x", "scope": {"folders": []}}').scope.scope() == Scope(folders=())


def test_lone_surrogates_and_nul_are_taken_out_of_the_query_before_validation():
    assert body(r'{"query": "a\ud800b\u0000c"}').query == "abc"


def test_a_scope_of_names_that_cannot_exist_matches_nothing():
    scope = body(r'{"query": "x", "scope": {"folders": ["\udfff"], "documents": ["d\u0000", "e"]}}').scope.scope()
    assert scope == Scope(folders=(), documents=("e",))


def test_a_scope_of_null_parts_is_everything_and_an_empty_one_is_nothing():
    assert stored_scope(None) is None and stored_scope(ScopeBody(folders=None)) is None
    assert stored_scope(ScopeBody()) == {} and stored_scope(ScopeBody(folders=[], documents=None)) == {"folders": []}


def test_a_surrogate_pair_is_one_character_and_stays():
    assert body(r'{"query": "\ud834\udd1e"}').query == "𝄞"


@pytest.mark.parametrize(
    "text", ['{"query": 1}', '{"query": null}', '{"query": "x", "scope": {"folder": []}}', '{"query": "x", "limit": 3}']
)
def test_a_body_of_another_shape_is_refused(text):
    with pytest.raises(ValidationError):
        body(text)


def test_a_service_on_loopback_answers_to_the_names_of_this_machine_only():
    assert allowed_hosts("127.0.0.1") == {"127.0.0.1", "localhost", "::1"}
    assert allowed_hosts("Stemma.lan") == {"127.0.0.1", "localhost", "::1", "stemma.lan"}
    assert allowed_hosts("0.0.0.0") is None


def test_every_part_of_a_scope_can_be_asked_for():
    assert set(ScopeBody.model_fields) == {part.name for part in fields(Scope)}
    assert set(ShapeBody.model_fields) == {part.name for part in fields(Shape)}


def test_pages_are_ranges_that_may_be_open():
    scope = body('{"query": "x", "scope": {"pages": [{"first": 3, "last": 5}, {"first": 9}]}}').request().scope
    assert scope.pages == ((3, 5), (9, LAST_PAGE))
