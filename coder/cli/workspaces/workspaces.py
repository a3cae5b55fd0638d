"""`coder list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

from coder.base.json_types import as_object
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.declarations.workspaces.workspaces import (
    LIST,
    ListOptions,
    SearchOptions,
    WorkspaceTableOptions,
)
from coder.cli.ui.output import api_time, chosen_columns, print_json, print_table, say, since
from coder.net.blocking import BlockingClient, HttpAnswer

if TYPE_CHECKING:
    from coder.api.workspaces.builds import WorkspaceBuild
    from coder.api.workspaces.workspaces import Workspace


_DONE = {"start": "Started", "stop": "Stopped", "delete": "Deleted"}
_DOING = {"start": "Starting", "stop": "Stopping", "delete": "Deleting"}
_JOB = {"pending": "Queued", "canceling": "Canceling", "canceled": "Canceled", "failed": "Failed"}


def status_word(build: WorkspaceBuild) -> str:
    """Return the STATUS cell of (job status, transition)."""
    job, transition = build.job.status, build.transition
    if job == "succeeded":
        return _DONE.get(transition, "Unknown")
    if job == "running":
        return _DOING.get(transition, "Unknown")
    return _JOB.get(job, "Unknown")


def workspace_row(workspace: Workspace) -> dict[str, object]:
    """Return the cells of a workspace by column name."""
    build = workspace.latest_build
    status = status_word(build)
    star = "★ " if workspace.favorite and sys.stdout.isatty() else ""
    return {
        "favorite": workspace.favorite,
        "workspace": f"{star}{workspace.owner_name}/{workspace.name}",
        "organization id": workspace.organization_id,
        "organization name": workspace.organization_name,
        "template": workspace.template_name,
        "status": status,
        "healthy": workspace.health.healthy if status in {"Starting", "Started"} else "",
        "last built": since(build.created_at),
        "current version": build.template_version_name,
        "outdated": workspace.outdated,
        "starts at": _schedule(workspace.autostart_schedule or ""),
        "starts next": api_time(workspace.next_start_at) if workspace.next_start_at else "",
        "stops after": _ttl(workspace.ttl_ms or 0),
        "stops next": api_time(build.deadline) if build.deadline and status == "Started" else "",
        "daily cost": build.daily_cost,
    }


def _schedule(cron: str) -> str:
    """Format a weekly cron line as `7:00AM Mon-Fri (Europe/Berlin)`; return other lines unchanged."""
    if not cron:
        return ""
    zone = "UTC"
    fields = cron.split()
    if fields[0].startswith(("CRON_TZ=", "TZ=")):
        zone = fields.pop(0).partition("=")[2]
    if len(fields) != 5 or not (fields[0].isdigit() and fields[1].isdigit()):
        return cron
    minute, hour = int(fields[0]), int(fields[1])
    clock = f"{hour % 12 or 12}:{minute:02d}{'AM' if hour < 12 else 'PM'}"
    return f"{clock} {_days(fields[4])} ({zone})"


def _days(text: str) -> str:
    if text in {"*", "?"}:
        return "daily"
    names = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    return "".join(names[int(char)] if char.isdigit() and int(char) < len(names) else char for char in text)


def _ttl(milliseconds: int) -> str:
    if not milliseconds:
        return ""
    minutes = milliseconds // 60000
    hours, rest = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{rest}m" if rest or not hours else "")


def search(invocation: Invocation[SearchOptions], extra: str = "") -> str:
    """Return the `q` of a list command: `--search`, empty for `--all`, plus the command's own terms."""
    shared = bool(invocation.options.shared_with_me)
    if invocation.options.org:
        extra = f"organization:{invocation.options.org} {extra}".strip()
    if shared:
        extra = f"shared_with_user:me {extra}"
    # The default query is for the user's own workspaces, which are never shared with the user.
    is_wide = invocation.options.all or shared
    query = "" if is_wide and not invocation.given("search") else invocation.options.search
    return f"{query} {extra}".strip()


def fetch(client: BlockingClient, query: str) -> list[Workspace]:
    """Return the workspaces that match the query."""
    return _workspaces(_query(client, query))


def _query(client: BlockingClient, query: str) -> HttpAnswer:
    return client.request("GET", f"/api/v2/workspaces?q={quote(query)}")


def _workspaces(answer: HttpAnswer) -> list[Workspace]:
    from coder.api.workspaces.workspaces import WorkspacesResponse
    from coder.client.answers import read

    return read(answer, WorkspacesResponse).workspaces


def list_workspaces(invocation: Invocation[WorkspaceTableOptions], extra: str, empty_hint: str) -> int:
    client = session.client(invocation)
    with add_action_to_errors("query workspaces"):
        answer = _query(client, search(invocation, extra))
    if invocation.options.output == "json":
        print_json(as_object(answer.json())["workspaces"] or [])  # as received, so no msgspec struct has to be imported
        return 0
    workspaces = _workspaces(answer)
    if not workspaces:
        say(f"No workspaces found! Create one:\n\n  {empty_hint}\n")
        return 0
    print_table(chosen_columns(invocation), [workspace_row(item) for item in workspaces])
    return 0


@implements(LIST)
def _run_list(invocation: Invocation[ListOptions]) -> int:
    return list_workspaces(invocation, "", "coder create <name>")
