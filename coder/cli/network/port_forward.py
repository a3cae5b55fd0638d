"""`coder port-forward`: forwards local ports to the workspace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import trio

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.port_forward import PORT_FORWARD, PortForwardOptions
from coder.client.followed_link import FollowedLink, open_followed_link
from coder.client.link import WorkspaceLink
from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.client.udp_forward import forward_udp, open_udp
from coder.client.usage import report_usage
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.splice import splice


@dataclass(frozen=True, slots=True)
class Forward:
    hosts: tuple[str, ...]
    "Local addresses to listen at."
    local: int
    remote: int
    protocol: str = "TCP"


def parse_specs(texts: Iterable[str], protocol: str = "TCP") -> list[Forward]:
    """Parse `[bind_ip:]local[-last][:remote[-last]]`, separated by commas. Raise CoderError."""
    forwards: list[Forward] = []
    for text in texts:
        for spec in text.split(","):
            try:
                forwards += _spec(spec.strip(), protocol)
            except ValueError as error:
                raise CoderError(
                    "port_forward",
                    "parse port-forward specs: failed to parse "
                    f'{protocol} port-forward specification "{spec}": {error}',
                    "Use [bind_ip:]local[:remote], and ranges like 8000-8010.",
                ) from None
    return forwards


def _spec(text: str, protocol: str) -> list[Forward]:
    hosts: tuple[str, ...] = ("127.0.0.1", "::1")
    body = text
    if body.startswith("["):
        host, bracket, body = body[1:].partition("]")
        if not bracket:
            raise ValueError("missing ] of the bind address")
        hosts, body = (host,), body.removeprefix(":")
    elif body.count(":") == 2 or ("." in body.split(":")[0] and ":" in body):
        host, _, body = body.partition(":")
        hosts = (host,)
    local_text, colon, remote_text = body.partition(":")
    local = _ports(local_text, "local")
    remote = _ports(remote_text, "remote") if colon else local
    if len(local) != len(remote):
        counts = f"{len(local)} ports forwarded to {len(remote)} ports"
        raise ValueError(f"port ranges must be the same length, got {counts}")
    return [Forward(hosts, near, far, protocol) for near, far in zip(local, remote, strict=True)]


def _ports(text: str, side: str) -> list[int]:
    """Parse a range of ports. Scripts compare the texts of its errors."""
    first, dash, last = text.partition("-")
    try:
        low = _port(first, "start", text)
        high = _port(last, "end", text) if dash else low
        if high < low:
            raise ValueError(f"range end port {high} is less than range start port {low}")
    except ValueError as error:
        raise ValueError(f'parse {side} port range from "{text}": {error}') from error
    return list(range(low, high + 1))


def _port(text: str, end: str, port_range: str) -> int:
    context = f'parse range {end} port from "{port_range}"'
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'{context}: parse port "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) > 65535:
        raise ValueError(f'{context}: parse port "{text}": strconv.ParseUint: parsing "{text}": value out of range')
    if int(text) == 0:
        raise ValueError(f"{context}: port cannot be 0")
    return int(text)


@implements(PORT_FORWARD)
def _run(invocation: Invocation[PortForwardOptions]) -> int:
    forwards = parse_specs(invocation.options.tcp) + parse_specs(invocation.options.udp, "UDP")
    if not forwards:
        raise CoderError("port_forward", "no port-forwards requested", "coder port-forward WORKSPACE --tcp 8080")
    used: set[tuple[str, str, int]] = set()
    for forward in forwards:
        for host in forward.hosts:
            address = (forward.protocol, host, forward.local)
            if address in used:
                label = f"{forward.protocol.lower()} {host}:{forward.local}"
                raise CoderError("port_forward", f"the local address {label} is used twice", "Forward each port once.")
            used.add(address)
    run_trio(_main, invocation, forwards)
    return 0


async def _main(invocation: Invocation[PortForwardOptions], forwards: list[Forward]) -> None:
    policy = session.dial_policy(invocation)
    async with HttpClient(policy) as http:
        prepare = Preparation(http, print_to_stderr, autostart=not invocation.options.disable_autostart)
        target = await prepare.wait_connected(await prepare.find(invocation.args[0]))
        await _forward_all(invocation, policy, prepare, target, forwards)


async def _forward_all(
    invocation: Invocation[PortForwardOptions],
    policy: DialPolicy,
    prepare: Preparation,
    target: ReadyAgent,
    forwards: list[Forward],
) -> None:
    udp = [forward for forward in forwards if forward.protocol == "UDP"]

    def open_link(agent: ReadyAgent) -> AbstractAsyncContextManager[SharedLink | WorkspaceLink]:
        # A shared tunnel lends streams only, not datagrams.
        direct = not invocation.globals.disable_direct
        return open_link_for_command(
            policy, session.config_dir(invocation), prepare, agent, direct=direct, is_own=bool(udp)
        )

    async def report(
        agent: ReadyAgent, _link: SharedLink | WorkspaceLink, *, task_status: trio.TaskStatus[None]
    ) -> None:
        task_status.started()
        await report_usage(policy, agent, "")

    async def forward_datagrams(
        _agent: ReadyAgent, link: SharedLink | WorkspaceLink, *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with trio.open_nursery() as nursery:
            for forward in udp:
                for local in _listen_udp(forward):
                    if isinstance(link, WorkspaceLink):  # it is: a shared tunnel lends streams only
                        nursery.start_soon(forward_udp, link, local, forward.remote)
            task_status.started()

    async with (
        open_followed_link(prepare, target, open_link, [report, forward_datagrams]) as link,
        trio.open_nursery() as nursery,
    ):
        for forward in forwards:
            if forward.protocol == "TCP":
                nursery.start_soon(trio.serve_listeners, _handler(link, forward.remote), await _listen(forward))
            host = f"[{forward.hosts[0]}]" if ":" in forward.hosts[0] else forward.hosts[0]
            sys.stdout.write(
                f"Forwarding '{forward.protocol.lower()}://{host}:{forward.local}' locally to "
                f"'{forward.protocol.lower()}://127.0.0.1:{forward.remote}' in the workspace\n"
            )
        sys.stdout.write("Ready!\n")
        sys.stdout.flush()
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                break
        nursery.cancel_scope.cancel()


_OTHER_PORT = "Choose another local port, such as 8081 in --tcp 8081:8080."


async def _listen(forward: Forward) -> list[trio.SocketListener]:
    listeners: list[trio.SocketListener] = []
    for host in forward.hosts:
        try:
            listeners += await trio.open_tcp_listeners(forward.local, host=host)
        except OSError as error:
            if host == "::1" and listeners:
                continue  # a machine without IPv6
            raise CoderError("port_forward", f"cannot listen on {host}:{forward.local}", _OTHER_PORT) from error
    return listeners


def _listen_udp(forward: Forward) -> list[trio.socket.SocketType]:
    sockets: list[trio.socket.SocketType] = []
    for host in forward.hosts:
        try:
            sockets.append(open_udp(host, forward.local))
        except OSError as error:
            if host == "::1" and sockets:
                continue  # a machine without IPv6
            raise CoderError("port_forward", f"cannot listen on udp {host}:{forward.local}", _OTHER_PORT) from error
    return sockets


def _handler(
    link: FollowedLink[SharedLink | WorkspaceLink], port: int
) -> Callable[[trio.SocketStream], Awaitable[None]]:
    async def handle(local: trio.SocketStream) -> None:
        try:
            remote = await link.connect(port)
        except (OSError, CoderError, trio.BrokenResourceError) as error:
            sys.stderr.write(f"connection to workspace port {port} failed: {error}\n")
            await trio.aclose_forcefully(local)
            return
        await splice(local, remote)

    return handle
