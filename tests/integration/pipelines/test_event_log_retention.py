"""The event log is kept bounded, and nothing that is true now is forgotten: these fail when an upgrade changes Dagster's tables."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import sqlalchemy as db
from test_batch_runs import counts, status

from assets.partitions import DOCUMENTS
from resources import event_log
from resources.event_log import prune_event_log
from resources.recorder import CHAIN

TEXT = "A heron stands in the reeds of lake number {}."


def run_batch(pipeline, corpus) -> str:
    """The id of the run over all that is stale."""
    [batch] = corpus.look().batches
    pipeline.batch_run(batch)
    return pipeline.instance.get_runs(limit=1)[0].run_id


def value(pipeline, query: str):
    with pipeline.instance.event_log_storage.index_connection() as connection:
        return connection.execute(db.text(query)).scalar()


def prune(pipeline, *, days: float = -1) -> event_log.Pruned:
    return prune_event_log(pipeline.instance, partitions=DOCUMENTS, before=datetime.now(UTC) - timedelta(days=days))


def staleness(pipeline, *partitions: str) -> set[str]:
    return {status(pipeline, asset, partition) for asset in CHAIN for partition in partitions}


def test_what_is_superseded_goes_and_the_present_stays(pipeline, corpus, monkeypatch):
    monkeypatch.setattr(event_log, "RUNS_AT_ONCE", 1)
    corpus.write("a.txt", TEXT.format(1))
    corpus.write("b.txt", TEXT.format(2))
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    first = run_batch(pipeline, corpus)
    corpus.write("a.txt", TEXT.format(3))
    second = run_batch(pipeline, corpus)
    corpus.write("a.txt", TEXT.format(4))
    third = run_batch(pipeline, corpus)
    n_events = value(pipeline, "SELECT count(*) FROM event_logs")
    states = {asset: counts(pipeline, asset) for asset in CHAIN}
    logs = Path(pipeline.instance.storage_directory()) / first / "compute_logs"
    logs.mkdir(parents=True, exist_ok=True)

    assert prune(pipeline, days=1) == event_log.Pruned(runs=0, events=0, kept_runs=0)
    assert logs.exists()
    pruned = prune(pipeline)
    assert (pruned.runs, pruned.kept_runs) == (1, 2)
    assert set(pipeline.instance.get_run_ids()) == {first, third}
    assert pipeline.instance.get_run_by_id(second) is None
    assert not logs.exists()
    assert value(pipeline, "SELECT count(*) FROM event_logs") == n_events - pruned.events < n_events / 3
    assert value(pipeline, "SELECT count(*) FROM asset_event_tags WHERE event_id NOT IN (SELECT id FROM event_logs)") == 0
    assert prune(pipeline).events == 0

    pipeline.instance.wipe_asset_cached_status([dg.AssetKey(asset) for asset in CHAIN])
    assert {asset: counts(pipeline, asset) for asset in CHAIN} == states
    assert staleness(pipeline, "a.txt", "b.txt") == {"FRESH"}
    parsed = dg.AssetCheckKey(dg.AssetKey("documents"), "parsed")
    checks = pipeline.instance.event_log_storage.get_asset_check_partition_info([parsed])
    assert {info.partition_key: info.latest_execution_status.name for info in checks}["bad.docx"] == "FAILED"


def test_what_a_fresh_partition_was_made_from_stays_and_what_left_the_set_goes(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    corpus.write("gone.txt", TEXT.format(2))
    run_batch(pipeline, corpus)
    assert pipeline.ui_run("a.txt", assets=["documents"]).success  # the same version once more: chunks points to the event before
    assert staleness(pipeline, "a.txt") == {"FRESH"}
    pipeline.instance.delete_dynamic_partition(DOCUMENTS, "gone.txt")
    prune(pipeline)
    assert staleness(pipeline, "a.txt") == {"FRESH"}
    assert value(pipeline, "SELECT count(*) FROM event_logs WHERE partition = 'gone.txt'") == 0


def test_the_job_takes_the_days_of_the_setting_or_its_own(pipeline, corpus):
    from pipelines.definitions import defs

    instance = pipeline.instance
    old = instance.create_run_for_job(defs.resolve_job_def("prune_event_log"), status=dg.DagsterRunStatus.SUCCESS)

    def age(days: int) -> None:
        with instance.run_storage.connect() as connection:
            ended = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
            connection.execute(db.text("UPDATE runs SET update_timestamp = :at WHERE run_id = :id"), {"at": ended, "id": old.run_id})

    def run(**config) -> bool:
        """Whether the old run is still there afterwards."""
        done = defs.resolve_job_def("prune_event_log").execute_in_process(
            instance=instance, run_config={"ops": {"remove_old_runs": {"config": config}}}
        )
        assert done.success
        return instance.has_run(old.run_id)

    age(corpus.settings.event_log_retention_days - 1)
    assert run()
    assert not run(days=7)
