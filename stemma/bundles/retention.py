"""Which bundles stay: the latest, and the last of each day, week and month for as long as the settings say."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from stemma.bundles.listing import list_bundles
from stemma.bundles.shelf import Shelf
from stemma.settings import Settings

_NAME = re.compile(r"stemma-rag-(\d{8}-\d{4})(?:-(\d+))?(?:\.locked)?\.zip")

log = structlog.get_logger()


@dataclass(frozen=True)
class Keep:
    """How many bundles stay of each kind."""

    last: int
    daily: int
    weekly: int
    monthly: int

    @classmethod
    def of(cls, settings: Settings) -> "Keep":
        """What the settings say."""
        return cls(settings.backup_keep_last, settings.backup_keep_daily, settings.backup_keep_weekly, settings.backup_keep_monthly)


def superfluous(names: Iterable[str], keep: Keep) -> list[str]:
    """Those of the bundles that no rule keeps, by name. What has a label, or another form of name, is not spoken of."""
    dated = sorted(((*_moment(match), name) for name in names if (match := _NAME.fullmatch(name))), reverse=True)
    kept = {name for _, _, name in dated[: max(keep.last, 1)]}
    periods: list[tuple[int, Callable[[datetime], object]]] = [
        (keep.daily, lambda moment: moment.date()),
        (keep.weekly, lambda moment: moment.isocalendar()[:2]),
        (keep.monthly, lambda moment: (moment.year, moment.month)),
    ]
    for n_periods, period_of in periods:
        last_of: dict[object, str] = {}
        for moment, _, name in dated:
            last_of.setdefault(period_of(moment), name)
        kept |= set(list(last_of.values())[:n_periods])
    return sorted(name for _, _, name in dated if name not in kept)


def apply_retention(shelf: Shelf, keep: Keep) -> list[str]:
    """Remove superfluous bundles and return their names. One that is damaged takes no other's place, and is left to an operator.

    Raises BundlesUnavailable.
    """
    sound = [bundle.name for bundle in list_bundles(shelf) if bundle.verdict in ("ok", "bundle_locked")]
    removed = superfluous(sound, keep)
    for name in removed:
        shelf.remove(name)
    if removed:
        log.info("old bundles removed", bundles=removed)
    return removed


def _moment(match: re.Match[str]) -> tuple[datetime, int]:
    return datetime.strptime(match[1], "%Y%m%d-%H%M").replace(tzinfo=UTC), int(match[2] or 1)
