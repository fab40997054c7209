"""`/api/backups`: the bundles, and making, proving and restoring one."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path

from stemma.bundles.export import export_corpus
from stemma.bundles.listing import list_bundles
from stemma.bundles.restore import restore_bundle, verify_bundle
from stemma.bundles.shelf import exports_of
from stemma.bundles.stack import stack_of
from stemma.service.bodies import BackupList, BundleBody, ExportBody, RestoreBody, WorkBody
from stemma.service.problems import PROBLEMS, Problem, RestoreUnconfirmed
from stemma.service.routes_search import RunningService

Corpus = Annotated[Literal["rag"], Path(description="`rag`: documents and chunks. This release has no other corpus.", examples=["rag"])]
BundleName = Annotated[str, Path(alias="name", description="Name of a bundle.", examples=["stemma-rag-20261201-0400.zip"])]

BEGUN: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    409: {"model": Problem, "description": "`restore_unconfirmed`: the body does not say that the corpus is to be replaced."},
}

router = APIRouter(prefix="/api/backups", tags=["backups"])


@router.get("/{corpus}", responses=PROBLEMS, summary="List the bundles")
def read_backups(corpus: Corpus, service: RunningService) -> BackupList:
    """Every bundle in the library's reserved folder with a verdict that its directory and manifest allow, and the work that goes on."""
    here = service.stores
    listed = list_bundles(exports_of(service.current_settings()), stack_of(here))
    bundles = [BundleBody.model_validate(bundle) for bundle in listed if bundle.corpus in (None, corpus)]
    return BackupList(bundles=bundles, work=service.backups.work and WorkBody.model_validate(service.backups.work))


@router.post("/{corpus}", status_code=202, responses=PROBLEMS, summary="Export a bundle")
def export(corpus: Corpus, body: ExportBody, service: RunningService) -> WorkBody:
    """Begin to write a bundle of the corpus; nobody waits for it, and none is made while nothing changed. `GET` says how far it is."""
    begun = service.backups.begin(
        "export",
        None,
        lambda report: export_corpus(
            service.stores,
            label=body.label,
            with_files=body.with_files,
            with_conversations=body.with_conversations,
            force=body.force,
            progress=report,
        ),
    )
    return WorkBody.model_validate(begun)


@router.post("/{corpus}/{name}/verify", status_code=202, responses=PROBLEMS, summary="Prove a bundle")
def verify(corpus: Corpus, name: BundleName, service: RunningService) -> WorkBody:
    """Begin to read a bundle whole, as a restore does; nothing is written. `GET` says how it ended."""
    return WorkBody.model_validate(service.backups.begin("verify", name, lambda _report: verify_bundle(service.stores, name)))


@router.post("/{corpus}/{name}/restore", status_code=202, responses=BEGUN, summary="Restore a bundle")
def restore(corpus: Corpus, name: BundleName, body: RestoreBody, service: RunningService) -> WorkBody:
    """Begin to replace the corpus by a bundle's: proved whole first, then exchanged in one transaction. `GET` says how it ended."""
    if not (body.dry_run or body.replace):
        raise RestoreUnconfirmed("a restore replaces everything that is published")
    begun = service.backups.begin(
        "restore",
        name,
        lambda report: restore_bundle(
            service.stores,
            name,
            into_empty=body.into_empty,
            with_conversations=body.with_conversations,
            dry_run=body.dry_run,
            progress=lambda _what, done, whole: report(done, whole),
        ),
    )
    return WorkBody.model_validate(begun)
