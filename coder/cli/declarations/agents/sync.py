"""Declarations of the commands of `coder exp sync`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option

LIST_COLUMNS = ("unit", "status", "ready")
STATUS_COLUMNS = ("depends on", "required status", "current status", "satisfied")


class SocketOption(Options):
    """The option `--socket-path`."""

    socket_path: str = option(
        "",
        "Path of the agent's socket; set by the environment inside a workspace.",
        env="CODER_AGENT_SOCKET_PATH",
    )


class SyncListOptions(TableOptions, SocketOption):
    """Options of `coder exp sync list`."""

    column: tuple[str, ...] = column_option(LIST_COLUMNS, LIST_COLUMNS)
    output: str = output_option()


class SyncStartOptions(SocketOption):
    """Options of `coder exp sync start`."""

    timeout: timedelta = option(
        timedelta(minutes=5),
        "Fail if the unit's dependencies are not complete after this long.",
    )


class SyncStatusOptions(TableOptions, SocketOption):
    """Options of `coder exp sync status`."""

    column: tuple[str, ...] = column_option(STATUS_COLUMNS, STATUS_COLUMNS)
    output: str = output_option()


COMPLETE = Command(
    words="exp sync complete",
    summary="Mark a unit complete so that its dependents can start",
    options=SocketOption,
    usage="<unit>",
    min_args=1,
    max_args=1,
    examples=(("Mark a unit complete", "coder exp sync complete database"),),
)

LIST = Command(
    words="exp sync list",
    summary="List the units and their states",
    options=SyncListOptions,
    max_args=0,
    examples=(("List the units and their states", "coder exp sync list"),),
)

PING = Command(
    words="exp sync ping",
    summary="Check that the agent's socket answers",
    options=SocketOption,
    max_args=0,
    examples=(("Check that the agent answers", "coder exp sync ping"),),
)

START = Command(
    words="exp sync start",
    summary="Wait for a unit's dependencies, then mark it started",
    options=SyncStartOptions,
    usage="<unit>",
    min_args=1,
    max_args=1,
    examples=(("Wait for a unit's dependencies, then mark it started", "coder exp sync start web --timeout 10m"),),
)

STATUS = Command(
    words="exp sync status",
    summary="Show a unit and its dependencies",
    options=SyncStatusOptions,
    usage="<unit>",
    min_args=1,
    max_args=1,
    examples=(("Show what a unit still waits for", "coder exp sync status web"),),
)

WANT = Command(
    words="exp sync want",
    summary="Declare the units that must complete before a unit starts",
    options=SocketOption,
    usage="<unit> <depends-on…>",
    min_args=2,
    examples=(("Make the unit web depend on two others", "coder exp sync want web database cache"),),
)
