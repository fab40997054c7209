"""What a crash left in Dagster's storage, put right before the daemon starts: run as `python -m pipelines.recovery`.

A run whose process died with everything else stays STARTED for ever and keeps its slot; nothing in Dagster notices. The caller
vouches that no run process is alive. Opening the storage here, alone, also creates its schema before two servers would at once.
"""

import dagster as dg

LEFT_IN_PROGRESS = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


def report_lost_runs(instance: dg.DagsterInstance) -> list[str]:
    """Report as failed every run that looks as if it were under way, and return their ids."""
    lost = instance.get_runs(dg.RunsFilter(statuses=list(LEFT_IN_PROGRESS)))
    for run in lost:
        instance.report_run_failed(run, "Stemma was stopped while this run was under way; the reconciler takes its documents up again.")
    return [run.run_id for run in lost]


if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        for run_id in report_lost_runs(instance):
            print(f"reported run {run_id} as failed: it was under way when Stemma stopped")  # noqa: T201
