"""Refusals as application/problem+json (RFC 9457): a stable code, what happened, what to do next, and the request's id."""

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from stemma.bundles.errors import UnknownBundle
from stemma.chat.errors import AgentConversation, UnknownConversation, UnknownGroup
from stemma.errors import ConfigurationError, FileNotRemoved, RequestError, StemmaError, Unavailable
from stemma.library.cancellation import NothingToCancel, NothingToRetry
from stemma.library.lineage import NothingToTrace, UnknownChunk
from stemma.library.listing import SupersededDocument, UnknownDocument
from stemma.library.pruning import UnknownWorkspace
from stemma.library.workspaces import WorkspaceExists
from stemma.retrieval.errors import EmbeddingMismatch
from stemma.stages.models_at_hand import ModelNotAtHand
from stemma.store.embedded import NotRunning
from stemma.store.postgres import StoreUnavailable

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
MAX_BODY_BYTES = 10_000_000
"""A query has at most 10,000 characters; the rest is room for scopes that name many documents."""

_log = structlog.get_logger(__name__)


class DocumentNotPublished(RequestError):
    """The document is listed, but no version of it is live."""

    code, remedy = "document_not_published", "Its status says whether it is being processed or why it failed."


class NoPicture(RequestError):
    """The document has no figure of this number, or its picture is not kept."""

    code, remedy = "no_picture", "`/api/documents/{id}/assets` lists what there is; `stemma figures` takes what is missing."


class NoFile(RequestError):
    """The document has no file that could be sent: it lies in another file, or its file is gone."""

    code, remedy = "no_file", "`/api/documents/{id}/text` is its text; of what lies in a mail or archive, download that."


class NoPage(RequestError):
    """The document has no page of this number."""

    code, remedy = "no_page", "`/api/documents/{id}/pages` lists them."


class ConfirmationRequired(RequestError):
    """A deletion names folders or workspaces without the right number of documents that it takes with it."""

    code, remedy = "confirmation_required", "Repeat it with that number as `expected`, if all of them are meant."

    def __init__(self, n_documents: int) -> None:
        super().__init__(f"This deletes {n_documents} document{'' if n_documents == 1 else 's'}")
        self.n_documents = n_documents


class InvalidCursor(RequestError):
    """The cursor was not given by the page before."""

    code, remedy = "invalid_cursor", "Give `next_cursor` of the page before as it is, or none for the first page."


class RestoreUnconfirmed(RequestError):
    """A restore was asked for without saying that the corpus is to be replaced."""

    code, remedy = "restore_unconfirmed", "Repeat it with `replace` true, if that is meant; `dry_run` says what would become of the corpus."


class InvalidRequest(RequestError):
    """The request's body or parameters have another shape than the operation takes."""

    code, remedy = "invalid_request", "Compare it with the operation's description at /docs."


class UnknownRoute(RequestError):
    """Nothing answers at this address."""

    code, remedy = "unknown_route", "The operations are listed at /docs."


class MethodNotAllowed(RequestError):
    """The address exists, for other HTTP methods."""

    code, remedy = "method_not_allowed", "Use one of the methods in the Allow header."


class RequestTooLarge(RequestError):
    """The request's body is larger than the operation takes."""

    code = "request_too_large"
    remedy = f"Send at most {MAX_BODY_BYTES:,} bytes (scopes may name folders instead of documents), or MAX_FILE_BYTES of files at once."


class Bug(StemmaError):
    """Something that should not happen happened; the log has its traceback under the request id."""

    code, remedy = "internal_error", "Report it with the request id; the log of the service holds the details."


STATUS: dict[type[StemmaError], int] = {
    UnknownDocument: 404,
    DocumentNotPublished: 404,
    UnknownChunk: 404,
    NothingToTrace: 404,
    NoPicture: 404,
    NoFile: 404,
    NoPage: 404,
    UnknownConversation: 404,
    UnknownGroup: 404,
    UnknownWorkspace: 404,
    AgentConversation: 409,
    WorkspaceExists: 409,
    UnknownRoute: 404,
    UnknownBundle: 404,
    MethodNotAllowed: 405,
    RequestTooLarge: 413,
    SupersededDocument: 410,
    EmbeddingMismatch: 409,
    NothingToCancel: 409,
    NothingToRetry: 409,
    ModelNotAtHand: 409,
    ConfirmationRequired: 409,
    RestoreUnconfirmed: 409,
    FileNotRemoved: 409,
    RequestError: 422,
    Unavailable: 503,
    ConfigurationError: 503,
    StemmaError: 500,
}
"""Class -> HTTP status; the nearest ancestor counts."""


class InvalidField(BaseModel):
    """One part of a request that does not fit."""

    field: str = Field(description="Where: `body.scope.folders`, `query.limit`.")
    problem: str


class Problem(BaseModel):
    """Why a request was refused."""

    type: str = Field(description="`urn:stemma:problem:` and the code.")
    title: str = Field(description="The condition in general.")
    status: int
    code: str = Field(description="Stable; what programs should look at.")
    detail: str = Field(description="What happened here.")
    remedy: str = Field(description="What to do next.")
    request_id: str | None = Field(None, description="Also in the header X-Request-Id and in the service's log.")
    present_doc_id: str | None = Field(None, description="With `superseded_document`: the version that is live.")
    source_id: str | None = Field(None, description="With `superseded_document`: the document across its versions.")
    expected: int | None = Field(None, description="With `confirmation_required`: the number of documents.")
    invalid: list[InvalidField] | None = Field(None, description="With `invalid_request`: the parts that do not fit.")


def problem_of(error: StemmaError, *, request_id: str | None = None, invalid: list[InvalidField] | None = None) -> Problem:
    """The problem that tells of an error."""
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    title = (type(error).__doc__ or "").strip().partition("\n")[0]
    # libpq's messages name hosts, users and socket folders: they go to the log only.
    detail = title if isinstance(error, StoreUnavailable | NotRunning) else str(error).removesuffix(error.remedy).strip()
    superseded = error if isinstance(error, SupersededDocument) else None
    return Problem(
        type=f"urn:stemma:problem:{error.code}", title=title, status=status, code=error.code, detail=detail, remedy=error.remedy,
        request_id=request_id, present_doc_id=superseded and superseded.present_doc_id, source_id=superseded and str(superseded.source_id),
        expected=error.n_documents if isinstance(error, ConfirmationRequired) else None, invalid=invalid,
    )  # fmt: skip


def respond(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """The HTTP response of a problem."""
    retry = {"Retry-After": str(RETRY_AFTER_S)} if problem.status == 503 else {}
    return JSONResponse(problem.model_dump(exclude_none=True), problem.status, {**(headers or {}), **retry}, media_type=MEDIA_TYPE)


def install_problem_handlers(app: FastAPI) -> None:
    """Let every refusal of the app, FastAPI's own included, leave as a problem."""

    @app.exception_handler(StemmaError)
    def stemma_error(request: Request, error: StemmaError) -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        problem = problem_of(error, request_id=_request_id(request))
        if problem.status >= 500:
            _log.warning("request refused", code=error.code, reason=str(error))
        return respond(problem)

    @app.exception_handler(RequestValidationError)
    def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        invalid = [InvalidField(field=".".join(map(str, part["loc"])), problem=part["msg"]) for part in error.errors()]
        detail = "; ".join(f"{part.field}: {part.problem}" for part in invalid[:3])
        return respond(problem_of(InvalidRequest(detail), request_id=_request_id(request), invalid=invalid))

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> JSONResponse:  # pyright: ignore[reportUnusedFunction]
        kinds: dict[int, type[RequestError]] = {404: UnknownRoute, 405: MethodNotAllowed, 413: RequestTooLarge}
        kind = kinds.get(error.status_code, InvalidRequest)
        problem = problem_of(kind(f"{request.method} {request.url.path}: {error.detail}"), request_id=_request_id(request))
        headers = dict(error.headers or {})
        return respond(problem.model_copy(update={"status": error.status_code}), headers)


def _request_id(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


PROBLEMS: dict[int | str, dict[str, object]] = {
    status: {"model": Problem, "description": description}
    for status, description in {
        422: "The request cannot be answered; `code` says why.",
        503: "A store is away or not ready; the same request may succeed later.",
    }.items()
}
"""Responses that every operation documents."""
