"""Every state of a job and of a workspace has a way out for its owner; which, is this table.

`cancel` asks the daemon to stop (a waiting job ends at once), `retry` is a new build of any kind, `delete` destroys,
`abandon` gives the workspace up without destroying what it made (services/workspaces/orphaning.py lists what may
remain). A job whose daemon fell silent may always be canceled and its workspace abandoned: nobody is disturbed by it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

Way = Literal["cancel", "retry", "delete", "abandon"]

SILENT_AFTER = timedelta(minutes=1)
"""A running job whose daemon said nothing for this long disturbs nobody (heartbeats come every 5 s)."""

_WAYS: dict[str, frozenset[Way]] = {
    "pending": frozenset({"cancel", "abandon"}),
    "running": frozenset({"cancel"}),
    "canceling": frozenset(),
    "succeeded": frozenset({"retry", "delete", "abandon"}),
    "canceled": frozenset({"retry", "delete", "abandon"}),
    "failed": frozenset({"retry", "delete", "abandon"}),
}


def is_silent(updated_at: datetime, now: datetime) -> bool:
    return now - updated_at >= SILENT_AFTER


def may_cancel(job_status: str, *, silent: bool, template_allows: bool) -> bool:
    """Whether the owner of a workspace may cancel its build.

    Templates may forbid it, since an interrupted apply leaves things behind; a build that waits leaves nothing, and
    one whose daemon is gone is interrupted already.
    """
    return template_allows or job_status == "pending" or silent


def allowed_actions(job_status: str, *, silent: bool = False, template_allows_cancel: bool = True) -> frozenset[Way]:
    """What the owner of a workspace can do now that its last build's job is in this state.

    Empty only while a daemon that is alive ends the job by itself: canceling, or running under a template that lets
    nobody cancel. Both are bounded, by the forced end of a cancel and by the job timeout.
    """
    ways = set(_WAYS[job_status])
    if "cancel" in ways and not may_cancel(job_status, silent=silent, template_allows=template_allows_cancel):
        ways.discard("cancel")
    if silent and job_status in {"running", "canceling"}:
        ways.add("abandon")
    return frozenset(ways)
