"""Declaration of `coder netcheck`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, output_option


class NetcheckOptions(Options):
    """Options of `coder netcheck`."""

    output: str = output_option(("json", "text"), "json")


NETCHECK = Command(
    words="netcheck",
    summary="Print network debug information for DERP and STUN",
    options=NetcheckOptions,
    max_args=0,
    examples=(
        ("Check which relays this machine reaches, and their latency", "coder netcheck"),
        ("Print the report as text", "coder netcheck --output text"),
    ),
)
