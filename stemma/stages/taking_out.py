"""Taking out: the bytes of contained documents, out of a private copy of the file that they lie in, and proved by their hash."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from uuid import uuid4

from stemma.errors import ContainerChanged, DocumentError, DocumentTooLarge
from stemma.library.files import FileStat
from stemma.library.paths import file_type, member_chain
from stemma.library.spool import SpooledFile, spool
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, require_format
from stemma.parsing.workers import ParserPool, TakenOut, TakeOutJob
from stemma.settings import Settings

Chain = tuple[str, ...]
"""How a document is reached from its file, container by container; the file itself is ()."""


@dataclass(frozen=True, slots=True)
class Contained:
    """A document inside a file of the library."""

    source_path: str
    disk_path: bytes
    """Of the file."""
    content_hash: str | None
    """What the listing of its container promised; None: nothing can be had."""


def take_out_documents(
    settings: Settings, wanted: Iterable[Contained], folder: Path
) -> tuple[dict[str, SpooledFile], dict[str, DocumentError]]:
    """Private copies of contained documents, and why there is none of the others, each by source_path.

    Each file is copied once, and each container in it opened once, whatever the number of documents. A document whose bytes
    are not those that its container's listing promised has `container_changed`: the file was changed since, and will be listed again.
    """
    of_file: dict[bytes, list[Contained]] = defaultdict(list)
    files: dict[str, SpooledFile] = {}
    failures: dict[str, DocumentError] = {}
    for document in wanted:
        of_file[document.disk_path].append(document)
    with ParserPool(timeout_s=settings.parse_timeout_s, memory_bytes=settings.parse_memory_bytes) as pool:
        for disk_path, documents in of_file.items():
            file_path = documents[0].source_path.split("//")[0]
            try:
                whole = spool(settings.library, disk_path, folder, source_path=file_path, max_bytes=settings.max_file_bytes)
            except DocumentError as error:
                failures |= {document.source_path: error.of(document.source_path) for document in documents}
                continue
            found = _opened(settings, pool, whole.path, file_path, {member_chain(document.source_path) for document in documents})
            for document in documents:
                taken = _proved(settings, document, found[member_chain(document.source_path)], whole)
                if isinstance(taken, DocumentError):
                    failures[document.source_path] = taken
                else:
                    files[document.source_path] = taken
    return files, failures


def _opened(
    settings: Settings, pool: ParserPool, whole: Path, file_path: str, wanted: Iterable[Chain]
) -> Mapping[Chain, Path | DocumentError]:
    """Where each wanted document lies now, or why it cannot be had; a level of containers after the other."""
    wanted = set(wanted)
    needed = wanted | {chain[:depth] for chain in wanted for depth in range(1, len(chain))}
    found: dict[Chain, Path | DocumentError] = {(): whole}
    for depth in range(max(map(len, needed))):
        inside: dict[Chain, list[Chain]] = defaultdict(list)
        for chain in sorted(needed):
            if len(chain) == depth + 1:
                inside[chain[:-1]].append(chain)
        jobs: dict[str, tuple[Chain, TakeOutJob]] = {}
        for container, members in inside.items():
            place = "//".join((file_path, *container))
            at = found[container]
            try:
                if isinstance(at, DocumentError):
                    raise at
                jobs[place] = container, _job(settings, at, place, members, whole.parent)
            except DocumentError as error:
                found |= dict.fromkeys(members, error)
        for job, answer in pool.take_out([job for _, job in jobs.values()]):
            found |= dict(_answers(job, inside[jobs[job.source_path][0]], answer))
    return found


def _job(settings: Settings, at: Path, place: str, members: list[Chain], folder: Path) -> TakeOutJob:
    with at.open("rb") as opened:
        format = require_format(opened.read(HEAD_BYTES), file_type(place), source_path=place, zip_archives=settings.zip_archives)
    if format.entries is None:
        raise ContainerChanged(place, "it holds no documents any more")
    targets = {chain[-1]: folder / f"member-{uuid4().hex}" for chain in members}
    return TakeOutJob(at, place, format, ParsingOptions.of(settings), targets)


def _answers(job: TakeOutJob, members: list[Chain], answer: TakenOut | DocumentError) -> Iterator[tuple[Chain, Path | DocumentError]]:
    for chain in members:
        if isinstance(answer, DocumentError):
            yield chain, answer
        elif chain[-1] not in answer.members:
            yield chain, ContainerChanged(job.source_path, "the file that holds it holds it no longer")
        else:
            yield chain, answer.members[chain[-1]] or job.targets[chain[-1]]


def _proved(settings: Settings, document: Contained, taken: Path | DocumentError, whole: SpooledFile) -> SpooledFile | DocumentError:
    if isinstance(taken, DocumentError):
        return taken.of(document.source_path)
    size = taken.stat().st_size
    if size > settings.max_file_bytes:
        return DocumentTooLarge(document.source_path, f"the file has {size:,} bytes, over {settings.max_file_bytes:,}")
    with taken.open("rb") as opened:
        content_hash = file_digest(opened, "sha256").hexdigest()
    if content_hash != document.content_hash:
        return ContainerChanged(document.source_path, "the file that holds it was changed since it was listed")
    # No stat can vouch for bytes inside a file: the listing of their container does, and that is made anew when the file changes.
    return SpooledFile(content_hash, FileStat(size, 0, 0, 0), False, whole.created_at, whole.modified_at, taken)
