"""Declaration of `coder logs`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class LogsOptions(Options):
    """Options of `coder logs`."""

    build_number: int = option(
        0,
        "Number of the build to print; 0 is the latest, -1 the previous one.",
        short="n",
    )
    follow: bool = option(
        False,
        "Print new lines as they arrive, until the build and its scripts finish.",
        short="f",
    )


LOGS = Command(
    words="logs",
    summary="View logs for a workspace",
    options=LogsOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Print the logs of the last build and of the agent", "coder logs my-workspace"),
        ("Follow new log lines", "coder logs my-workspace --follow"),
        ("Print the logs of the previous build", "coder logs my-workspace --build-number -1"),
    ),
)
