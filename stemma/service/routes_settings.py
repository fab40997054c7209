"""`/api/settings`: every setting, what a change would cost, and changing them."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter

from stemma.embedding.models import embedding_spec
from stemma.library.estimate import estimate_work
from stemma.library.looks import request_look
from stemma.library.restriction import Restriction
from stemma.library.staleness import kinds_of, stale_counts
from stemma.service.bodies_library import SettingBody, SettingsPatch, SettingsReport, WorkEstimate
from stemma.service.problems import PROBLEMS
from stemma.service.routes_search import RunningService
from stemma.settings import Settings
from stemma.stages.installation import wanted_fingerprints
from stemma.store.app_settings import change_overrides, current_settings
from stemma.store.described_settings import describe_settings
from stemma.store.postgres import Connection, explained

router = APIRouter(prefix="/api/settings", tags=["settings"])


@router.get("", responses=PROBLEMS, summary="Every setting, and what is stale")
def read_settings(service: RunningService) -> SettingsReport:
    """With its value and where it comes from. What is stale is computed, never kept: taking a change back makes fresh again what it had made stale."""
    with explained(), service.pool.connection() as connection:
        return _report(connection, service.settings, current_settings(connection, service.settings))


@router.patch("", responses=PROBLEMS, summary="Change settings")
def patch_settings(body: SettingsPatch, service: RunningService) -> SettingsReport:
    """All of them or none: one value that cannot be leaves everything as it was. With `dry_run` the report says what the change would make stale
    and what that would cost, and nothing is stored. Searches go on while documents are made anew."""
    given = {name: None if value is None else _as_environment(value) for name, value in body.settings.items()}
    with explained(), service.pool.connection() as connection, connection.transaction(force_rollback=body.dry_run):
        changed = change_overrides(connection, service.settings, given)
        report = _report(connection, service.settings, changed)
        request_look(connection, now=datetime.now(UTC))
    return report


def _as_environment(value: str | float | bool) -> str:
    """The value as an environment variable would hold it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _report(connection: Connection, base: Settings, settings: Settings) -> SettingsReport:
    wanted, now = wanted_fingerprints(settings), datetime.now(UTC)
    kinds: list[dict[str, Any]] = kinds_of(stale_counts(connection, settings, wanted, now=now), None)
    spec = embedding_spec(settings.embedding_model)
    cost = estimate_work(connection, settings, wanted, spec, Restriction(), stage=None, force=False, now=now)
    return SettingsReport(
        settings=[SettingBody.model_validate(setting) for setting in describe_settings(base, connection)],
        stale=sum(kind["documents"] for kind in kinds),
        cost=WorkEstimate.model_validate(cost),
    )
