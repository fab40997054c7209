"""The job `prune`, and the partitions of what is gone."""

import shutil

from assets.partitions import DOCUMENTS


def run(pipeline, **config):
    from pipelines.definitions import defs

    return defs.resolve_job_def("prune").execute_in_process(
        instance=pipeline.instance, run_config={"ops": {"prune_vanished": {"config": config}}}, raise_on_error=False
    )


def paths(corpus) -> list[str]:
    return [path for (path,) in corpus.rows("SELECT source_path FROM sources ORDER BY 1")]


def test_the_job_prunes_what_an_operator_confirms_and_nothing_before(pipeline, corpus):
    corpus.write("sales/a.txt", "A text about storks.")
    corpus.write("b.txt", "A text about herons.")
    corpus.ingest()
    shutil.rmtree(corpus.settings.library / "sales")
    for _ in range(3):
        corpus.look()
    for config in ({}, {"confirm": True, "dry_run": True}, {"confirm": True, "workspaces": ["default"]}):
        assert run(pipeline, **config).success
        assert paths(corpus) == ["b.txt", "sales/a.txt"]
    assert run(pipeline, confirm=True).success
    assert paths(corpus) == ["b.txt"]
    assert corpus.keyword_hits("storks") == []
    assert not run(pipeline, workspaces=["unheard"]).success


def test_partitions_of_what_is_gone_leave_the_set_but_not_while_a_run_may_name_them(pipeline, corpus):
    import dagster as dg

    from pipelines.sensors import _forget_partitions

    instance, pool = pipeline.instance, corpus.installation.pool
    instance.add_dynamic_partitions(DOCUMENTS, ["gone.txt", "stays.txt"])
    with pool.connection() as connection:
        connection.execute("INSERT INTO retired_partitions VALUES ('gone.txt', now())")
    context = dg.build_sensor_context(instance=instance)
    waiting = instance.create_run_for_job(_job(), status=dg.DagsterRunStatus.STARTED)
    _forget_partitions(context, pool, ("gone.txt",))
    assert set(instance.get_dynamic_partitions(DOCUMENTS)) == {"gone.txt", "stays.txt"}
    instance.report_run_canceled(waiting)
    _forget_partitions(context, pool, ("gone.txt",))
    assert set(instance.get_dynamic_partitions(DOCUMENTS)) == {"stays.txt"}
    assert corpus.rows("SELECT * FROM retired_partitions") == []


def _job():
    from pipelines.definitions import defs

    return defs.resolve_job_def("prune")
