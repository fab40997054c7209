"""Runs that a crash left under way are reported as failed; the others are left alone."""

import dagster as dg
import pytest

from pipelines.recovery import report_lost_runs

Status = dg.DagsterRunStatus


@dg.job
def nothing_to_do():
    pass


@pytest.mark.parametrize("status", [Status.STARTING, Status.STARTED, Status.CANCELING])
def test_a_run_that_was_under_way_is_reported_as_failed(status):
    with dg.instance_for_test() as instance:
        run = instance.create_run_for_job(nothing_to_do, status=status)
        assert report_lost_runs(instance) == [run.run_id]
        assert instance.get_run_by_id(run.run_id).status == Status.FAILURE
        assert report_lost_runs(instance) == []


@pytest.mark.parametrize("status", [Status.NOT_STARTED, Status.SUCCESS, Status.FAILURE, Status.CANCELED])
def test_any_other_run_keeps_its_status(status):
    with dg.instance_for_test() as instance:
        run = instance.create_run_for_job(nothing_to_do, status=status)
        assert report_lost_runs(instance) == []
        assert instance.get_run_by_id(run.run_id).status == status
