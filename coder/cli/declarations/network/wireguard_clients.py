"""Declarations of the commands of `coder wireguard`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, YesOption, column_option, option, output_option

COLUMNS = (
    "name",
    "address",
    "workspaces",
    "expires at",
    "last handshake",
    "status",
    "endpoint",
    "public key",
    "created at",
)
DEFAULT_COLUMNS = COLUMNS[:6]
USER: str = option(
    "me",
    'Owner of the client, by name or id; "me" is the current user, other users require permission.',
    short="u",
)


class UserOption(Options):
    """The option `--user`."""

    user: str = USER


class WireguardAddOptions(UserOption):
    """Options of `coder wireguard add`."""

    workspace: tuple[str, ...] = option(
        (),
        "Workspace the client can reach; may be repeated; defaults to all you can connect to, now or later.",
        short="w",
    )
    expires: timedelta = option(
        timedelta(),
        "Lifetime of the client's access, like 12h, 7d or 1y; unlimited if not set.",
    )
    file: str = option(
        "",
        "Write the configuration to this new file, which only you can read.",
        short="f",
    )
    no_qr: bool = option(
        False,
        "Omit the QR code, which phones scan for the configuration.",
    )
    user: str = USER
    output: str = output_option(("text", "json"), "text")


class WireguardListOptions(TableOptions, UserOption):
    """Options of `coder wireguard list`."""

    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT_COLUMNS)
    output: str = output_option()


class WireguardRemoveOptions(UserOption, YesOption):
    """Options of `coder wireguard remove`."""


ADD = Command(
    words="wireguard add",
    summary="Add a WireGuard client that can reach your workspaces",
    options=WireguardAddOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    long="Prints a wg-quick configuration to standard output and its QR code to standard error.",
    examples=(
        ("Add a phone, whose app scans the QR code", "coder wireguard add phone"),
        (
            "Add a laptop for one workspace; access expires in 7 days",
            "coder wireguard add laptop --workspace my-workspace --expires 7d --file laptop.conf",
        ),
    ),
)

LIST = Command(
    words="wireguard list",
    summary="List your WireGuard clients and the workspaces they can reach",
    options=WireguardListOptions,
    max_args=0,
    examples=(("List your devices and their last handshakes", "coder wireguard list"),),
)

REMOVE = Command(
    words="wireguard remove",
    summary="Revoke a WireGuard client",
    options=WireguardRemoveOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Revoke a lost phone", "coder wireguard remove phone"),),
)
