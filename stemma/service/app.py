"""The query service: routes over what has been published."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from stemma.service.backpressure import Backpressure
from stemma.service.metrics import Metrics
from stemma.service.middleware import Surroundings, allowed_hosts
from stemma.service.problems import MAX_BODY_BYTES, MEDIA_TYPE, install_problem_handlers
from stemma.service.routes_backups import router as backups_router
from stemma.service.routes_chat import router as chat_router
from stemma.service.routes_conversations import router as conversations_router
from stemma.service.routes_documents import router as documents_router
from stemma.service.routes_files import router as files_router
from stemma.service.routes_lineage import router as lineage_router
from stemma.service.routes_page import install_page
from stemma.service.routes_search import router as search_router
from stemma.service.routes_settings import router as settings_router
from stemma.service.routes_stale import router as stale_router
from stemma.service.routes_status import metrics_router
from stemma.service.routes_status import router as status_router
from stemma.service.routes_uploads import router as uploads_router
from stemma.service.routes_workspaces import router as workspaces_router
from stemma.service.state import CONCURRENCY, Service
from stemma.service.validators import Validators
from stemma.settings import Settings

UNCOMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")

DESCRIPTION = """Ranked passages with exact citations from a library of documents, and the documents themselves.

A refusal is `application/problem+json` with a stable `code`, a `detail` and a `remedy`. Offsets count Unicode code points of the text
that `/api/documents/{id}/text` returns; ends are exclusive."""


def create_app(settings: Settings) -> FastAPI:
    """The service's app. Its lifespan migrates the database before the first request, or as soon as PostgreSQL is there.

    `app.state.service` is the running Service.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = CONCURRENCY
        service: Service = app.state.service
        try:
            await anyio.to_thread.run_sync(service.start)
            yield
        finally:
            await anyio.to_thread.run_sync(service.close)

    # The paths of FastAPI's own pages would load scripts from elsewhere.
    app = FastAPI(
        title="Stemma", version=version("stemma"), description=DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )  # fmt: skip
    app.state.service = Service(settings)
    app.state.metrics = metrics = Metrics()
    # From the inside out: a validator is of the answer as it is, before it is compressed.
    app.add_middleware(Validators)
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5, exclude_content_types=UNCOMPRESSED)
    app.add_middleware(Backpressure, metrics=metrics)
    upload_bytes = settings.max_file_bytes + MAX_BODY_BYTES
    app.add_middleware(Surroundings, hosts=allowed_hosts(settings.service_host), upload_bytes=upload_bytes, metrics=metrics)
    install_problem_handlers(app)
    for router in (
        search_router, chat_router, conversations_router, documents_router, files_router, uploads_router, workspaces_router, lineage_router,
        settings_router, stale_router, status_router, metrics_router, backups_router,
    ):  # fmt: skip
        app.include_router(router)
    install_page(app)
    app.openapi = _describe(app.openapi)
    return app


def _describe(described: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """FastAPI's description, with refusals under the media type that they are sent with."""

    @cache
    def description() -> dict[str, Any]:
        document = described()
        operations = (operation for path in document["paths"].values() for operation in path.values())
        for response in (response for operation in operations for response in operation["responses"].values()):
            for media_type, content in list(response.get("content", {}).items()):
                if content.get("schema", {}).get("$ref", "").endswith("/Problem"):
                    response["content"] = {MEDIA_TYPE: response["content"].pop(media_type)}
        return document

    return description
