"""Documents: each file becomes one canonical text; the work is found again by the bytes, the format and the recipe."""

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from sql import load_queries
from stemma.errors import DocumentError, MovedWhileReading
from stemma.failpoints import reach
from stemma.library import claims
from stemma.library.claims import open_source_rows
from stemma.library.contained import Contents, record_contents
from stemma.library.paths import contained_path, file_type, partition_key
from stemma.library.spool import SpooledFile, SpoolUnavailable, spool
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, Format, require_format
from stemma.parsing.members import contained_in
from stemma.parsing.workers import ParseJob, ParserPool
from stemma.stages.run import Fact, Run, StageOutcome, Version, count_calls, found_before, now, record
from stemma.stages.stored_documents import DOCUMENT_FRAME, hand_over_stored
from stemma.stages.taking_out import Contained, take_out_documents
from stemma.store.stage_results import StageResult, read_results, result_key, store_results

PREVIEW_LINES = 20
PREVIEW_CHARS = 1_500
UNFINISHED_KEPT_S = 86_400  # since a page was last added
LISTED_MEMBERS = 100
"""Partition keys of what a container holds, shown with its own partition; the page and the API list all."""


@dataclass(frozen=True)
class Spooled:
    """The files of a batch as they were when they were hashed: whatever happens to them now, this is what is parsed."""

    sources: pl.DataFrame
    files: Mapping[str, SpooledFile]
    """source_id -> its private copy; a source that could not be read is missing here."""
    failures: Mapping[str, DocumentError]
    """source_id -> why it could not be read."""
    folder: Path

    @property
    def hashes(self) -> dict[str, str]:
        """Partition key -> sha256 (hex) of the bytes: the data version of the source file."""
        return {key: self.files[source_id].content_hash for source_id, key in self.sources.select("source_id", "partition_key").iter_rows() if source_id in self.files}  # fmt: skip


def spool_files(run: Run, sources: pl.DataFrame) -> Spooled:
    """Copy and hash the batch's files, record hashes and stats, and drop what moved while it was read or is excluded.

    A detached document has no file: what is published of it is handed to the next stages.
    """
    hand_over_stored(run, sources.filter("detached")["source_id"].to_list())
    sources = sources.filter(~pl.col("detached"))
    folder = run.settings.home / "spool" / run.run_id
    _sweep(run, folder.parent)
    _sweep_unfinished(_unfinished(run))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpoolUnavailable(error.strerror or str(error)) from error
    files: dict[str, SpooledFile] = {}
    failures: dict[str, DocumentError] = {}
    contained = pl.col("kind") == "contained"
    for source_id, disk_path, source_path in sources.filter(~contained).select("source_id", "disk_path", "source_path").iter_rows():
        try:
            files[source_id] = spool(
                run.settings.library, disk_path, folder, source_path=source_path, max_bytes=run.settings.max_file_bytes
            )
        except DocumentError as error:
            failures[source_id] = error
    inside = {source.source_path: source for source in open_source_rows(sources.filter(contained))}
    wanted = [Contained(source.source_path, source.disk_path or b"", source.member_hash) for source in inside.values()]
    taken, refused = take_out_documents(run.settings, wanted, folder)
    files |= {inside[source_path].source_id: file for source_path, file in taken.items()}
    failures |= {inside[source_path].source_id: error for source_path, error in refused.items()}
    moved = [source_id for source_id, error in failures.items() if error.code == "moved_while_reading"]
    excluded = [
        source_id
        for source_id, excluded_hash, wanted in sources.select("source_id", "excluded_hash", "wanted_stage").iter_rows()
        if source_id in files and not wanted and files[source_id].content_hash == excluded_hash
    ]
    with run.pool.connection() as connection:
        connection.execute(load_queries("claims")["record_hashes"], _hash_parameters(run, files))
        claims.abandon_attempts(connection, run.run_id, moved, now=now())
        claims.abandon_attempts(connection, run.run_id, excluded, now=now(), state="cancelled")
    reach("spool.recorded")
    dropped = {*moved, *excluded}
    return Spooled(
        sources.filter(~pl.col("source_id").is_in(list(dropped))),
        {source_id: file for source_id, file in files.items() if source_id not in dropped},
        {source_id: error for source_id, error in failures.items() if source_id not in dropped},
        folder,
    )


def _sweep(run: Run, spools: Path) -> None:
    """Remove what runs that were killed left in the spool."""
    with run.pool.connection() as connection:
        rows = connection.execute("SELECT DISTINCT run_id FROM attempts WHERE finished_at IS NULL AND run_id IS NOT NULL").fetchall()
    alive = {run_id for (run_id,) in rows}
    for folder in spools.iterdir() if spools.is_dir() else ():
        if folder.name not in alive:
            shutil.rmtree(folder, ignore_errors=True)


def _unfinished(run: Run) -> Path:
    """The folder of what long parses have finished so far: a folder per key of a result, see WorkFolder."""
    return run.settings.home / "unfinished"


def _sweep_unfinished(folders: Path) -> None:
    """Remove what nobody went on with for a day: the file is gone, or its bytes or the recipe are others now."""
    for folder in folders.iterdir() if folders.is_dir() else ():
        with suppress(FileNotFoundError):  # another run removed it
            if time.time() - folder.stat().st_mtime > UNFINISHED_KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)


def _hash_parameters(run: Run, files: Mapping[str, SpooledFile]) -> dict[str, object]:
    def stat(values: list[int]) -> list[int | None]:
        return [value if file.stable else None for value, file in zip(values, files.values(), strict=True)]

    return {
        "run_id": run.run_id,
        "now": now(),
        "source_ids": list(files),
        "hashes": [file.content_hash for file in files.values()],
        "sizes": stat([file.stat.size for file in files.values()]),
        "mtimes": stat([file.stat.mtime_ns for file in files.values()]),
        "inodes": stat([file.stat.inode for file in files.values()]),
        "devices": stat([file.stat.device for file in files.values()]),
        "created": [file.created_at for file in files.values()],
        "modified": [file.modified_at for file in files.values()],
    }


def parse_documents(run: Run, spooled: Spooled) -> StageOutcome:
    """Parse what was not parsed before under this recipe, record every document, and remove the spool.

    The key of a result is the hash of the bytes, the format (decided from bytes and extension) and the parsing fingerprint:
    nothing else that depends on the path enters, so a copy or a rename is parsed once.
    """
    try:
        return _parse(run, spooled)
    finally:
        shutil.rmtree(spooled.folder, ignore_errors=True)


def _parse(run: Run, spooled: Spooled) -> StageOutcome:
    failures = dict(spooled.failures)
    formats: dict[str, Format] = {}
    keys: dict[str, str] = {}
    paths: dict[str, str] = {}
    for source_id, source_path, extension in spooled.sources.select("source_id", "source_path", "file_type").iter_rows():
        paths[source_id] = source_path
        if (file := spooled.files.get(source_id)) is None:
            continue
        try:
            with file.path.open("rb") as opened:
                head = opened.read(HEAD_BYTES)
            formats[source_id] = require_format(head, extension, source_path=source_path, zip_archives=run.settings.zip_archives)
        except DocumentError as error:
            failures[source_id] = error
            continue
        except FileNotFoundError:  # this run was taken for dead: a later one swept its spool, and holds what it held
            failures[source_id] = MovedWhileReading(source_path, "the private copy was removed while the run was under way")
            continue
        keys[source_id] = result_key(file.content_hash, formats[source_id].id, run.wanted.parsing)
    with run.pool.connection() as connection:
        found = found_before(run, connection, spooled.sources, "documents", keys)
    first = {key: source_id for source_id, key in reversed(keys.items()) if key not in found}  # equal work is done once
    unfinished = {key: _unfinished(run) / key for key in first}
    parsed, refused = _parse_files(
        run,
        {
            source_id: ParseJob(spooled.files[source_id].path, paths[source_id], formats[source_id], work_folder=unfinished[key])
            for key, source_id in first.items()
        },
    )
    reach("documents.parsed")
    made = {keys[source_id]: answer for source_id, answer in parsed.items()}
    refused_keys = {keys[source_id]: error for source_id, error in refused.items()}
    failures |= {source_id: error.of(paths[source_id]) for source_id, key in keys.items() if (error := refused_keys.get(key)) is not None}
    frame = pl.DataFrame(
        [(key, document.title, document.to_json()) for key, (document, _) in made.items()], schema=DOCUMENT_FRAME, orient="row"
    )
    with run.pool.connection() as connection:
        outputs = {key: document.output_hash for key, (document, _) in made.items()}
        results = found | store_results(connection, run.lake, "documents", frame, outputs, fingerprint=run.wanted.parsing, now=now())
    ready = {source_id: results[key] for source_id, key in keys.items() if key in results}
    contents = _contents(run, spooled.sources, formats, ready, made)
    failures |= (untaken := record_contents(run.pool, run.run_id, contents, now=now()))
    ready = {source_id: result for source_id, result in ready.items() if source_id not in untaken}
    with run.pool.connection() as connection:
        rows = {source_id: (spooled.files[source_id].content_hash, result.output_hash, result.key) for source_id, result in ready.items()}
        held = record(run, connection, "documents", run.wanted.parsing, rows)
        count_calls(run, connection, parsed=dict.fromkeys(parsed, 1) | dict.fromkeys(refused, 1))
        claims.fail_attempts(connection, run.run_id, "parsing", failures, run.settings, now=now())
    reach("documents.recorded")
    # Not before the results are kept: a run that is killed here finds its pages again. An error worth a retry goes on from them.
    for key in {*made, *(key for key, error in refused_keys.items() if not error.retryable)}:
        shutil.rmtree(unfinished[key], ignore_errors=True)
    partitions = dict(spooled.sources.select("source_id", "partition_key").iter_rows())
    described = _describe(spooled, ready, made, contents)
    return StageOutcome(
        {
            partitions[source_id]: Version(result.output_hash, described[source_id])
            for source_id, result in ready.items()
            if source_id in held
        },
        {partitions[source_id]: error for source_id, error in failures.items()},
    )


def _contents(
    run: Run, sources: pl.DataFrame, formats: Mapping[str, Format], ready: Mapping[str, StageResult],
    made: Mapping[str, tuple[ParsedDocument, float]],
) -> dict[str, Contents]:  # fmt: skip
    """source_id -> what lies in it, of every container of the batch and of everything that was one before."""
    listing = {source_id: result for source_id, result in ready.items() if formats[source_id].entries is not None}
    unread = {result.key: result for result in listing.values() if result.key not in made}
    texts: dict[str, str] = {}
    if unread:
        texts = dict(read_results(run.lake, unread.values(), ["document"]).unique("key").select("key", "document").iter_rows())
    contents: dict[str, Contents] = {}
    for source_id, result in listing.items():
        document = made[result.key][0] if result.key in made else ParsedDocument.from_json(texts[result.key])
        contents[source_id] = Contents(result.output_hash, contained_in(document))
    for source_id, source_path, listed in sources.select("source_id", "source_path", "listed_output").iter_rows():
        unwanted = source_id not in formats and file_type(source_path) == "zip" and not run.settings.zip_archives
        if listed is not None and source_id not in contents and (source_id in ready or unwanted):
            contents[source_id] = Contents(None)
    return contents


def _parse_files(run: Run, work: Mapping[str, ParseJob]) -> tuple[dict[str, tuple[ParsedDocument, float]], dict[str, DocumentError]]:
    """source_id -> (document, seconds), and source_id -> why it could not be parsed."""
    if not work:
        return {}, {}
    settings = run.settings
    options = ParsingOptions.of(settings)
    by_path = {job.path: source_id for source_id, job in work.items()}
    jobs = [replace(job, options=options) for job in work.values()]
    parsed: dict[str, tuple[ParsedDocument, float]] = {}
    refused: dict[str, DocumentError] = {}
    with ParserPool(timeout_s=settings.parse_timeout_s, memory_bytes=settings.parse_memory_bytes) as pool:
        started = time.monotonic()
        for job, answer in pool.parse(jobs):  # one worker: what passed since the last answer is this document's time
            elapsed, started = time.monotonic() - started, time.monotonic()
            if isinstance(answer, DocumentError):
                refused[by_path[job.path]] = answer
            else:
                parsed[by_path[job.path]] = answer, elapsed
    return parsed, refused


def _describe(
    spooled: Spooled, ready: Mapping[str, StageResult], made: Mapping[str, tuple[ParsedDocument, float]], contents: Mapping[str, Contents]
) -> dict[str, dict[str, Fact]]:
    """source_id -> metadata for a person: name, size, pages, characters, parser, preview."""
    paths = {source.source_id: source.source_path for source in open_source_rows(spooled.sources)}
    described: dict[str, dict[str, Fact]] = {}
    for source_id, result in ready.items():
        file = spooled.files[source_id]
        described[source_id] = {
            "file_name": paths[source_id].rsplit("/", 1)[-1],
            "content_hash": file.content_hash,
            "bytes": file.stat.size,
            "parse_calls": int(result.key in made),
        }
        if (held := contents.get(source_id)) and held.members:
            keys = [partition_key(contained_path(paths[source_id], member.path)) for member in held.members]
            described[source_id] |= {"contained": len(keys), "contained_partitions": "\n".join(keys[:LISTED_MEMBERS])}
        if container := paths[source_id].rpartition("//")[0]:
            described[source_id]["contained_in"] = partition_key(container)
        if (answer := made.get(result.key)) is not None:
            document, seconds = answer
            described[source_id] |= {
                "parse_seconds": round(seconds, 3),
                "characters": len(document.text),
                "pages": len(document.pages),
                "tables_and_figures": len(document.assets),
                "parser": f"{document.parser} {document.parser_version}",
                "extraction": document.extraction,
                "preview": "\n".join(document.text[:PREVIEW_CHARS].splitlines()[:PREVIEW_LINES]),
            }
            if document.title:
                described[source_id]["title"] = document.title
            if document.warning:
                described[source_id]["warning"] = document.warning
    return described
