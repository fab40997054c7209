"""The job `prune`: `stemma prune` for those who live in the Dagster UI, or on a schedule."""

from datetime import UTC, datetime

import dagster as dg

from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.library.pruning import prune_and_delete


class Prune(dg.Config):
    """Which vanished documents go. Empty: those that nothing holds back, as the sensor `reconcile` prunes them at each look."""

    confirm: bool = False
    """The missing files are gone indeed: prune what is held back because it vanished in bulk, too."""
    workspaces: list[str] = []  # noqa: RUF012 -- pydantic copies the default
    """Keys of workspaces; empty: all of them."""
    dry_run: bool = False
    """Only say what is missing and what would be pruned."""


@dg.op
def prune_vanished(context: dg.OpExecutionContext, config: Prune, corpus: CorpusResource) -> None:
    """Mark what vanished for deletion, carry the deletion out, and say what is held back and why."""
    here = corpus.installation
    found = prune_and_delete(
        here.pool, here.settings(), here.remove_sparse,
        confirm=config.confirm, workspaces=config.workspaces or None, dry_run=config.dry_run, now=datetime.now(UTC),
    )  # fmt: skip
    for loss in found.losses:
        context.log.info("%s of %s files are missing in %s", loss.n_missing, loss.n_files, loss.folder or "the library's root")
    for notice in () if config.confirm else found.notices:
        context.log.warning(notice)
    context.log.info("%s documents %s", len(found.marked), "would be pruned" if config.dry_run else "pruned")


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def prune() -> None:
    """Remove documents whose files vanished from the library; `confirm` takes what is held back because a disk may be away, too."""
    prune_vanished()
