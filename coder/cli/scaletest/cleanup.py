"""`coder exp scaletest cleanup`: deletes exactly what this user's scale tests created from this machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio

from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.scaletest.cleanup import CLEANUP, ScaletestCleanupOptions
from coder.cli.declarations.scaletest.runs import CleanupOptions
from coder.cli.scaletest.ledger import Ledger, LedgerEntry
from coder.cli.scaletest.runs import Job, ScaletestRun, check_concurrency, run_all, with_client
from coder.cli.ui.output import say
from coder.cli.ui.progress import ENDED
from coder.client.answers import read
from coder.net.errors import HttpError, NetError

if TYPE_CHECKING:
    from coder.net.http1 import HttpClient

POLL = 1.0
"""Seconds between polls for the end of a removal."""


@implements(CLEANUP)
def _run(invocation: Invocation[ScaletestCleanupOptions]) -> int:
    check_concurrency(invocation.options.cleanup_concurrency, "cleanup-concurrency")

    async def clean(http: HttpClient) -> int:
        ledger = Ledger(session.config_dir(invocation), http.policy.url)
        return await remove_all(invocation, http, ledger, template=invocation.options.template)

    return run_trio(with_client, invocation, clean)


async def remove_all(
    invocation: Invocation[CleanupOptions],
    http: HttpClient,
    ledger: Ledger,
    *,
    names: Collection[str] | None = None,
    template: str = "",
) -> int:
    """Remove workspaces and then their users, all or those in `names`. Return 1 if some remain."""
    viewer = await _viewer(http)
    failed: list[ScaletestRun] = []
    removed = 0
    for kind, remove in (("workspace", _remove_workspace), ("user", _remove_user)):
        if kind == "user" and template:
            continue  # those users can have other workspaces
        entries = ledger.of(kind, names)
        jobs: list[Job] = [
            (f"{kind} {entry.name}", partial(remove, http, ledger, entry, viewer, template)) for entry in entries
        ]
        runs = await run_all(
            jobs,
            concurrency=invocation.options.cleanup_concurrency,
            timeout=invocation.options.cleanup_timeout.total_seconds(),
            job_timeout=invocation.options.cleanup_job_timeout.total_seconds(),
            max_jobs=len(jobs),  # of several tests
        )
        failed += [run for run in runs if run.error]
        removed += sum(not run.error and not run.figures.get("kept") for run in runs)
    ledger.compact()
    for run in failed:
        say(f"{run.name}: {run.error}")
    say(f"{removed} removed, {len(failed)} could not be.")
    for url, count in ledger.count_elsewhere().items() if names is None else ():
        say(
            f"{count} more were created at {url}: if that is the same deployment, or still exists, "
            f"run this with --url {url}"
        )
    return 1 if failed else 0


async def username(http: HttpClient) -> str:
    """Return the permissions of the session; empty if the server does not report them."""
    return str((await http.request("GET", "/api/v2/users/me")).json(dict).get("username", ""))


@dataclass(frozen=True, slots=True)
class Viewer:
    """User name of the session."""

    name: str
    sees: frozenset[str]
    "Kinds of resources that the user can see regardless of their owner."


async def _viewer(http: HttpClient) -> Viewer:
    checks = {kind: {"object": {"resource_type": kind}, "action": "read"} for kind in ("workspace", "user")}
    name = await username(http)
    try:
        answer = (await http.request("POST", "/api/v2/authcheck", json={"checks": checks})).json(dict[str, bool])
    except (HttpError, NetError):
        answer = {}  # no answer: do not assume that hidden resources are deleted
    return Viewer(name, frozenset(kind for kind, allowed in answer.items() if allowed))


async def _remove_workspace(
    http: HttpClient, ledger: Ledger, entry: LedgerEntry, viewer: Viewer, template: str, run: ScaletestRun
) -> None:
    path = f"/api/v2/users/{quote(entry.owner, safe='')}/workspace/{quote(entry.name, safe='')}"
    answer = await http.request("GET", path, expect=(200, 404, 410))
    if answer.status == 200:
        workspace = read(answer, Workspace)
        if workspace.name != entry.name:
            raise CoderError("scaletest", f"the server returned {quoted(workspace.name)}; it is kept")
        if template and workspace.template_name != template:
            run.figures["kept"] = True
            return
        await _delete(http, workspace)
    elif answer.status == 404:
        _check_absence(ledger, entry, viewer)
    ledger.forget(entry)


async def _delete(http: HttpClient, workspace: Workspace) -> None:
    """Delete a workspace after its running build has ended; retry an earlier delete that failed."""
    path = f"/api/v2/workspaces/{workspace.id}"
    requested = False
    while True:
        build, job = workspace.latest_build, workspace.latest_build.job
        if job.status in ENDED and not requested:
            await http.request("POST", f"{path}/builds", json={"transition": "delete"})
            requested = True
        elif job.status in ENDED and (build.transition, job.status) != ("delete", "succeeded"):
            raise CoderError(
                "scaletest", f"its {build.transition} build has {job.status}: {job.error or 'see its log'}"
            )
        await trio.sleep(POLL)
        answer = await http.request("GET", path, expect=(200, 404, 410))
        if answer.status != 200:
            return
        workspace = read(answer, Workspace)


async def _remove_user(
    http: HttpClient, ledger: Ledger, entry: LedgerEntry, viewer: Viewer, _template: str, _run: ScaletestRun
) -> None:
    path = f"/api/v2/users/{quote(entry.name, safe='')}"
    answer = await http.request("DELETE", path, expect=(200, 204, 400, 404))
    lookup = await http.request("GET", path, expect=(200, 400, 404))
    if lookup.status == 200:
        raise CoderError("scaletest", "the user still exists")
    if answer.status not in (200, 204):
        _check_absence(ledger, entry, viewer)
    ledger.forget(entry)


def _check_absence(ledger: Ledger, entry: LedgerEntry, viewer: Viewer) -> None:
    """Check that a resource the server does not show is really absent; raise CoderError if it can be hidden.

    Roles change: the creator can lose permission to see it, and a user with permission need not be its creator.
    """
    own = (entry.owner == viewer.name != "") or (entry.owner == "me" and entry.by in ("", viewer.name))
    if entry.kind not in viewer.sees and not own:
        raise CoderError(
            "scaletest",
            f"resources of {entry.owner} are not visible to {viewer.name or 'this session'}; "
            f"{entry.by or 'a user who can see them'} created it",
        )
    if ledger.may_be_pending(entry):
        raise CoderError(
            "scaletest", "the creation was never confirmed and may still be pending; run `cleanup` again in an hour"
        )


def now() -> datetime:
    return datetime.now(UTC)
