"""Dagster's code server with warm run processes: `python -m pipelines.code_server -h HOST -p PORT`.

Dagster starts every run in an interpreter of its own, which imports Dagster, the project, PyTorch and Great Expectations before and while
it works: 16 s of CPU, see docs/decisions/007. Here a process that has imported them forks one for each run: it begins at once, with the
code that it was started with. Connections, models and threads are the run's own and end with it.
"""

import multiprocessing
import sys
from multiprocessing import forkserver
from typing import Any

from dagster._cli.api import grpc_command
from dagster._grpc import server

from stemma.cli.installation import CODE_LOCATION

IMPORTED_BEFORE = "pipelines.run_process"


class WarmRunsServer(server.DagsterApiServer):
    """Dagster's own but for how the process of a run comes to be."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._mp_ctx = multiprocessing.get_context("forkserver")
        self._mp_ctx.set_forkserver_preload([IMPORTED_BEFORE])

    def SyncExternalSensorExecution(self, request: Any, _context: Any) -> Any:
        """The daemon asks a sensor, so that Stemma has started: now the imports hold up nobody, and the first run may find them done."""
        forkserver.ensure_running()
        return super().SyncExternalSensorExecution(request, _context)


def main() -> None:
    """Serve until a signal comes."""
    server.DagsterApiServer = WarmRunsServer  # Dagster's command looks it up when it is called
    grpc_command.main(["-m", CODE_LOCATION, *sys.argv[1:]], prog_name="python -m pipelines.code_server")


if __name__ == "__main__":
    main()
