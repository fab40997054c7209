"""Run the query service until it is told to stop."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager

import structlog
import uvicorn

from stemma.service.app import create_app
from stemma.service.state import Service
from stemma.settings import Settings

GRACE_S = 10  # a request still running after this long is cut off
FAILURE_POLL_S = 0.5

_log = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """uvicorn would end the process by the signal it caught; ours ends by returning, with an exit code that says how it went."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, self.handle_exit, signal_number, None)
        yield


def serve(settings: Settings) -> int:
    """Serve on SERVICE_HOST and SERVICE_PORT until SIGTERM or SIGINT; running requests are finished first.

    Returns the exit code: 0 after a signal, 1 when PostgreSQL came back with a schema that must not be served. A start that fails
    (a migration, the port) ends the process with 3, as uvicorn does.
    """
    app = create_app(settings)
    server = _Server(
        uvicorn.Config(
            app, host=settings.service_host, port=settings.service_port, log_config=None, access_log=False, server_header=False,
            timeout_graceful_shutdown=GRACE_S, lifespan="on",
        )
    )  # fmt: skip
    service: Service = app.state.service
    asyncio.run(_serve(server, service))
    return 1 if service.failed.is_set() else 0


async def _serve(server: uvicorn.Server, service: Service) -> None:
    async def stop_on_failure() -> None:
        while not service.failed.is_set():
            await asyncio.sleep(FAILURE_POLL_S)
        _log.error("service stops", code=service.failure.code if service.failure else None)
        server.should_exit = True

    watch = asyncio.create_task(stop_on_failure())
    try:
        await server.serve()
    finally:
        watch.cancel()
