"""Retention: the latest, then the last of each day, week and month; nothing that was given a label."""

from datetime import UTC, datetime, timedelta

from stemma.bundles.retention import Keep, superfluous


def bundle(day: datetime, suffix: str = "") -> str:
    return f"stemma-rag-{day:%Y%m%d-%H%M}{suffix}.zip"


def test_days_weeks_and_months_each_keep_their_last_bundle():
    first = datetime(2026, 1, 1, 4, tzinfo=UTC)
    names = [bundle(first + timedelta(days=day)) for day in range(120)]  # to the last day of April
    kept = sorted(set(names) - set(superfluous(names, Keep(last=2, daily=3, weekly=2, monthly=3))))
    assert [name[11:19] for name in kept] == ["20260228", "20260331", "20260426", "20260428", "20260429", "20260430"]


def test_of_one_minute_the_highest_number_is_the_latest_and_labels_stay():
    day = datetime(2026, 5, 5, 4, tzinfo=UTC)
    names = [bundle(day, suffix) for suffix in ("", "-2", "-10", "-before-upgrade")] + ["holiday.zip"]
    assert superfluous(names, Keep(last=1, daily=0, weekly=0, monthly=0)) == sorted([bundle(day), bundle(day, "-2")])
    assert superfluous(names, Keep(last=0, daily=0, weekly=0, monthly=0)) == sorted([bundle(day), bundle(day, "-2")])
