"""Backups from Dagster: the job that exports a bundle, proves it, and removes those that no rule keeps."""

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from pydantic import Field

from assets.backup_bundles import BUNDLES, backup_bundles
from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.bundles.export import export_corpus
from stemma.bundles.restore import verify_bundle
from stemma.bundles.retention import Keep, apply_retention
from stemma.bundles.shelf import Shelf, exports_of


class BackUp(dg.Config):
    """What to export. As it stands: the corpus, if anything changed since the last bundle, into `stemma-exports` of the library."""

    label: str = Field("", description="A part of the bundle's name: such a bundle is always made, and never removed by the retention.")
    at: str = Field("", description="Folder or universal path (s3://…) of the bundles. Empty: `stemma-exports` in the library.")
    with_files: bool = Field(False, description="Take along the files that the documents were made of.")
    with_conversations: bool = Field(False, description="Take along the conversations; a restore brings them back only when asked to.")
    force: bool = Field(False, description="Also when nothing changed since the last bundle.")
    verify: bool = Field(True, description="Read the new bundle back and prove every row and byte of it.")
    retention: bool = Field(True, description="Afterwards remove what no BACKUP_KEEP setting keeps.")


@dg.op
def export_bundle(context: dg.OpExecutionContext, config: BackUp, corpus: CorpusResource) -> None:
    """Write a bundle from one snapshot, prove it, and apply the retention; nobody waits for it."""
    here = corpus.installation
    settings = here.settings()
    shelf = Shelf(config.at) if config.at else exports_of(settings)
    done = export_corpus(
        here, label=config.label or None, shelf=shelf, with_files=config.with_files, with_conversations=config.with_conversations,
        force=config.force,
    )  # fmt: skip
    if not done.new:
        context.log.info(f"nothing changed since {done.name}: no new bundle was made")
        return
    if config.verify:
        verify_bundle(here, done.name, shelf=shelf)
    context.instance.add_dynamic_partitions(BUNDLES, [done.name])
    context.log_event(
        dg.AssetMaterialization(
            backup_bundles.key,
            partition=done.name,
            metadata={
                "place": done.place, "documents": done.n_documents, "chunks": done.n_chunks, "bytes": done.size_bytes, "proved": config.verify,
                "files_left_out": len(done.left_out),
            },
            tags={DATA_VERSION_TAG: done.data_version},
        )
    )  # fmt: skip
    if config.retention:
        for name in apply_retention(shelf, Keep.of(settings)):
            context.instance.delete_dynamic_partition(BUNDLES, name)
            context.log.info(f"removed {name}: no BACKUP_KEEP setting keeps it")


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def back_up() -> None:
    """Export the corpus as a bundle if anything changed since the last one, prove it, and remove bundles that no rule keeps."""
    export_bundle()
