"""Where Stemma's parts listen, and whether they do."""

import errno
import socket

import httpx

from stemma.addresses import service_address
from stemma.orchestrator import dagster_address
from stemma.settings import Settings


def addresses(settings: Settings) -> dict[str, str]:
    """What a user opens in a browser: name -> address."""
    service = service_address(settings)
    return {"Search page": f"{service}/", "API docs": f"{service}/docs", "Dagster UI": f"{dagster_address(settings)}/"}


def service_problem(settings: Settings) -> str | None:
    """Why the query service would not answer a search now; None when it would."""
    try:
        response = httpx.get(f"{service_address(settings)}/api/health/ready", timeout=5, trust_env=False)
        return None if response.is_success else response.json()["reason"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:  # nobody there, or another program
        return f"it does not answer ({type(error).__name__})"


def port_problem(host: str, port: int) -> str | None:
    """Why no server could listen there, None when one could."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are just closing do no harm
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return "it is in use" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
    return None


def free_port() -> int:
    """A port of the loopback interface on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening_problem(host: str, port: int) -> str | None:
    """Why nothing can be sent there yet, None when somebody listens."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return None
    except OSError as error:
        return f"it does not listen on port {port} ({type(error).__name__})"
