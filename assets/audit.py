"""The audit: every layer as a whole, in a job of its own, so that runs of ten thousand documents stay cheap."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import polars as pl

from evals.expectations.layers import LAYERS, Layer, Published, drift, hold, orphaned
from evals.expectations.validation import Verdict
from resources.corpus import CorpusResource
from resources.expectations import in_words, summary
from stemma.audit.audit import audit
from stemma.audit.violations import CHECKS
from stemma.retrieval.published_facts import published
from stemma.store.embedding_indexes import active_embedding_index

PARTITION_TAGS = {"dagster/partition", "dagster/asset_partition_range_start"}

WHOLE, DRIFT, ORPHANS, PROMISES = "whole_layer", "drift", "no_orphans", "promises"

_SPECS = [
    *(
        dg.AssetCheckSpec(WHOLE, asset=layer, description=f"Every published document is held against the suite of `{layer}`, as runs do for theirs.")
        for layer in LAYERS
    ),
    dg.AssetCheckSpec(DRIFT, asset="documents", description="Few documents have failed, and their languages are those that the models know. A warning."),
    dg.AssetCheckSpec(DRIFT, asset="chunks", description="The lengths of chunks suit search: neither scraps nor beyond the model's window. A warning."),
    dg.AssetCheckSpec(ORPHANS, asset="corpus", description="Nothing is live without its document, and nobody says to be ready without one."),
    dg.AssetCheckSpec(PROMISES, asset="corpus", description="What `stemma audit` finds: rows, vectors, keyword entries, files and stage results agree."),
]  # fmt: skip

SAMPLE = 20

AUDIT_CHECKS = [dg.AssetCheckKey(spec.asset_key, spec.name) for spec in _SPECS]


@dg.multi_asset_check(name="audit_corpus", specs=_SPECS, can_subset=True)
def audit_corpus(context: dg.AssetCheckExecutionContext, corpus: CorpusResource) -> Iterator[dg.AssetCheckResult]:
    """Read what is published and hold it against what is expected; nothing is changed.

    The UI's *Materialize* takes the checks of an asset along, these too; a run of partitions leaves them alone.
    """
    if PARTITION_TAGS & context.op_execution_context.run.tags.keys():
        context.log.info("the audit looks at the whole corpus, in a job of its own; documents have the check `expectations`")
        return
    here = corpus.installation
    wanted = {(key.asset_key.to_user_string(), key.name) for key in context.selected_asset_check_keys}
    layers: list[Layer] = [layer for layer in LAYERS if (layer, WHOLE) in wanted]
    with here.pool.connection() as connection:
        live = Published(connection, list(published(connection).values()))
        verdicts = hold(live, layers, index_of=here.index_of)
        found = [(layer, WHOLE, dg.AssetCheckSeverity.ERROR, verdict) for layer, verdict in verdicts.items()]
        if any(name == DRIFT for _, name in wanted):
            index = active_embedding_index(connection)
            drifted = drift(live, spec=index and index.spec, knows=here.settings().bm25_language)
            found += [(layer, DRIFT, dg.AssetCheckSeverity.WARN, verdict) for layer, verdict in drifted.items()]
        if ("corpus", ORPHANS) in wanted:
            found.append(("corpus", ORPHANS, dg.AssetCheckSeverity.ERROR, orphaned(connection)))
    if ("corpus", PROMISES) in wanted:
        yield _promises(audit(here, now=datetime.now(UTC)))
    results = {(layer, name): _result(layer, name, severity, verdict) for layer, name, severity, verdict in found}
    for layer, name in sorted(wanted - {("corpus", PROMISES)}):
        yield results.get((layer, name)) or _result(layer, name, dg.AssetCheckSeverity.ERROR, Verdict(0, (), ()))


def _promises(violations: pl.DataFrame) -> dg.AssetCheckResult:
    counts = violations.group_by("check", maintain_order=True).len()
    sample = [
        f"- {check}: {subject}: {detail}"
        for check, subject, detail in violations.head(SAMPLE).select("check", "subject", "detail").iter_rows()
    ]
    return dg.AssetCheckResult(
        passed=violations.is_empty(),
        asset_key="corpus",
        check_name=PROMISES,
        description=", ".join(f"{count} {check}" for check, count in counts.iter_rows()) or f"{len(CHECKS)} promises hold",
        metadata={"violations": violations.height, "sample": dg.MetadataValue.md("\n".join(sample))},
    )


def _result(layer: str, name: str, severity: dg.AssetCheckSeverity, verdict: Verdict) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not verdict.broken,
        asset_key=layer,
        check_name=name,
        severity=severity,
        description=summary(verdict.broken),
        metadata=in_words(verdict.expected, verdict.broken) | {"rows": verdict.n_rows, "partitions": len(verdict.partitions)},
    )
