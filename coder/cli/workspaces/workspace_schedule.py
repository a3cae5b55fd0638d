"""`coder schedule`: autostart and autostop of workspaces. `schedules.py` parses times of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import Options
from coder.cli.declarations.workspaces.workspace_schedule import COLUMNS, EXTEND, SHOW, START, STOP, ScheduleShowOptions
from coder.cli.ui.output import go_time, print_rows, print_table, say
from coder.cli.workspaces.find_workspace import find_workspace
from coder.cli.workspaces.schedules import parse_schedule, parse_time_span
from coder.cli.workspaces.workspaces import fetch, search, workspace_row
from coder.client.answers import read
from coder.net.blocking import BlockingClient

SHORTEST_EXTENSION = timedelta(minutes=29)
"""Upstream's minimum: a shorter extension is useless, as users are warned half an hour before the deadline."""


@implements(SHOW)
def _show(invocation: Invocation[ScheduleShowOptions]) -> int:
    client = session.client(invocation)
    if invocation.args:
        workspaces = [find_workspace(client, invocation.args[0])]
    else:
        with add_action_to_errors("query workspaces"):
            workspaces = fetch(client, search(invocation))
    rows = [schedule_row(workspace) for workspace in workspaces]
    if not rows and invocation.options.output != "json":
        say("No workspaces found! Create one:\n\n  coder create <name>\n")
        return 0
    print_rows(
        invocation,
        lambda: rows,
        lambda: [{column.replace(" ", "_"): row[column] for column in COLUMNS} for row in rows],
    )
    return 0


def schedule_row(workspace: Workspace) -> dict[str, object]:
    """Return the cells by column, with times to the second."""
    row = workspace_row(workspace)
    return {column: go_time(str(row[column])) if column.endswith("next") else row[column] for column in COLUMNS}


def _print(client: BlockingClient, workspace: Workspace) -> int:
    fresh = read(client.request("GET", f"/api/v2/workspaces/{workspace.id}"), Workspace)
    print_table(COLUMNS, [schedule_row(fresh)])
    return 0


@implements(START)
def _start(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    name, *words = invocation.args
    schedule = None if words == ["manual"] else parse_schedule(words)
    workspace = find_workspace(client, name)
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/autostart", json={"schedule": schedule})
    return _print(client, workspace)


@implements(STOP)
def _stop(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    name, when = invocation.args
    ttl = None if when == "manual" else int(parse_time_span(when).total_seconds() * 1000)
    workspace = find_workspace(client, name)
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/ttl", json={"ttl_ms": ttl})
    return _print(client, workspace)


@implements(EXTEND)
def _extend(invocation: Invocation[Options]) -> int:
    client = session.client(invocation)
    name, text = invocation.args
    longer = parse_time_span(text)
    if longer < SHORTEST_EXTENSION:
        raise CoderError("too_short", "Please specify a duration of at least 30 minutes.")
    workspace = find_workspace(client, name)
    deadline = (datetime.now(UTC) + longer).isoformat(timespec="seconds").replace("+00:00", "Z")
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/extend", json={"deadline": deadline})
    return _print(client, workspace)
