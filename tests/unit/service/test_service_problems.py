"""Errors as problems."""

import pytest

from stemma.errors import ConfigurationError, RequestError, StemmaError, Unavailable, error_codes
from stemma.library.listing import SupersededDocument, UnknownDocument
from stemma.retrieval.errors import EmbeddingMismatch, EmptyQuery, QueryTimeout, UnknownMethod
from stemma.service.problems import STATUS, problem_of
from stemma.store.postgres import StoreUnavailable


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (EmptyQuery("the query is empty"), 422, "empty_query"),
        (UnknownMethod("graph", known=["bm25"]), 422, "unknown_method"),
        (UnknownDocument("No document has the id x"), 404, "unknown_document"),
        (SupersededDocument("a" * 16, "source", "b" * 16), 410, "superseded_document"),
        (EmbeddingMismatch("another model"), 409, "embedding_mismatch"),
        (QueryTimeout("too long"), 503, "query_timeout"),
        (StoreUnavailable("connection refused"), 503, "store_unavailable"),
    ],
)
def test_a_condition_has_one_status_and_keeps_its_code(error, status, code):
    problem = problem_of(error, request_id="r")
    assert (problem.status, problem.code, problem.request_id) == (status, code, "r")
    assert problem.type == f"urn:stemma:problem:{code}"
    assert problem.remedy == error.remedy and not problem.detail.endswith(error.remedy)


def test_a_superseded_version_names_the_present_one():
    problem = problem_of(SupersededDocument("a" * 16, "source", "b" * 16))
    assert (problem.present_doc_id, problem.source_id) == ("b" * 16, "source")


def test_what_libpq_says_of_hosts_and_users_stays_in_the_log():
    problem = problem_of(StoreUnavailable('connection to "db.internal" as "admin" failed'))
    assert "internal" not in problem.model_dump_json() and "admin" not in problem.model_dump_json()


def test_every_condition_has_a_status_and_no_two_share_a_code():
    codes = error_codes()  # asserts that codes are unique
    assert len(codes) > 20
    for error in codes.values():
        assert any(kind in STATUS for kind in error.__mro__), error


@pytest.mark.parametrize(("kind", "status"), [(RequestError, 422), (Unavailable, 503), (ConfigurationError, 503), (StemmaError, 500)])
def test_a_condition_nobody_listed_has_the_status_of_its_kind(kind, status):
    error = kind("it happened")
    error.code, error.remedy = "unlisted", "Do something."
    assert problem_of(error).status == status
