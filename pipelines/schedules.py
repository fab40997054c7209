"""Schedules: what is worth doing by the clock. All are off until someone turns them on; times are those of SCHEDULE_TIMEZONE."""

import dagster as dg

from assets.partitions import OWNERS
from pipelines.audit import audit
from pipelines.backup import back_up
from pipelines.maintenance import check_every_file, prune_event_log
from pipelines.prune import prune
from stemma.settings import load_settings

TIMEZONE = load_settings().schedule_timezone

nightly_backup = dg.ScheduleDefinition(
    name="nightly_backup",
    job=back_up,
    cron_schedule="0 1 * * *",
    execution_timezone=TIMEZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    owners=OWNERS,
    description="At 1:00 the corpus is exported as a bundle, if anything changed since the last one, and old bundles are removed as BACKUP_KEEP settings say.",
)

nightly_full_check = dg.ScheduleDefinition(
    name="nightly_full_check",
    job=check_every_file,
    cron_schedule="0 2 * * *",
    execution_timezone=TIMEZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    owners=OWNERS,
    description="At 2:00 every file is read and hashed again, whatever its size and times say.",
)

nightly_prune = dg.ScheduleDefinition(
    name="nightly_prune",
    job=prune,
    cron_schedule="30 2 * * *",
    execution_timezone=TIMEZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    owners=OWNERS,
    description="At 2:30 what vanished is pruned, and the run's log says what is held back; nothing that an operator has to confirm.",
)

weekly_audit = dg.ScheduleDefinition(
    name="weekly_audit",
    job=audit,
    cron_schedule="0 3 * * 0",
    execution_timezone=TIMEZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    owners=OWNERS,
    description="On Sundays at 3:00 everything that is published is held against what is expected of it; the checks of the assets show what is not so.",
)

nightly_event_log_retention = dg.ScheduleDefinition(
    name="nightly_event_log_retention",
    job=prune_event_log,
    cron_schedule="30 3 * * *",
    execution_timezone=TIMEZONE,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    owners=OWNERS,
    description="At 3:30 runs that ended more than EVENT_LOG_RETENTION_DAYS ago leave Dagster's database, with their events and logs.",
)
