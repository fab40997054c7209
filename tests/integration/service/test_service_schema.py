"""Whatever the description allows, and much that it does not, is answered without a fault of the service."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

EXAMPLES = int(os.environ.get("STEMMA_SCHEMA_EXAMPLES", "2"))
"""Requests per operation that fit the description, and as many that do not."""

ENDLESS = "/api/progress"  # as long as uploads of this very test wait; its own tests follow it


@pytest.fixture(scope="module")
def description(corpus, client):
    corpus.publish("described/a.md", "one passage")
    return schemathesis.openapi.from_dict(client.get("/openapi.json").json())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["described", "malformed"])
def test_no_request_is_a_fault_of_the_service(description, client, mode):
    operations = [found.ok() for found in description.get_all_operations()]
    assert len(operations) > 30
    faults = []
    for operation in operations:
        if operation.path == ENDLESS:
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            derandomize=True,
            database=None,
        )
        def answered(case):
            request = case.as_transport_kwargs(base_url="http://127.0.0.1:8765")
            request.pop("cookies", None)
            response = client.request(**request)
            if response.status_code >= 500 and response.status_code != 503:
                faults.append((case.method, case.formatted_path, response.text[:300]))

        try:
            answered()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE  # it takes nothing that could be malformed
    assert faults == []
