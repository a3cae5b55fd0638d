"""Rules of builds: the workspace status, and when a new build may begin.

A build has no status of its own: it is its job's status combined with the transition
(docs/protocol/rest.md#common-rules).
"""

from __future__ import annotations

TRANSITIONS = ("start", "stop", "delete")

REASONS_FOR_CLIENTS = (
    "dashboard",
    "cli",
    "ssh_connection",
    "vscode_connection",
    "jetbrains_connection",
    "task_manual_pause",
    "task_resume",
)
"""Build reasons that a caller may send; every other reason is the server's own."""

ACTIVE_JOB_STATUSES = frozenset({"pending", "running", "canceling"})

_STATUS = {
    ("start", "running"): "starting",
    ("stop", "running"): "stopping",
    ("delete", "running"): "deleting",
    ("start", "succeeded"): "running",
    ("stop", "succeeded"): "stopped",
    ("delete", "succeeded"): "deleted",
}

WORKSPACE_STATUSES = (
    "pending",
    "starting",
    "running",
    "stopping",
    "stopped",
    "failed",
    "canceling",
    "canceled",
    "deleting",
    "deleted",
)


def build_status(transition: str, job_status: str) -> str:
    """Return the workspace status of a build. Pending, failed, canceling and canceled come from the job alone."""
    return _STATUS.get((transition, job_status), job_status)


def is_active(job_status: str) -> bool:
    """Return whether a further build has to wait."""
    return job_status in ACTIVE_JOB_STATUSES
