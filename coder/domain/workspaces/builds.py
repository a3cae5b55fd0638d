"""Rules of builds: the workspace status, and when a new build may begin.

A build has no status of its own: it is its job's status combined with the transition
(docs/protocol/rest.md#common-rules).
"""

from __future__ import annotations

from typing import Literal, get_args

from coder.domain.provisioning.jobs import JobStatus

WorkspaceStatus = Literal[
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
]

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

_RUNNING: dict[str, WorkspaceStatus] = {"start": "starting", "stop": "stopping", "delete": "deleting"}
_SUCCEEDED: dict[str, WorkspaceStatus] = {"start": "running", "stop": "stopped", "delete": "deleted"}

WORKSPACE_STATUSES: tuple[WorkspaceStatus, ...] = get_args(WorkspaceStatus)


def build_status(transition: str, job_status: JobStatus) -> WorkspaceStatus:
    """Return the workspace status of a build. Pending, failed, canceling and canceled come from the job alone."""
    if job_status == "running":
        return _RUNNING[transition]
    return _SUCCEEDED[transition] if job_status == "succeeded" else job_status


def is_active(job_status: str) -> bool:
    """Return whether a further build has to wait."""
    return job_status in ACTIVE_JOB_STATUSES
