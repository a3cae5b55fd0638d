"""Actions the owner has in each state of a job and a workspace; every state has a way out.

`cancel` asks the daemon to stop (a pending job ends immediately), `retry` is a new build of any kind, `delete`
destroys, `abandon` removes the workspace without destroying its resources (services/workspaces/orphaning.py lists the
possible remains). A job of a silent daemon can always be canceled and its workspace abandoned: the daemon has lost it
anyway. Otherwise an owner abandons only what cannot be deleted; template managers, who may orphan, abandon at any time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

JobAction = Literal["cancel", "retry", "delete", "abandon"]

SILENT_AFTER = timedelta(minutes=1)
"""Silence of a daemon after which its running job counts as lost (heartbeats come every 5 s)."""

_ACTIONS_BY_STATUS: dict[str, frozenset[JobAction]] = {
    "pending": frozenset({"cancel"}),
    "running": frozenset({"cancel"}),
    "canceling": frozenset(),
    "succeeded": frozenset({"retry", "delete"}),
    "canceled": frozenset({"retry", "delete"}),
    "failed": frozenset({"retry", "delete"}),
}


def is_silent(updated_at: datetime, now: datetime) -> bool:
    return now - updated_at >= SILENT_AFTER


def may_cancel(job_status: str, *, silent: bool, template_allows: bool) -> bool:
    """Return whether the owner of a workspace may cancel its build.

    Templates may forbid it, since an interrupted apply leaves resources behind; a pending build leaves none, and a
    build of a lost daemon is interrupted already.
    """
    return template_allows or job_status == "pending" or silent


def may_abandon(job_status: str, transition: str, *, silent: bool, served: bool, manages: bool) -> bool:
    """Return whether the workspace may be abandoned while its last build's job is in this state.

    `served`: a connected daemon could take the workspace's jobs. `manages`: the caller manages the template. A canceled
    delete is no failed one: its owner could cancel it before anything is destroyed.
    """
    if job_status in {"running", "canceling"}:
        return silent
    return manages or not served or (transition == "delete" and job_status == "failed")


def allowed_actions(
    job_status: str, *, silent: bool = False, template_allows_cancel: bool = True
) -> frozenset[JobAction]:
    """Return the owner's actions while the last build's job is in this state.

    Empty only while a connected daemon finishes the job: canceling, or running under a template that forbids canceling.
    Both are bounded, by the forced end of a cancel and by the job timeout.
    """
    ways = set(_ACTIONS_BY_STATUS[job_status])
    if "cancel" in ways and not may_cancel(job_status, silent=silent, template_allows=template_allows_cancel):
        ways.discard("cancel")
    if silent and job_status in {"running", "canceling"}:
        ways.add("abandon")
    return frozenset(ways)
