"""Jobs that no provisioner daemon can run: report the reason and the fix, then cancel the job or, with a flag, keep it
pending.

A job whose matching daemons are only offline or busy is not affected: it stays pending.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from coder.api.provisioning.job_reasons import ProvisionerJobWhy
from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.declarations.provisioning.no_provisioner import JobOptions
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

if TYPE_CHECKING:
    from coder.api.provisioning.jobs import ProvisionerJob
    from coder.api.templates.template_versions import TemplateVersion
    from coder.api.workspaces.builds import WorkspaceBuild


GRACE = 20.0
"""Seconds for a starting daemon to connect before the job is canceled."""
_POLL_SECONDS = 0.5
_OFFLINE = "The provisioners that can run this job are offline; the job waits for one."


def handle_build(
    invocation: Invocation[JobOptions], client: BlockingClient, build: WorkspaceBuild, *, waits: bool = True
) -> None:
    """Apply `handle_no_provisioner` to a workspace build; with `--no-wait`, only print the warning."""
    handle_no_provisioner(invocation, client, build, f"/api/v2/workspacebuilds/{build.id}/cancel", waits=waits)


def handle_no_provisioner(
    invocation: Invocation[JobOptions],
    client: BlockingClient,
    created: WorkspaceBuild | TemplateVersion,
    cancel_path: str,
    *,
    waits: bool = True,
) -> None:
    """Check a new build or template version.

    Return if a daemon can run it, or if it stays pending. Raise CoderError `no_provisioner` after canceling it.
    """
    matched = created.matched_provisioners or None
    if created.job.status != "pending" or (matched and matched.available):
        return
    explanation = _why(client, created.job)
    verdict = explanation.verdict if explanation else "all_offline" if matched and matched.count else "nobody"
    if verdict == "all_offline":
        say(f"warning: {explanation.summary if explanation else _OFFLINE}")
    if verdict != "nobody":
        return
    say(f"No provisioner can run this job: {_requirements(created.job)}")
    for line in _advice(explanation, created.job):
        say(f"  {line}")
    if invocation.options.wait_for_provisioner:
        _keep_pending(client, created.job)
        say("The job waits for such a provisioner without limit.")
        return
    if not waits:
        return
    say(f"Waiting {GRACE:.0f} seconds for one to connect (--wait-for-provisioner waits without limit) …")
    if _daemon_connects(client, created.job):
        return
    client.request("PATCH", cancel_path, expect=(200, 400, 403))
    hint = "; ".join(_advice(explanation, created.job)) + "; or use --wait-for-provisioner"
    raise CoderError("no_provisioner", f"no provisioner can run this job: {_requirements(created.job)}", hint)


def _path(job: ProvisionerJob) -> str:
    return f"/api/v2/organizations/{job.organization_id}/provisionerjobs/{job.id}"


def _why(client: BlockingClient, job: ProvisionerJob) -> ProvisionerJobWhy | None:
    try:
        return read(client.request("GET", f"{_path(job)}/why"), ProvisionerJobWhy)
    except HttpError:
        return None  # an older server, or one that does not report it


def _keep_pending(client: BlockingClient, job: ProvisionerJob) -> None:
    client.request("PUT", f"{_path(job)}/parked", json={"parked": True}, expect=(204, 400, 404))


def _requirements(job: ProvisionerJob) -> str:
    tags = [f"{key}={value}" for key, value in sorted(job.tags.items()) if value and key != "owner"]
    return f"it requires a provisioner with {' '.join(tags)}"


def _advice(explanation: ProvisionerJobWhy | None, job: ProvisionerJob) -> list[str]:
    remedy = explanation.remedy if explanation else None
    if not remedy:
        flags = [f"--tag {key}={value}" for key, value in sorted(job.tags.items()) if _is_own(key, value)]
        return [" ".join(["start one: coder provisioner start", *flags])]
    lines = [f"start one: {remedy.command}"]
    if remedy.nearest:
        lines.append(f"or change the closest match: {remedy.nearest}")
    return [*lines, *remedy.notes]


def _is_own(key: str, value: str) -> bool:
    return bool(value) and key != "owner" and (key, value) != ("scope", "organization")


def _daemon_connects(client: BlockingClient, job: ProvisionerJob) -> bool:
    """Return whether a matching daemon connects in time."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        explanation = _why(client, job)
        if explanation is not None and explanation.verdict != "nobody":
            return True
        time.sleep(_POLL_SECONDS)
    return False
