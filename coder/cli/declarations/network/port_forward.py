"""Declaration of `coder port-forward`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.network.options import DisableAutostartOption


class PortForwardOptions(DisableAutostartOption):
    """Options of `coder port-forward`."""

    tcp: tuple[str, ...] = option(
        (),
        "TCP ports to forward: 8080, or local:remote like 9000:8080; also ranges and comma-separated lists.",
        env="CODER_PORT_FORWARD_TCP",
        short="p",
    )
    udp: tuple[str, ...] = option(
        (),
        "UDP ports to forward: 5353, or local:remote like 9053:53; also ranges and comma-separated lists.",
        env="CODER_PORT_FORWARD_UDP",
    )


PORT_FORWARD = Command(
    words="port-forward",
    summary="Forward ports from a workspace to the local machine",
    options=PortForwardOptions,
    usage="<workspace>",
    min_args=1,
    max_args=1,
    examples=(
        ("Forward localhost:8080 to port 8080 of the workspace", "coder port-forward my-workspace --tcp 8080"),
        ("Forward a different local port", "coder port-forward my-workspace --tcp 9000:8080"),
        ("Forward a range of TCP ports and a UDP port", "coder port-forward my-workspace --tcp 3000-3010 --udp 5353"),
    ),
)
