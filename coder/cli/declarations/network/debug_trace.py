"""Declaration of `coder debug trace`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import option, output_option
from coder.cli.declarations.network.options import PCAP_FILE, PcapOption


class DebugTraceOptions(PcapOption):
    """Options of `coder debug trace`."""

    time: timedelta = option(
        timedelta(seconds=10),
        "Duration of the trace, like 10s or 2m; Ctrl-C stops it earlier.",
        short="t",
    )
    pcap_file: str = PCAP_FILE
    output: str = output_option(("text", "json"), "text")


TRACE = Command(
    words="debug trace",
    summary="Trace how the connection to a workspace is established",
    options=DebugTraceOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    long="Prints one event per line: connected relays, handshakes, path changes, ping replies. "
    "JSON prints one object per line.",
    examples=(
        ("Watch the connection select a path", "coder debug trace my-workspace --time 30s"),
        ("Capture packets for Wireshark", "coder debug trace my-workspace --pcap-file trace.pcap"),
    ),
)
