"""`coder exp sync`: dependencies between workspace scripts, through the agent's socket."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.agents.sync import (
    COMPLETE,
    LIST,
    PING,
    START,
    STATUS,
    WANT,
    SocketOption,
    SyncListOptions,
    SyncStartOptions,
    SyncStatusOptions,
)
from coder.cli.ui.output import print_json, print_rows, print_table

GRACE = 5.0
"""Seconds after the requested timeout until the agent must have answered."""


def ask_agent(
    invocation: Invocation[SocketOption], verb: str, *, patience: float = 10.0, **more: Json
) -> dict[str, Json]:
    """Send a request to this workspace's agent and return its answer. Raise CoderError if it fails or is
    unreachable."""
    path = invocation.options.socket_path
    if not path and hasattr(socket, "AF_UNIX"):
        message = "no agent's socket is known here"
        raise CoderError("sync", message, "Run this in a workspace, where CODER_AGENT_SOCKET_PATH is set.")
    return ask_socket(path, verb, patience=patience, **more)


def ask_socket(path: str, verb: str, *, patience: float = 10.0, **more: Json) -> dict[str, Json]:
    """Send a request to the agent at a Unix socket and return its answer. Raise CoderError as `ask_agent`."""
    if not hasattr(socket, "AF_UNIX"):
        raise CoderError(
            "sync",
            "the agent has no socket for scripts on this system",
            "Write the steps that depend on each other into one script; it runs them in order.",
        )
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


@implements(PING)
def _ping(invocation: Invocation[SocketOption]) -> int:
    ask_agent(invocation, "ping")
    sys.stdout.write("Success\n")
    return 0


@implements(WANT)
def _want(invocation: Invocation[SocketOption]) -> int:
    unit, *depends_on = invocation.args
    ask_agent(invocation, "want", unit=unit, depends_on=depends_on)
    sys.stdout.write("Success\n")
    return 0


@implements(START)
def _start(invocation: Invocation[SyncStartOptions]) -> int:
    seconds = invocation.options.timeout.total_seconds()
    ask_agent(invocation, "start", unit=invocation.args[0], timeout=seconds, patience=seconds)
    sys.stdout.write("Success\n")
    return 0


@implements(COMPLETE)
def _complete(invocation: Invocation[SocketOption]) -> int:
    ask_agent(invocation, "complete", unit=invocation.args[0])
    sys.stdout.write("Success\n")
    return 0


@implements(STATUS)
def _status(invocation: Invocation[SyncStatusOptions]) -> int:
    unit = ask_agent(invocation, "status", unit=invocation.args[0])
    rows = [{key.replace("_", " "): value for key, value in row.items()} for row in _rows(unit["dependencies"])]
    if invocation.options.output == "json":
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
        print_table([column.strip().lower() for column in invocation.options.column], rows)
    return 0


@implements(LIST)
def _list(invocation: Invocation[SyncListOptions]) -> int:
    units = _rows(ask_agent(invocation, "list")["units"])
    print_rows(invocation, lambda: units, lambda: units)
    return 0


def _rows(value: Json) -> list[Mapping[str, Json]]:
    """Return the objects of a list."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
