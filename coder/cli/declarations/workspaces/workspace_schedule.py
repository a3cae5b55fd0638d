"""Declarations of the commands of `coder schedule`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option
from coder.cli.declarations.workspaces.workspaces import SEARCH, SearchOptions

COLUMNS = ("workspace", "starts at", "starts next", "stops after", "stops next")


class ScheduleShowOptions(SearchOptions, TableOptions):
    """Options of `coder schedule show`."""

    all: bool = option(
        False,
        "List all schedules you can see, not only your own.",
        short="a",
    )
    search: str = SEARCH
    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


EXTEND = Command(
    words="schedule extend",
    summary="Extend the stop time of a currently running workspace instance.",
    options=Options,
    usage="<workspace> <duration from now>",
    min_args=2,
    max_args=2,
    examples=(
        ("Extend the stop time by two hours", "coder schedule extend my-workspace 2h"),
        ("Extend another user's workspace by 30 minutes", "coder schedule extend alice/her-workspace 30m"),
    ),
)

SHOW = Command(
    words="schedule show",
    summary="Show workspace schedules",
    options=ScheduleShowOptions,
    usage="[workspace]",
    max_args=1,
    examples=(
        ("Show when your workspaces start and stop", "coder schedule show"),
        ("Show the schedules of all running workspaces", 'coder schedule show --all --search "status:running"'),
    ),
)

START = Command(
    words="schedule start",
    summary="Edit workspace start schedule",
    options=Options,
    usage="<workspace> {<start-time> [day-of-week] [location] | manual}",
    min_args=2,
    max_args=4,
    examples=(
        ("Start a workspace on weekdays", "coder schedule start my-workspace 9:00AM Mon-Fri Europe/Berlin"),
        ("Turn autostart off", "coder schedule start my-workspace manual"),
    ),
)

STOP = Command(
    words="schedule stop",
    summary="Edit workspace stop schedule",
    options=Options,
    usage="<workspace> {<duration> | manual}",
    min_args=2,
    max_args=2,
    examples=(
        ("Stop a workspace eight hours after each start", "coder schedule stop my-workspace 8h"),
        ("Turn autostop off", "coder schedule stop my-workspace manual"),
    ),
)
