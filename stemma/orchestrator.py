"""What Stemma needs from Dagster, asked over HTTP: whether it works, and where its UI shows a document or a run."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from stemma.errors import Unavailable
from stemma.settings import Settings

TIMEOUT_S = 5.0

_HEALTH = """
query StemmaHealth {
  instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } }
  workspaceOrError {
    __typename
    ... on Workspace { locationEntries { name loadStatus locationOrLoadError { __typename ... on PythonError { message } } } }
    ... on PythonError { message }
  }
}
"""


_TERMINATE = """
mutation StemmaTerminate($runIds: [String!]!) {
  terminateRuns(runIds: $runIds, terminatePolicy: SAFE_TERMINATE) { __typename }
}
"""


class OrchestratorUnavailable(Unavailable):
    """Dagster's webserver does not answer."""

    code, remedy = "orchestrator_unavailable", "Start it with `stemma up`; its log is `logs/webserver.log` in STEMMA_HOME."


@dataclass(frozen=True)
class Health:
    """What Dagster says of itself."""

    unhealthy_daemons: tuple[str, ...]
    """Required daemons without a recent heartbeat: nothing is launched while there is one."""
    loading: bool
    """Whether the project's definitions are still being loaded."""
    load_error: str | None
    """Why they could not be loaded."""

    @property
    def problem(self) -> str | None:
        """One sentence, or None when all is well."""
        if self.load_error is not None:
            return f"the project's definitions do not load: {self.load_error}"
        if self.loading:
            return "the project's definitions are being loaded"
        if self.unhealthy_daemons:
            return f"no heartbeat from {', '.join(self.unhealthy_daemons)}"
        return None


def dagster_address(settings: Settings) -> str:
    """The root of the Dagster UI."""
    return f"http://127.0.0.1:{settings.dagster_port}"


def partition_url(settings: Settings, partition_key: str, *, asset: str = "documents") -> str:
    """The page of one document in the Dagster UI: an asset's history, metadata and checks for this partition."""
    return f"{dagster_address(settings)}/assets/{asset}?view=partitions&partition={quote(partition_key, safe='')}"


def run_url(settings: Settings, run_id: str) -> str:
    """The page of one run in the Dagster UI."""
    return f"{dagster_address(settings)}/runs/{quote(run_id, safe='')}"


def is_up(settings: Settings) -> bool:
    """Whether the webserver answers at all; one that is still busy loading does not count."""
    try:
        return httpx.get(f"{dagster_address(settings)}/server_info", timeout=TIMEOUT_S, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def health(settings: Settings) -> Health:
    """Whether daemons and definitions are in order. Raises OrchestratorUnavailable."""
    answer = graphql(settings, _HEALTH)
    statuses: list[dict[str, Any]] = answer["instance"]["daemonHealth"]["allDaemonStatuses"]
    workspace: dict[str, Any] = answer["workspaceOrError"]
    entries: list[dict[str, Any]] = workspace.get("locationEntries") or []
    failed = [entry for entry in entries if entry["locationOrLoadError"] and entry["locationOrLoadError"]["__typename"] == "PythonError"]
    load_error = workspace.get("message") or (failed[0]["locationOrLoadError"]["message"] if failed else None)
    return Health(
        unhealthy_daemons=tuple(sorted(status["daemonType"] for status in statuses if status["required"] and not status["healthy"])),
        loading=any(entry["loadStatus"] != "LOADED" for entry in entries),
        load_error=load_error.strip() if load_error else None,
    )


def problem(settings: Settings) -> str | None:
    """Why Dagster would not take up work now, None when it would; no answer is a reason too."""
    try:
        return health(settings).problem
    except OrchestratorUnavailable as error:
        return f"it does not answer ({error.args[0]})"


def terminate_runs(settings: Settings, run_ids: Sequence[str]) -> None:
    """Ask Dagster to end runs that have nothing left to do. Where it does not answer they end by themselves, after the step they are in."""
    if run_ids:
        with suppress(OrchestratorUnavailable):
            graphql(settings, _TERMINATE, runIds=list(run_ids))


def graphql(settings: Settings, query: str, **variables: Any) -> dict[str, Any]:
    """The `data` of one GraphQL request. Raises OrchestratorUnavailable when there is no answer or an error instead of one."""
    try:
        response = httpx.post(
            f"{dagster_address(settings)}/graphql", json={"query": query, "variables": variables}, timeout=TIMEOUT_S, trust_env=False
        )
        response.raise_for_status()
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise OrchestratorUnavailable(f"{dagster_address(settings)}: {error or type(error).__name__}") from error
    if answer.get("errors"):
        raise OrchestratorUnavailable(f"{dagster_address(settings)}: {answer['errors'][0]['message']}")
    return answer["data"]
