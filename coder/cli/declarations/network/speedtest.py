"""Declaration of `coder speedtest`."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from coder.cli.core.command import Command
from coder.cli.core.options import TableOptions, column_option, option, output_option
from coder.cli.declarations.network.options import PCAP_FILE, PcapOption


class SpeedtestOptions(TableOptions, PcapOption):
    """Options of `coder speedtest`."""

    direct: bool = option(
        False,
        "Wait for a direct connection before the test, so that the relay is not measured.",
        short="d",
    )
    direction: Literal["down", "up"] = option(
        "down",
        "Direction of the data: down from the workspace, or up to it.",
        choices=("up", "down"),
    )
    time: timedelta = option(
        timedelta(seconds=5),
        "Duration of the measurement, like 5s or 1m.",
        short="t",
        least=timedelta(milliseconds=100),
    )
    pcap_file: str = PCAP_FILE
    column: tuple[str, ...] = column_option(("Interval", "Throughput"), ("Interval", "Throughput"))
    output: str = output_option()


SPEEDTEST = Command(
    words="speedtest",
    summary="Run upload and download tests from your machine to a workspace",
    options=SpeedtestOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Measure download speed for ten seconds", "coder speedtest my-workspace -t 10s"),
        ("Measure upload speed over a direct connection", "coder speedtest my-workspace --direct --direction up"),
    ),
)
