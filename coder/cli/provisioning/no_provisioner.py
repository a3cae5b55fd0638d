"""Work that no daemon can run: said at once with what would help, then given up or, when asked for, parked.

A job whose daemons are merely away or busy is no business of this module: it waits as it always did.
"""

from __future__ import annotations

import time
from typing import Any

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.command import Invocation
from coder.cli.output import say
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

WAIT = Option(
    "wait_for_provisioner",
    "wait-for-provisioner",
    "CODER_WAIT_FOR_PROVISIONER",
    kind="bool",
    default=False,
    help="When no provisioner daemon can run this, wait for one without limit instead of giving up.",
)

GRACE = 20.0
"""Seconds a daemon that is just being started gets to connect before the job is given up."""
_LOOK = 0.5
_AWAY = "The daemons that may run this were not seen lately; the job waits for one."


def settle_build(invocation: Invocation, client: BlockingClient, build: dict[str, Any], *, waits: bool = True) -> None:
    """`settle_unmatched` for a workspace build; whoever does not wait for the build is told, and no more."""
    settle_unmatched(invocation, client, build, f"/api/v2/workspacebuilds/{build['id']}/cancel", waits=waits)


def settle_unmatched(
    invocation: Invocation, client: BlockingClient, made: dict[str, Any], cancel_path: str, *, waits: bool = True
) -> None:
    """Looks at a fresh build or version (`made`, with `job` and `matched_provisioners`).

    Returns when somebody may run it, or it was parked. Raises CoderError `no_provisioner` after canceling it.
    """
    matched = made.get("matched_provisioners") or {}
    if made["job"]["status"] != "pending" or matched.get("available"):
        return
    why = _why(client, made["job"])
    verdict = why["verdict"] if why else "all_offline" if matched.get("count") else "nobody"
    if verdict == "all_offline":
        say(f"warning: {why['summary'] if why else _AWAY}")
    if verdict != "nobody":
        return
    say(f"No provisioner daemon can run this job: {_wants(made['job'])}")
    for line in _advice(why, made["job"]):
        say(f"  {line}")
    if invocation.options.get("wait_for_provisioner"):
        _park(client, made["job"])
        say("The job is parked: it waits for such a daemon without limit.")
        return
    if not waits:
        return
    say(f"Looking for {GRACE:.0f} seconds whether one comes (--wait-for-provisioner waits without limit) …")
    if _comes(client, made["job"]):
        return
    client.request("PATCH", cancel_path, expect=(200, 400, 403))
    hint = "; ".join(_advice(why, made["job"])) + "; or use --wait-for-provisioner"
    raise CoderError("no_provisioner", f"no provisioner daemon can run this job: {_wants(made['job'])}", hint)


def _path(job: dict[str, Any]) -> str:
    return f"/api/v2/organizations/{job['organization_id']}/provisionerjobs/{job['id']}"


def _why(client: BlockingClient, job: dict[str, Any]) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.request("GET", f"{_path(job)}/why").json()
    except HttpError:
        return None  # an older server, or one that does not tell
    return found


def _park(client: BlockingClient, job: dict[str, Any]) -> None:
    client.request("PUT", f"{_path(job)}/parked", json={"parked": True}, expect=(204, 400, 404))


def _wants(job: dict[str, Any]) -> str:
    tags = [f"{key}={value}" for key, value in sorted(job["tags"].items()) if value and key != "owner"]
    return f"it wants a daemon with {' '.join(tags)}"


def _advice(why: dict[str, Any] | None, job: dict[str, Any]) -> list[str]:
    remedy = why.get("remedy") if why else None
    if not remedy:
        flags = [f"--tag {key}={value}" for key, value in sorted(job["tags"].items()) if _is_own(key, value)]
        return [" ".join(["start one: coder provisioner start", *flags])]
    lines = [f"start one: {remedy['command']}"]
    if remedy["nearest"]:
        lines.append(f"or change the nearest: {remedy['nearest']}")
    return [*lines, *remedy["notes"]]


def _is_own(key: str, value: str) -> bool:
    return bool(value) and key != "owner" and (key, value) != ("scope", "organization")


def _comes(client: BlockingClient, job: dict[str, Any]) -> bool:
    """Whether somebody who may run the job shows up in time."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        why = _why(client, job)
        if why is not None and why["verdict"] != "nobody":
            return True
        time.sleep(_LOOK)
    return False
