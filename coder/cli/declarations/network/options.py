"""Options and names shared by declarations: options."""

from __future__ import annotations

from coder.cli.core.options import Options, option

PCAP_FILE: str = option(
    "",
    "Also write the packets inside the tunnel to this pcap file, for Wireshark.",
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
