"""`coder exp sync`: dependencies between workspace scripts, through the agent's socket."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

from coder.base.config import Option
from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.cli.core.command import Command, Invocation, column_option, output_option
from coder.cli.ui.output import print_json, print_rows, print_table

GRACE = 5.0
"""Seconds after the requested timeout until the agent must have answered."""
LIST_COLUMNS = ("unit", "status", "ready")
STATUS_COLUMNS = ("depends on", "required status", "current status", "satisfied")


def ask_agent(invocation: Invocation, verb: str, *, patience: float = 10.0, **more: Any) -> dict[str, Any]:
    """Send a request to this workspace's agent and return its answer. Raise CoderError if it fails or is
    unreachable."""
    path = invocation["socket_path"]
    if not path:
        message = "no agent's socket is known here"
        raise CoderError("sync", message, "Run this in a workspace, where CODER_AGENT_SOCKET_PATH is set.")
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience + GRACE)
            connection.connect(path)
            connection.sendall(json.dumps({"verb": verb, **more}).encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        message = f"the agent does not answer at {path}"
        raise CoderError("sync", message, "Is the agent running, and is this its workspace?") from error
    if not isinstance(answer, dict) or answer.get("error"):
        raise CoderError("sync", str(answer["error"] if isinstance(answer, dict) else "an invalid answer"))
    return answer


def _ping(invocation: Invocation) -> int:
    ask_agent(invocation, "ping")
    sys.stdout.write("Success\n")
    return 0


def _want(invocation: Invocation) -> int:
    unit, *depends_on = invocation.args
    ask_agent(invocation, "want", unit=unit, depends_on=depends_on)
    sys.stdout.write("Success\n")
    return 0


def _start(invocation: Invocation) -> int:
    seconds = invocation["timeout"].total_seconds()
    ask_agent(invocation, "start", unit=invocation.args[0], timeout=seconds, patience=seconds)
    sys.stdout.write("Success\n")
    return 0


def _complete(invocation: Invocation) -> int:
    ask_agent(invocation, "complete", unit=invocation.args[0])
    sys.stdout.write("Success\n")
    return 0


def _status(invocation: Invocation) -> int:
    unit = ask_agent(invocation, "status", unit=invocation.args[0])
    rows = [{key.replace("_", " "): value for key, value in row.items()} for row in unit["dependencies"]]
    if invocation["output"] == "json":
        print_json(
            {
                "unit_name": unit["unit"],
                "status": unit["status"],
                "is_ready": unit["ready"],
                "dependencies": unit["dependencies"],
            }
        )
        return 0
    status = unit["status"] or "not registered"
    sys.stdout.write(f"Unit: {unit['unit']}\nStatus: {status}\nReady: {str(unit['ready']).lower()}\n")
    if rows:
        sys.stdout.write("\nDependencies:\n")
        print_table([column.strip().lower() for column in invocation["column"]], rows)
    return 0


def _list(invocation: Invocation) -> int:
    units = ask_agent(invocation, "list")["units"]
    print_rows(invocation, lambda: units, lambda: units)
    return 0


SOCKET = Option(
    "socket_path",
    "socket-path",
    "CODER_AGENT_SOCKET_PATH",
    help="Path of the agent's socket; set by the environment inside a workspace.",
)
"""Option of the whole group."""
PING = Command(words="exp sync ping", summary="Check that the agent's socket answers", run=_ping, max_args=0)
WANT = Command(
    words="exp sync want",
    summary="Declare the units that must complete before a unit starts",
    usage="<unit> <depends-on…>",
    run=_want,
    min_args=2,
)
START = Command(
    words="exp sync start",
    summary="Wait for a unit's dependencies, then mark it started",
    usage="<unit>",
    run=_start,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "timeout",
            "timeout",
            kind="duration",
            default=parse_duration("5m"),
            help="Fail if the unit's dependencies are not complete after this long.",
        ),
    ),
)
COMPLETE = Command(
    words="exp sync complete",
    summary="Mark a unit complete so that its dependents can start",
    usage="<unit>",
    run=_complete,
    min_args=1,
    max_args=1,
)
STATUS = Command(
    words="exp sync status",
    summary="Show a unit and its dependencies",
    usage="<unit>",
    run=_status,
    min_args=1,
    max_args=1,
    options=(column_option(STATUS_COLUMNS, STATUS_COLUMNS), output_option()),
)
LIST = Command(
    words="exp sync list",
    summary="List the units and their states",
    run=_list,
    max_args=0,
    options=(column_option(LIST_COLUMNS, LIST_COLUMNS), output_option()),
)
