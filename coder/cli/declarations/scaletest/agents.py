"""Declaration of `coder exp scaletest agents`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class ScaletestAgentsOptions(Options):
    """Options of `coder exp scaletest agents`."""

    token_file: str = option(
        "",
        "File with one agent token in each line; - reads standard input.",
        env="CODER_SCALETEST_TOKEN_FILE",
    )
    count: int = option(
        0,
        "Number of agents; 0 simulates one for each token.",
        env="CODER_SCALETEST_COUNT",
        short="c",
    )
    ramp: int = option(
        20,
        "Number of new agents that connect in each second.",
        env="CODER_SCALETEST_RAMP",
    )
    duration: timedelta = option(
        timedelta(minutes=5),
        "Time after the last agent has started, like 5m; 0 runs until interrupted.",
        env="CODER_SCALETEST_DURATION",
    )
    progress: timedelta = option(
        timedelta(seconds=5),
        "Time between two lines of progress, like 5s.",
        env="CODER_SCALETEST_PROGRESS",
    )
    live_logs: int = option(
        5,
        "Percentage of the agents that write a log line every second.",
        env="CODER_SCALETEST_LIVE_LOGS",
    )
    no_relay: bool = option(
        False,
        "Simulate agents without a link to the relay.",
        env="CODER_SCALETEST_NO_RELAY",
    )
    output: str = option(
        "text",
        "Format of the result: text or json.",
        env="CODER_SCALETEST_OUTPUT",
        short="o",
        choices=("text", "json"),
    )


AGENTS = Command(
    words="exp scaletest agents",
    summary="Connect many simulated agents and keep them connected",
    options=ScaletestAgentsOptions,
    long="Simulates agents without machines: each has the RPC session, the relay link and the periodic reports of a "
    "real one. Their tokens are those of external agents in workspaces that create-workspaces made, or the lines "
    "of --token-file.",
    max_args=0,
    examples=(
        (
            "Keep an agent for each token of a file connected for half an hour",
            "coder exp scaletest agents --token-file tokens.txt --duration 30m --output json",
        ),
    ),
)
