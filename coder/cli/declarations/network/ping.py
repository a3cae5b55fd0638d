"""Declaration of `coder ping`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option, output_option


class PingOptions(Options):
    """Options of `coder ping`."""

    wait: timedelta = option(
        timedelta(seconds=1),
        "Time between two pings, like 1s or 200ms.",
    )
    timeout: timedelta = option(
        timedelta(seconds=5),
        "Timeout for the reply to one ping, like 5s.",
        short="t",
        least=timedelta(milliseconds=1),
    )
    num: int = option(
        0,
        "Number of pings; 0 continues until interrupted.",
        short="n",
    )
    output: str = output_option(("text", "json"), "text")
    time: bool = option(
        False,
        "Print the local time of each ping.",
    )
    utc: bool = option(
        False,
        "Print the time of each ping in UTC.",
    )


PING = Command(
    words="ping",
    summary="Ping a workspace",
    options=PingOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Ping a workspace until Ctrl-C", "coder ping my-workspace"),
        ("Ping three times", "coder ping my-workspace -n 3"),
    ),
)
