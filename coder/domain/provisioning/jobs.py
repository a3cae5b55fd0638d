"""Provisioner jobs: the rules of their life cycle.

A job's status is derived, never stored: it follows from its start, completion and cancellation times, and its error.
`store/provisioning/jobs.py` states the same rule as SQL; a test holds the two equal. Log limits and error codes are
here too (docs/protocol/provisioners.md#failures).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

JobType = Literal["template_version_import", "template_version_dry_run", "workspace_build"]
JobStatus = Literal["pending", "running", "succeeded", "canceling", "canceled", "failed"]
JobErrorCode = Literal["", "REQUIRED_TEMPLATE_VARIABLES", "MISSING_TEMPLATE_PARAMETER", "INSUFFICIENT_QUOTA"]
LogLevel = Literal["trace", "debug", "info", "warn", "error"]
LogSource = Literal["provisioner_daemon", "provisioner"]

STATUSES: tuple[JobStatus, ...] = ("pending", "running", "succeeded", "canceling", "canceled", "failed")
ACTIVE: frozenset[JobStatus] = frozenset({"pending", "running", "canceling"})
"""States that are not final."""

MAX_LOG_BYTES = 1_048_576
"""Output bytes kept per job (upstream's limit)."""
MIN_LINE_BYTES = 32
"""Ours: minimum bytes a line counts for; an empty line's row costs as much."""
FREE_STAGE_BYTES = 64
"""Ours: bytes of a line's stage that are free; genuine daemons send names of a few words."""
OVERFLOW_LINE = (
    "Provisioner logs exceeded the max size of 1MB. Will not continue to write provisioner logs for workspace build."
)

MAX_ERROR = 16_384
"""Ours: characters of a job's error. Every list of workspaces, builds and jobs carries it; the log has the rest."""
HUNG_AFTER = timedelta(minutes=5)
"""Silence of a daemon after which its running job is reaped (upstream's reaper)."""
PENDING_AFTER = timedelta(minutes=30)
"""Time a job may be pending before it is reaped (upstream's reaper)."""
REAPED_PER_RUN = 10
LOST_AFTER = timedelta(seconds=20)
"""Silence about a held job after which a daemon that requests work has lost it. Ours: four heartbeats of 5 s, so that
another daemon of the same name, working on the job, is not mistaken for it."""
LOST_ERROR = "the provisioner no longer works on this job: it was restarted while the job ran"

REVOKED_LINE = "The provisioner lost its right to run during this job (its key or its user's role): it ends."
REVOKED_ERROR = "the provisioner lost its right to run while it ran the job"

CANCELED_BY_BREAK = "connection to provisioner daemon broken"
"""Error of a job acquired for a daemon whose stream broke before delivery."""


def derive_status(
    *, started_at: datetime | None, completed_at: datetime | None, canceled_at: datetime | None, error: str
) -> JobStatus:
    """Derive the status. An error wins over a cancellation: a canceled run that failed reports its error."""
    if error:
        return "failed"
    if completed_at is not None:
        return "canceled" if canceled_at is not None else "succeeded"
    if canceled_at is not None:
        return "canceling"
    return "pending" if started_at is None else "running"


def error_code(text: str) -> JobErrorCode:
    """Return the machine-readable code of an error text."""
    lowered = text.lower()
    if "required template variables" in lowered:
        return "REQUIRED_TEMPLATE_VARIABLES"
    if "missing parameter" in lowered:
        return "MISSING_TEMPLATE_PARAMETER"
    return ""


@dataclass(frozen=True, slots=True)
class JobLogLine:
    """Line of a job's log."""

    created_at: datetime
    source: LogSource
    level: LogLevel
    stage: str
    output: str


@dataclass(frozen=True, slots=True)
class StoredLogs:
    """Part of a batch that goes to the database."""

    lines: list[JobLogLine]
    length: int
    """Bytes of the job's log afterwards."""
    overflowed: bool


def cap_logs(lines: Iterable[JobLogLine], length: int, *, overflowed: bool) -> StoredLogs:
    """Keep lines up to the job's limit; the first line beyond it becomes one warning, the rest is dropped unread."""
    if overflowed:
        return StoredLogs([], length, True)
    kept: list[JobLogLine] = []
    for line in lines:
        size = max(MIN_LINE_BYTES, len(line.output.encode()))
        size += max(0, len(line.stage.encode()) - FREE_STAGE_BYTES)
        if length + size > MAX_LOG_BYTES:
            kept.append(
                JobLogLine(line.created_at, "provisioner", "warn", line.stage[:FREE_STAGE_BYTES], OVERFLOW_LINE)
            )
            return StoredLogs(kept, length, True)
        kept.append(line)
        length += size
    return StoredLogs(kept, length, False)


def clean_text(text: str) -> str:
    """Remove NUL, which Postgres refuses."""
    return text.replace("\x00", "")


def shortened_error(text: str) -> str:
    """Return a job's error in the stored form."""
    kept = clean_text(text)
    if len(kept) <= MAX_ERROR:
        return kept
    return f"{kept[:MAX_ERROR]}\n… ({len(kept) - MAX_ERROR} more letters)"


ReapKind = Literal["hung", "pending"]


def reap_kind(
    *, started_at: datetime | None, completed_at: datetime | None, updated_at: datetime, now: datetime
) -> ReapKind | None:
    """Return why a job should be reaped now, or None."""
    if completed_at is not None:
        return None
    silent = now - updated_at
    if started_at is None:
        return "pending" if silent >= PENDING_AFTER else None
    return "hung" if silent >= HUNG_AFTER else None


def reap_minutes(kind: ReapKind) -> int:
    return int((HUNG_AFTER if kind == "hung" else PENDING_AFTER).total_seconds() // 60)


def reap_error(kind: ReapKind) -> str:
    """Return the error of a reaped job."""
    return (
        f"Coder: Build has been detected as {kind} for {reap_minutes(kind)} minutes "
        "and has been terminated by the reaper."
    )


def reap_log_outputs(kind: ReapKind) -> list[str]:
    """Return the last lines in the log of a reaped job."""
    rule = "=" * 20
    message = f"Coder: Build has been detected as {kind} for {reap_minutes(kind)} minutes and will be terminated."
    return ["", rule, message, rule, ""]
