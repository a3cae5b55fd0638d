"""Rules of a job's life cycle."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from coder.domain.provisioning.jobs import (
    FREE_STAGE_BYTES,
    MAX_ERROR,
    MAX_LOG_BYTES,
    MIN_LINE_BYTES,
    OVERFLOW_LINE,
    JobLogLine,
    cap_logs,
    derive_status,
    error_code,
    reap_error,
    reap_kind,
    reap_log_outputs,
    shortened_error,
)

T = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("started", "completed", "canceled", "error", "status"),
    [
        (None, None, None, "", "pending"),
        (T, None, None, "", "running"),
        (T, T, None, "", "succeeded"),
        (T, T, None, "boom", "failed"),
        (T, None, T, "", "canceling"),
        (T, T, T, "", "canceled"),
        (None, T, T, "", "canceled"),
        (T, T, T, "terraform apply: exit status 1", "failed"),  # as recorded from upstream
    ],
)
def test_status_is_derived(
    started: datetime | None, completed: datetime | None, canceled: datetime | None, error: str, status: str
) -> None:
    assert derive_status(started_at=started, completed_at=completed, canceled_at=canceled, error=error) == status


def test_error_codes() -> None:
    assert error_code("update job: required template variables need values: a") == "REQUIRED_TEMPLATE_VARIABLES"
    assert error_code("missing parameter: cpu") == "MISSING_TEMPLATE_PARAMETER"
    assert error_code("exit status 1") == ""


def line(output: str) -> JobLogLine:
    return JobLogLine(T, "provisioner", "info", "Planning", output)


def test_log_is_capped_once() -> None:
    full = cap_logs([line("x" * (MAX_LOG_BYTES - 1)), line("é"), line("late")], 0, overflowed=False)
    assert [kept.output for kept in full.lines][1:] == [OVERFLOW_LINE]
    assert full.lines[-1].level == "warn"
    assert full.overflowed
    assert cap_logs([line("more")], full.length, overflowed=True).lines == []


def test_log_at_limit_is_kept() -> None:
    assert not cap_logs([line("x" * MAX_LOG_BYTES)], 0, overflowed=False).overflowed


def test_empty_lines_count_toward_limit() -> None:
    seen = 0

    def endless() -> Iterator[JobLogLine]:
        nonlocal seen
        while True:
            seen += 1
            yield line("")

    kept = cap_logs(endless(), 0, overflowed=False)
    assert kept.overflowed
    assert seen == len(kept.lines) == MAX_LOG_BYTES // MIN_LINE_BYTES + 1


def test_a_long_stage_counts() -> None:
    long = JobLogLine(T, "provisioner", "info", "é" * MAX_LOG_BYTES, "")
    assert [item.output for item in cap_logs([long], 0, overflowed=False).lines] == [OVERFLOW_LINE]
    usual = JobLogLine(T, "provisioner", "info", "s" * FREE_STAGE_BYTES, "x" * MIN_LINE_BYTES)
    assert cap_logs([usual], 0, overflowed=False).length == MIN_LINE_BYTES


def test_silent_jobs_are_reaped() -> None:
    def kind(minutes: float, *, started: bool, completed: bool = False) -> str | None:
        return reap_kind(
            started_at=T if started else None,
            completed_at=T if completed else None,
            updated_at=T,
            now=T + timedelta(minutes=minutes),
        )

    assert kind(4.9, started=True) is None
    assert kind(5, started=True) == "hung"
    assert kind(29.9, started=False) is None
    assert kind(30, started=False) == "pending"
    assert kind(60, started=True, completed=True) is None
    assert "hung for 5 minutes" in reap_error("hung")
    assert "pending for 30 minutes" in reap_log_outputs("pending")[2]


def test_job_error_is_truncated() -> None:
    assert shortened_error("exit\x00 status 1") == "exit status 1"
    assert shortened_error("é" * MAX_ERROR) == "é" * MAX_ERROR
    assert shortened_error("x" * (4 << 20)) == "x" * MAX_ERROR + f"\n… ({(4 << 20) - MAX_ERROR} more letters)"
