"""The library and the lake against the rows: what lies on the disk is known, and what is known lies there."""

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from sql import load_queries
from stemma.audit.violations import violations
from stemma.errors import MovedWhileReading, UnreadableFile
from stemma.library.files import FileStat
from stemma.library.spool import hash_source
from stemma.library.walk import Found, LibraryUnavailable, walk
from stemma.settings import Settings
from stemma.store.lake import Lake
from stemma.store.postgres import Connection


def audit_files(connection: Connection, settings: Settings, *, deep: bool) -> Iterator[pl.DataFrame]:
    """Violations (VIOLATION_SCHEMA) between the library and the sources; with `deep`, every file whose stat is the recorded one is read."""
    rows = connection.execute(load_queries("audit")["files_of_documents"]).fetchall()
    try:
        found = {entry.disk_path: entry for entry in walk(settings.library, own_folders=settings.own_folders) if isinstance(entry, Found)}
    except LibraryUnavailable as error:
        yield violations("document_without_file", [(str(settings.library), None, str(error))])
        return
    known = {bytes(disk_path) for _, _, disk_path, *_ in rows}
    yield violations(
        "document_without_file",
        [
            (source_path, source_id, f"document {doc_id}; the source is {presence}")
            for source_id, source_path, disk_path, presence, _, doc_id, *_ in rows
            if doc_id is not None and presence != "detached" and bytes(disk_path) not in found
        ],
    )
    yield violations(
        "file_without_document",
        [(entry.source_path, None, "no look at the library has recorded it") for path, entry in found.items() if path not in known],
    )
    if deep:
        yield violations("file_differs", _differing(rows, found, settings))


def _differing(rows: list[tuple[object, ...]], found: dict[bytes, Found], settings: Settings) -> Iterator[tuple[str, str, str]]:
    for source_id, source_path, disk_path, _, content_hash, _, _, *recorded in rows:
        path = bytes(disk_path)  # type: ignore[arg-type]
        if recorded[0] is None or path not in found or found[path].stat != FileStat(*(int(part) for part in recorded)):  # type: ignore[arg-type]
            continue
        try:
            now_hash, _ = hash_source(settings.library, path, str(source_path))
        except (MovedWhileReading, UnreadableFile) as error:
            yield str(source_path), str(source_id), error.detail
            continue
        if now_hash != content_hash:
            yield str(source_path), str(source_id), f"its bytes are {now_hash[:12]}…, read were {str(content_hash)[:12]}…"


def audit_lake(connection: Connection, lake: Lake, *, now: datetime) -> Iterator[pl.DataFrame]:
    """Violations (VIOLATION_SCHEMA) between the lake and the results that are recorded."""
    queries = load_queries("audit")
    objects = {stored.name: stored for stored in lake.objects()}  # listed first: what is recorded meanwhile is named below
    named: dict[str, bool] = dict(connection.execute(queries["lake_objects_named"]).fetchall())
    wanted = {name for name, asked_for in named.items() if asked_for}
    before: datetime = connection.execute(load_queries("garbage")["evictable_before"], {"now": now}).fetchall()[0][0]
    yield violations(
        "lake_object_missing", [(name, None, "its results are made again when they are needed") for name in sorted(wanted - objects.keys())]
    )
    yield violations(
        "lake_object_orphaned",
        [
            (name, None, f"{stored.size} bytes")
            for name, stored in sorted(objects.items())
            if name not in named and stored.modified_at < before
        ],
    )
