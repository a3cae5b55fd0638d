"""Options shared by commands that connect to a workspace."""

from __future__ import annotations

from coder.base.config import Option

DISABLE_AUTOSTART = Option(
    "disable_autostart",
    "disable-autostart",
    "CODER_SSH_DISABLE_AUTOSTART",
    kind="bool",
    default=False,
    help="Fail if the workspace is stopped instead of starting it.",
)
PCAP_FILE = Option(
    "pcap_file",
    "pcap-file",
    help="Also write the packets inside the tunnel to this pcap file, for Wireshark.",
)
