"""Changing indexes from Dagster: the job `reembed`, what tells Dagster of work done outside its runs, and the sensor that tends the indexes."""

from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
from pydantic import Field

from assets.partitions import DOCUMENTS, OWNERS
from resources.corpus import CorpusResource
from resources.observations import observe_settings, observe_sources
from resources.recorder import CHAIN, record_made_elsewhere
from stemma.embedding.models import EmbeddingModelUnavailable
from stemma.settings import Settings
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.keyword_rebuild import tend_keyword_index
from stemma.stages.reembed import Wish, abandon_reembed, drop_retired_indexes, plan_reembed, unmet_wish
from stemma.stages.reembed import reembed as embed_anew
from stemma.store.made_outside_runs import made_outside_runs, made_versions, published_hashes, reported, restored

TEND_INTERVAL_S = 15
TEND_BUDGET_S = 10.0
"""Longest time one tick fills a keyword index; the next goes on."""

WISH_TAG = "stemma/wish"

MADE_OUTSIDE_RUNS = ("embeddings", "bm25_index", "corpus")
"""In the order of the graph, so that each is reported with the inputs that it has now."""


class Reembed(dg.Config):
    """What to do. As it stands: embed the corpus by the model that EMBEDDING_MODEL names, and switch to it."""

    model: str = Field("", description="`minilm`, or the path of a local sentence-transformers folder. Empty: what EMBEDDING_MODEL names.")
    rollback: bool = Field(False, description="Go back to the model that was active before; only what was published since is filled.")
    dry_run: bool = Field(False, description="Only say what it would take.")
    abandon: bool = Field(False, description="Stop building what is not active; nothing else is done.")
    drop_retired: bool = Field(False, description="Drop the vectors of models that are no longer active; nothing else is done.")


@dg.op
def embed_corpus(context: dg.OpExecutionContext, config: Reembed, corpus: CorpusResource) -> None:
    """Fill a second index beside the active one, then switch in one transaction; searches go on meanwhile."""
    here = corpus.installation
    context.add_output_metadata(_facts(_carry_out(context, here, config)))
    if not config.dry_run:
        _report(context, here)


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def reembed() -> None:
    """Embed the corpus by another model beside the active one, and switch when every published chunk has its vector. May be ended and started again at any time."""
    embed_corpus()


@dg.op
def report_made(context: dg.OpExecutionContext, corpus: CorpusResource) -> None:
    """Report the versions of what `stemma reembed` or `stemma db index` made, and of every layer after a restore."""
    _report(context, corpus.installation)


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def record_made_outside_runs() -> None:
    """Tell Dagster what the command line made for the whole corpus at once, so that no partition looks stale that is not. Started by the sensor `indexes`."""
    report_made()


@dg.sensor(
    jobs=[reembed, record_made_outside_runs],
    minimum_interval_seconds=TEND_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    owners=OWNERS,
    description="Makes a lost keyword index again from PostgreSQL's rows, switches to one that is complete, removes retired ones, and says "
    "which embedding index is wanted and not there yet; with the policy `eager` for embeddings it starts the job that fills it and switches.",
)
def indexes(context: dg.SensorEvaluationContext, corpus: CorpusResource) -> dg.SensorResult | dg.SkipReason:
    """One look at the indexes."""
    here = corpus.installation
    said = tend_keyword_index(here, budget_s=TEND_BUDGET_S)
    requests: list[dg.RunRequest] = []
    try:
        wish = unmet_wish(here)
    except EmbeddingModelUnavailable as error:
        said.append(str(error))
    else:
        if wish is not None:
            said.append(wish.sentence)
            requests += _meet(context.instance, here.settings(), wish, said)
    with here.pool.connection() as connection:
        made_at = made_outside_runs(connection)
    if made_at is not None:
        requests.append(dg.RunRequest(job_name=record_made_outside_runs.name, run_key=made_at))
    message = "; ".join(said) or "the indexes are in order"
    context.log.info(message)
    return dg.SensorResult(run_requests=requests) if requests else dg.SkipReason(message)


def _meet(instance: dg.DagsterInstance, settings: Settings, wish: Wish, said: list[str]) -> list[dg.RunRequest]:
    """A run of `reembed` for the wish, if the policy is eager: one at a time, and after failures a few times with a doubling wait."""
    if settings.embedding_policy != "eager":
        return []
    tagged = dg.RunsFilter(job_name=reembed.name, tags={WISH_TAG: wish.name})
    records = instance.get_run_records(tagged, limit=settings.max_attempts)
    if any(record.dagster_run.status in NOT_FINISHED_STATUSES for record in records):
        said.append("a run is at it")
        return []
    ended_badly = [record for record in records if not record.dagster_run.is_success]
    if len(ended_badly) >= settings.max_attempts:
        said.append(f"{len(ended_badly)} runs failed or were cancelled: start the job `reembed` once what they say is mended")
        return []
    wait_s = settings.retry_backoff_s * 2 ** (len(ended_badly) - 1) if ended_badly else 0.0
    ended_at = ended_badly[0].end_time or 0.0 if ended_badly else 0.0
    if ended_at <= datetime.now(UTC).timestamp() < ended_at + wait_s:  # one that ended in the future: the clock was set back since
        said.append("the last run failed or was cancelled; another follows")
        return []
    run_key = f"{wish.name}:{records[0].dagster_run.run_id if records else 'first'}"
    return [dg.RunRequest(job_name=reembed.name, run_key=run_key, tags={WISH_TAG: wish.name})]


def _carry_out(context: dg.OpExecutionContext, here: Installation, config: Reembed) -> Mapping[str, str | int | float | bool | None]:
    if config.abandon:
        return {"abandoned": ", ".join(index.spec.model for index in abandon_reembed(here))}
    if config.drop_retired:
        return {"dropped": ", ".join(index.spec.model for index in drop_retired_indexes(here))}
    if config.dry_run:
        plan = plan_reembed(here, config.model or None, rollback=config.rollback)
        return {
            "model": plan.model, "state": plan.state, "chunks": plan.coverage.n_chunks, "covered": plan.coverage.n_covered,
            "to_fill": plan.cost.n_chunks, "model_calls": plan.cost.n_model_calls,
        }  # fmt: skip
    done = embed_anew(
        here,
        config.model or None,
        rollback=config.rollback,
        progress=lambda covered: context.log.info(f"{covered.n_covered} of {covered.n_chunks} chunks have their vector"),
    )
    return {
        "model": done.model, "previous": done.previous, "switched": done.switched, "chunks": done.n_chunks, "filled": done.n_filled,
        "embedded": done.n_embedded, "coverage": 1.0,
    }  # fmt: skip


def _facts(facts: Mapping[str, str | int | float | bool | None]) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in facts.items() if value is not None}


def _report(context: dg.OpExecutionContext, here: Installation) -> None:
    from pipelines.definitions import defs  # which assembles this module too

    with here.pool.connection() as connection:
        made_at, restored_at = made_outside_runs(connection), restored(connection)
        stages = CHAIN if restored_at else MADE_OUTSIDE_RUNS
        versions = {stage: made_versions(connection, stage) for stage in stages}
        hashes = published_hashes(connection) if restored_at else {}
    if made_at is None:
        return
    observe_settings(context.instance, wanted_fingerprints(here.settings()))
    if hashes:
        context.instance.add_dynamic_partitions(DOCUMENTS, list(hashes))
        observe_sources(context, hashes)
    graph = defs.resolve_asset_graph()
    for stage in stages:
        if versions[stage]:
            record_made_elsewhere(context, graph, dg.AssetKey(stage), versions[stage])
        context.log.info(f"{stage}: {len(versions[stage])} partitions reported")
    with here.pool.connection() as connection:
        reported(connection, made_at, restored_at)
