"""Which bundles there are, and what may be expected of each: read from directory and manifest alone, whatever its size."""

from dataclasses import dataclass, replace
from typing import Literal

from stemma.bundles.archive import Archive
from stemma.bundles.errors import BundleIncompatible, BundleInvalid, UnknownBundle
from stemma.bundles.locking import note_of
from stemma.bundles.manifest import Manifest
from stemma.bundles.shelf import LOCKED_SUFFIX, Shelf
from stemma.bundles.stack import Difference, Stack, drift, require_compatible

Verdict = Literal["ok", "bundle_invalid", "bundle_incompatible", "bundle_locked"]


@dataclass(frozen=True)
class Listed:
    """A bundle, or what lies among them and is none."""

    name: str
    size_bytes: int
    verdict: Verdict
    """`ok`: nothing speaks against it yet; its rows are judged by `stemma bundle verify` and by a restore."""
    field: str | None = None
    """What the verdict is about."""
    reason: str | None = None
    locked: bool = False
    """It is encrypted: nothing else is known without its passphrase."""
    format: str | None = None
    corpus: str | None = None
    created_at: str | None = None
    documents: int | None = None
    chunks: int | None = None
    embedding_model: str | None = None
    embedding_dim: int | None = None
    stale: bool | None = None
    data_version: str | None = None
    drift: tuple[Difference, ...] = ()


def list_bundles(shelf: Shelf, stack: Stack | None = None) -> list[Listed]:
    """Every bundle by name; with `stack` also judged by whether it suits this installation. What cannot be read is listed as invalid.

    Raises BundlesUnavailable: the place itself cannot be listed.
    """
    found: list[Listed] = []
    for name in shelf.names():
        try:
            found.append(inspect(shelf, name, stack))
        except UnknownBundle:  # removed since it was listed
            continue
    return found


def inspect(shelf: Shelf, name: str, stack: Stack | None = None) -> Listed:
    """The cheap verdict on one bundle. Raises UnknownBundle or BundlesUnavailable."""
    size_bytes = shelf.size(name)
    locked = name.endswith(LOCKED_SUFFIX)
    manifest: Manifest | None = None
    try:
        with shelf.open(name) as file:
            if locked:
                version = note_of(file).get("data_version")
                return Listed(name, size_bytes, "bundle_locked", locked=True, corpus="rag", data_version=str(version))
            manifest = Archive(file).manifest
        if stack is not None:
            require_compatible(manifest, stack)
    except (BundleInvalid, BundleIncompatible) as error:
        verdict: Verdict = "bundle_invalid" if isinstance(error, BundleInvalid) else "bundle_incompatible"
        return replace(_shown(name, size_bytes, manifest), verdict=verdict, field=error.field, reason=error.reason, locked=locked)
    return replace(_shown(name, size_bytes, manifest), drift=tuple(drift(manifest, stack)) if stack else ())


def _shown(name: str, size_bytes: int, manifest: Manifest | None) -> Listed:
    if manifest is None:
        return Listed(name, size_bytes, "ok")
    return Listed(
        name, size_bytes, "ok", format=manifest.format, corpus=manifest.corpus, created_at=manifest.created_at.isoformat(),
        documents=manifest.counts.documents, chunks=manifest.counts.chunks, embedding_model=manifest.embedding_model,
        embedding_dim=manifest.embedding_dim, stale=manifest.stale, data_version=manifest.data_version,
    )  # fmt: skip
