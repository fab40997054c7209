"""`/api/upload` and `/api/upload/folder`: files from a browser or a program become files of the library."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, UploadFile

from stemma.errors import RequestError
from stemma.library.uploads import store_upload
from stemma.retrieval.scope import without_unstorable
from stemma.service.bodies_library import UploadedFile, UploadReport
from stemma.service.problems import PROBLEMS, InvalidRequest, Problem
from stemma.service.routes_search import RunningService
from stemma.service.state import Service

ANSWERS: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": "`request_too_large`: more than MAX_FILE_BYTES at once."},
    **PROBLEMS,
}

router = APIRouter(prefix="/api/upload", tags=["uploads"])

Files = Annotated[list[UploadFile], File(description="The files.")]
Folder = Annotated[
    str, Form(description="Where to, relative to the library; empty: its root, the workspace `default`.", examples=["handbook/2026"])
]
Clocks = Annotated[
    list[int] | None,
    Form(description="When each file was modified, in milliseconds since 1970, as `File.lastModified` says; in the order of the files."),
]  # fmt: skip


@router.post("", responses=ANSWERS, summary="Upload files")
def upload_files(service: RunningService, files: Files, folder: Folder = "", modified_ms: Clocks = None) -> UploadReport:
    """Into one folder, each under its own name or a numbered one, with its own clock. What the folder holds already is a duplicate; one file
    that is refused stops no other. They are taken up at once: `/api/documents/{id}/progress` tells how far each is."""
    names = [(file.filename or "").replace("\\", "/").rpartition("/")[2] for file in files]
    return _stored(service, files, names, folder, modified_ms)


@router.post("/folder", responses=ANSWERS, summary="Upload a folder")
def upload_folder(
    service: RunningService,
    files: Files,
    paths: Annotated[
        list[str], Form(description="Path of each file below the folder, as `File.webkitRelativePath` says.", examples=[["old/a.md"]])
    ],
    folder: Folder = "",
    modified_ms: Clocks = None,
) -> UploadReport:
    """With its folders, which are made where they are missing. A path that leads out of the folder is refused, the other files go on."""
    if len(paths) != len(files):
        raise InvalidRequest(f"{len(files)} files and {len(paths)} paths")
    return _stored(service, files, paths, folder, modified_ms)


def _stored(
    service: Service, files: Sequence[UploadFile], paths: Sequence[str], folder: str, modified_ms: list[int] | None
) -> UploadReport:
    if modified_ms and len(modified_ms) != len(files):
        raise InvalidRequest(f"{len(files)} files and {len(modified_ms)} times")
    settings = service.current_settings()
    report: list[UploadedFile] = []
    for index, (file, path) in enumerate(zip(files, map(without_unstorable, paths), strict=True)):
        try:
            stored = store_upload(
                service.pool, file.file, library=settings.library, folder=without_unstorable(folder), path=path,
                max_bytes=settings.max_file_bytes, mtime_ns=_clock(modified_ms[index]) if modified_ms else None, now=datetime.now(UTC),
            )  # fmt: skip
        except RequestError as refusal:
            report.append(UploadedFile(name=path, outcome="refused", code=refusal.code, message=str(refusal)))
        else:
            report.append(UploadedFile(name=path, outcome=stored.outcome, source_id=stored.source_id, source_path=stored.source_path))
    return UploadReport(files=report)


def _clock(modified_ms: int) -> int:
    """Nanoseconds that every file system can hold: from 1970 to 2262."""
    return max(0, min(modified_ms, 9_000_000_000_000)) * 1_000_000
