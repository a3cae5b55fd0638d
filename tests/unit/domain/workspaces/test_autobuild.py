"""Due step: a table of workspaces and times."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from coder.domain.workspaces.autobuild import AutobuildCandidate, AutobuildStep, next_step

NOW = datetime.fromisoformat("2026-01-07T09:00:00+00:00")
HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000
MOMENT = timedelta(microseconds=1)
RUNNING = AutobuildCandidate(
    transition="start",
    job_status="succeeded",
    job_completed_at=NOW - 2 * HOUR,
    build_created_at=NOW - 2 * HOUR,
    deadline=None,
    owner_status="active",
    prebuilt=False,
    autostart_schedule="CRON_TZ=UTC 0 9 * * *",
    last_used_at=NOW - 2 * HOUR,
    dormant_at=None,
    deleting_at=None,
)
STOPPED = replace(RUNNING, transition="stop")
FAILED = replace(RUNNING, job_status="failed", failure_ttl_ms=HOUR_MS)
ASLEEP = replace(STOPPED, dormant_at=NOW - HOUR, deleting_at=NOW, delete_after_ms=HOUR_MS)
STOP, START, DELETE = (
    AutobuildStep("stop", "autostop"),
    AutobuildStep("start", "autostart"),
    AutobuildStep("delete", "autodelete"),
)


@pytest.mark.parametrize(
    ("base", "change", "step"),
    [
        (RUNNING, {}, None),
        (RUNNING, {"deadline": NOW}, STOP),
        (RUNNING, {"deadline": NOW + timedelta(seconds=1)}, None),
        (RUNNING, {"deadline": NOW, "job_status": "running"}, None),
        (RUNNING, {"deadline": NOW, "prebuilt": True}, STOP),
        (RUNNING, {"owner_status": "suspended"}, STOP),
        (RUNNING, {"deadline": NOW, "job_status": "canceled"}, STOP),
        (STOPPED, {}, START),
        (STOPPED, {"owner_status": "dormant"}, None),
        (STOPPED, {"prebuilt": True}, None),
        (STOPPED, {"allow_autostart": False}, None),
        (STOPPED, {"autostart_days": 1}, None),  # NOW is a Wednesday
        (STOPPED, {"job_status": "failed"}, None),
        (STOPPED, {"job_status": "pending"}, None),
        (STOPPED, {"autostart_schedule": None}, None),
        (STOPPED, {"build_created_at": NOW}, None),  # stopped after today's start
        (STOPPED, {"build_created_at": NOW - timedelta(days=3)}, START),  # the server was down
        (STOPPED, {"dormant_at": NOW - HOUR}, None),
        (FAILED, {}, STOP),
        (FAILED, {"failure_ttl_ms": 0}, None),
        (FAILED, {"job_completed_at": NOW - HOUR}, STOP),
        (FAILED, {"job_completed_at": NOW - HOUR + MOMENT}, None),
        (FAILED, {"deadline": NOW - HOUR, "failure_ttl_ms": 0}, None),
        (RUNNING, {"dormant_after_ms": HOUR_MS}, AutobuildStep("stop", "dormancy", falls_asleep=True)),
        (RUNNING, {"dormant_after_ms": 2 * HOUR_MS}, AutobuildStep("stop", "dormancy", falls_asleep=True)),
        (RUNNING, {"dormant_after_ms": 2 * HOUR_MS, "last_used_at": NOW - 2 * HOUR + MOMENT}, None),
        (
            STOPPED,
            {"dormant_after_ms": HOUR_MS, "autostart_schedule": None},
            AutobuildStep(None, "dormancy", falls_asleep=True),
        ),
        (STOPPED, {"dormant_after_ms": HOUR_MS}, START),  # autostart takes precedence
        (RUNNING, {"dormant_after_ms": HOUR_MS, "prebuilt": True}, None),
        (ASLEEP, {}, DELETE),
        (ASLEEP, {"deleting_at": NOW + MOMENT}, None),
        (ASLEEP, {"deleting_at": None}, None),
        (ASLEEP, {"delete_after_ms": 0}, None),
        (ASLEEP, {"transition": "delete", "job_status": "failed"}, None),
        (ASLEEP, {"transition": "delete", "job_status": "failed", "job_completed_at": NOW - 24 * HOUR}, DELETE),
        (ASLEEP, {"transition": "delete", "job_status": "failed", "job_completed_at": NOW - 24 * HOUR + MOMENT}, None),
    ],
)
def test_steps(base: AutobuildCandidate, change: dict[str, Any], step: AutobuildStep | None) -> None:
    assert next_step(replace(base, **change), NOW) == step
