"""Options and names shared by declarations: options."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from coder.cli.core.options import Options, option

PCAP_FILE: str = option(
    "",
    "Also write the packets inside the tunnel to this pcap file, for Wireshark.",
)


WAIT: Literal["yes", "no", "auto"] = option(
    "auto",
    "Wait for start scripts before opening the shell; auto follows the template.",
    env="CODER_SSH_WAIT",
    choices=("yes", "no", "auto"),
)


LOG_DIR: str = option(
    "",
    "Directory for a log file of the connection.",
    env="CODER_SSH_LOG_DIR",
    short="l",
)


NETWORK_INFO_DIR: str = option(
    "",
    "Directory for a file with latency, relay and throughput of the connection.",
)


NETWORK_INFO_INTERVAL: timedelta = option(
    timedelta(seconds=5),
    "Interval between updates of that file, like 5s; at least 100ms.",
    least=timedelta(milliseconds=100),
)


class DisableAutostartOption(Options):
    """The option `--disable-autostart`."""

    disable_autostart: bool = option(
        False,
        "Fail if the workspace is stopped instead of starting it.",
        env="CODER_SSH_DISABLE_AUTOSTART",
    )


class PcapOption(Options):
    """The option `--pcap-file`."""

    pcap_file: str = PCAP_FILE
