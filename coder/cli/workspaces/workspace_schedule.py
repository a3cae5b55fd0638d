"""`coder schedule`: autostart and autostop of workspaces. `schedules.py` parses times of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from coder.api.workspaces.workspaces import Workspace
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import go_time, print_rows, print_table, say
from coder.cli.workspaces.schedules import parse_schedule, parse_time_span
from coder.cli.workspaces.workspaces import SEARCH, fetch, find_workspace, search, workspace_row
from coder.client.answers import read
from coder.net.blocking import BlockingClient

COLUMNS = ("workspace", "starts at", "starts next", "stops after", "stops next")
SHORTEST_EXTENSION = timedelta(minutes=29)
"""Upstream's minimum: a shorter extension is useless, as users are warned half an hour before the deadline."""


def _show(invocation: Invocation) -> int:
    client = session.client(invocation)
    if invocation.args:
        workspaces = [find_workspace(client, invocation.args[0])]
    else:
        with add_action_to_errors("query workspaces"):
            workspaces = fetch(client, search(invocation))
    rows = [schedule_row(workspace) for workspace in workspaces]
    if not rows and invocation["output"] != "json":
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


def _start(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, *words = invocation.args
    schedule = None if words == ["manual"] else parse_schedule(words)
    workspace = find_workspace(client, name)
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/autostart", json={"schedule": schedule})
    return _print(client, workspace)


def _stop(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, when = invocation.args
    ttl = None if when == "manual" else int(parse_time_span(when).total_seconds() * 1000)
    workspace = find_workspace(client, name)
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/ttl", json={"ttl_ms": ttl})
    return _print(client, workspace)


def _extend(invocation: Invocation) -> int:
    client = session.client(invocation)
    name, text = invocation.args
    longer = parse_time_span(text)
    if longer < SHORTEST_EXTENSION:
        raise CoderError("too_short", "Please specify a duration of at least 30 minutes.")
    workspace = find_workspace(client, name)
    deadline = (datetime.now(UTC) + longer).isoformat(timespec="seconds").replace("+00:00", "Z")
    client.request("PUT", f"/api/v2/workspaces/{workspace.id}/extend", json={"deadline": deadline})
    return _print(client, workspace)


SHOW = Command(
    words="schedule show",
    summary="Show workspace schedules",
    usage="[workspace]",
    run=_show,
    max_args=1,
    options=(
        Option(
            "all",
            "all",
            short="a",
            kind="bool",
            default=False,
            help="List all schedules you can see, not only your own.",
        ),
        SEARCH,
        column_option(COLUMNS, COLUMNS),
        output_option(),
    ),
)
START = Command(
    words="schedule start",
    summary="Edit workspace start schedule",
    usage="<workspace> {<start-time> [day-of-week] [location] | manual}",
    run=_start,
    min_args=2,
    max_args=4,
)
STOP = Command(
    words="schedule stop",
    summary="Edit workspace stop schedule",
    usage="<workspace> {<duration> | manual}",
    run=_stop,
    min_args=2,
    max_args=2,
)
EXTEND = Command(
    words="schedule extend",
    summary="Extend the stop time of a currently running workspace instance.",
    usage="<workspace> <duration from now>",
    run=_extend,
    min_args=2,
    max_args=2,
)
