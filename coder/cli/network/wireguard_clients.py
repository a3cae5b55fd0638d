"""`coder wireguard`: manages devices with the stock WireGuard app (phones, routers), which reach workspaces through the
server.

The private key is generated locally and printed once, in the configuration; the server gets only the public key.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from coder.api.wireguard.wireguard_clients import (
    CreateWireguardClientResponse,
    WireguardClient,
    WireguardServer,
    WireguardTarget,
)
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.files.private_files import open_private
from coder.base.json_types import JsonObject, as_object
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.wireguard_clients import (
    ADD,
    LIST,
    REMOVE,
    UserOption,
    WireguardAddOptions,
    WireguardListOptions,
    WireguardRemoveOptions,
)
from coder.cli.ui.output import Row, api_time, confirm, print_json, print_rows, say, since
from coder.client.answers import read, read_rows
from coder.client.target import split_target
from coder.domain.foundation.endpoints import read_endpoint
from coder.net.blocking import BlockingClient


def _path(invocation: Invocation[UserOption], name: str = "") -> str:
    base = f"/api/v2/users/{quote(invocation.options.user or 'me')}/wireguard-clients"
    return f"{base}/{quote(name)}" if name else base


@implements(ADD)
def _add(invocation: Invocation[WireguardAddOptions]) -> int:
    from wireguard_tools import WireguardKey

    if invocation.options.file and Path(invocation.options.file).exists():
        raise CoderError("wireguard_file", f"{invocation.options.file} already exists", "Choose another file.")
    key = WireguardKey.generate()
    body: JsonObject = {"name": invocation.args[0], "public_key": str(key.public_key())}
    if invocation.given("expires"):
        seconds = int(invocation.options.expires.total_seconds())
        if seconds <= 0:
            raise CoderError("expires", "the lifetime must be greater than zero", "Write 12h, 7d or 1y.")
        body["lifetime_seconds"] = seconds
    client = session.client(invocation)
    if invocation.options.workspace:
        body["workspace_ids"] = [str(_workspace_id(client, name)) for name in invocation.options.workspace]
    answer = client.request("GET", "/api/v2/wireguard")
    server, raw_server = read(answer, WireguardServer), answer.json()
    if server.enabled:  # otherwise the server's error explains what to do
        _check_server(server)
    answer = client.request("POST", _path(invocation), json=body)
    created, raw = read(answer, CreateWireguardClientResponse), {**as_object(answer.json())}
    if server.enabled:
        created.server, raw["server"] = server, raw_server  # resolved before the client was created
    _check_texts(created)
    text = config_text(created, key)
    if invocation.options.output == "json":
        print_json({**raw, "config": text})
        return 0
    if invocation.options.file:
        _write_private(invocation.options.file, text)
        say(f"Wrote {invocation.options.file}.")
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
        if not invocation.options.no_qr:
            _show_qr(text)
    _explain(created)
    return 0


def _check_server(server: WireguardServer) -> None:
    """Raise CoderError unless the server can create the client. Checked first, since the private key exists only in the
    configuration."""
    from wireguard_tools import WireguardKey

    try:
        read_endpoint(server.endpoint)
        WireguardKey(server.public_key)
    except ValueError as error:
        raise CoderError(
            "wireguard_server",
            f"no client was added: the server's endpoint ({quoted(server.endpoint)}) is invalid",
            "An administrator can correct it with --wireguard-endpoint host:port (CODER_WIREGUARD_ENDPOINT).",
        ) from error


def _write_private(path: str, text: str) -> None:
    """Write a new file that only its owner can read. Raise CoderError that names the client, which exists by then."""
    try:
        descriptor = open_private(Path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(text)
        except OSError:
            Path(path).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CoderError(
            "wireguard_file", f"cannot write {path}", "Remove the new client and add it again with another file."
        ) from error


def _workspace_id(client: BlockingClient, name: str) -> UUID:
    owner, workspace, _ = split_target(name)
    return read(client.request("GET", f"/api/v2/users/{quote(owner)}/workspace/{quote(workspace)}"), Workspace).id


def config_text(created: CreateWireguardClientResponse, key: object) -> str:
    """Return the wg-quick configuration of a new client.

    Not written by `wireguard_tools`, which omits the brackets of an IPv6 endpoint.
    """
    server, client = created.server, created.client
    # A client limited to some workspaces routes only those; any other routes future ones too.
    limited = [f"{target.address}/128" for target in client.targets] if client.workspace_ids else []
    lines = [
        f"# {client.name} of {client.username}; the only copy of its private key.",
        *(f"# {_target_name(target)}: {target.address}" for target in client.targets),
        "[Interface]",
        f"PrivateKey = {key}",
        f"MTU = {server.mtu}",
        f"Address = {client.address}/128",
        "",
        "[Peer]",
        f"PublicKey = {server.public_key}",
        f"Endpoint = {read_endpoint(server.endpoint)}",
        f"PersistentKeepalive = {server.persistent_keepalive}",
        *(f"AllowedIPs = {network}" for network in limited or server.allowed_ips),
    ]
    return "\n".join([*lines, ""])


def _check_texts(created: CreateWireguardClientResponse) -> None:
    """Raise CoderError when a text of the server would add a line: wg-quick runs `PostUp` as root."""
    client = created.client
    texts = [client.name, client.username, client.address, *created.server.allowed_ips]
    texts += [text for target in client.targets for text in (target.address, _target_name(target))]
    if not all(text.isprintable() for text in texts):
        raise CoderError(
            "wireguard_server",
            "the server's answer cannot be written as a WireGuard configuration: it has control characters",
            f"Remove the client {quoted(client.name)}, and ask an administrator.",
        )


def _target_name(target: WireguardTarget) -> str:
    return f"{target.owner_name}/{target.workspace_name}.{target.agent_name}"


def _show_qr(text: str) -> None:
    import segno

    # Omit comments: a smaller code is easier to scan.
    bare = "\n".join(line for line in text.splitlines() if line and not line.startswith("#"))
    segno.make(bare, error="l", boost_error=False).terminal(sys.stderr, compact=True)


def _explain(created: CreateWireguardClientResponse) -> None:
    client = created.client
    say("Scan the code with a WireGuard app, or use the configuration with wg-quick.")
    reached = _count(len(client.targets), "workspace agent")
    say(f"Client {quoted(client.name)} reaches {reached} now; addresses stay the same over builds.")
    if client.expires_at:
        say(f"It expires at {api_time(client.expires_at)}.")
    say(f"Revoke it with: coder wireguard remove {client.name}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


@implements(LIST)
def _list(invocation: Invocation[WireguardListOptions]) -> int:
    clients = read_rows(session.client(invocation).request("GET", _path(invocation)), WireguardClient)
    print_rows(invocation, lambda: [_row(item) for item, _ in clients], lambda: [raw for _, raw in clients])
    if invocation.options.output == "table":
        targets = {target.address: _target_name(target) for item, _ in clients for target in item.targets}
        for address, name in targets.items():
            say(f"{address}  {name}")
    return 0


def _row(item: WireguardClient) -> Row:
    return {
        "name": item.name,
        "address": item.address,
        "workspaces": len({target.workspace_id for target in item.targets}),
        "expires at": api_time(item.expires_at) if item.expires_at else "never",
        "last handshake": f"{since(item.last_handshake_at)} ago" if item.last_handshake_at else "never",
        "status": item.status,
        "endpoint": item.endpoint,
        "public key": item.public_key,
        "created at": api_time(item.created_at),
    }


@implements(REMOVE)
def _remove(invocation: Invocation[WireguardRemoveOptions]) -> int:
    name = invocation.args[0]
    confirm(invocation.options.yes, f"Revoke the WireGuard client {quoted(name)}?")
    session.client(invocation).request("DELETE", _path(invocation, name))
    say(f"The WireGuard client {quoted(name)} has been removed and lost its access.")
    return 0
