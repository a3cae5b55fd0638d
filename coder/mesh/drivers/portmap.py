"""Port mapping on trio: the router's address and the socket of `core/paths/portmapping.py`.

Lives here: the default gateway, a socket connected to that gateway, and the loop. Only a router that translates us is
asked: our own address is private and servers see another one (a server with a public address asks no router).
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from math import inf
from pathlib import Path

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.portmapping import PortMapping
from coder.mesh.core.wire import portmap

_ROUTES = Path("/proc/net/route")
_UP_GATEWAY = 0x3
GatewayRoute = tuple[str, str]
"""(the gateway's IPv4 address, ours towards it)."""


def find_gateway() -> GatewayRoute | None:
    """Return the IPv4 default gateway, the best one by metric; None where there is none or it is unknown."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        gateway = _best_gateway(_ROUTES.read_text())
        if not gateway:
            return None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((gateway, portmap.PORT))  # sends nothing
            return gateway, str(sock.getsockname()[0])
    except (OSError, ValueError):
        return None


def _best_gateway(table: str) -> str:
    """Parse /proc/net/route: addresses are hexadecimal in the machine's byte order."""
    best, gateway = inf, ""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8 or fields[1] != "00000000" or fields[7] != "00000000":
            continue
        if int(fields[3], 16) & _UP_GATEWAY == _UP_GATEWAY and int(fields[6]) < best:
            best, gateway = int(fields[6]), socket.inet_ntoa(struct.pack("=L", int(fields[2], 16)))
    return gateway


def is_hidden(own_ip: str, observed: Sequence[Address]) -> bool:
    """Return whether a router translates us: our address is private, and no server saw it."""
    ip = ip_address(own_ip)
    # A server that sees us by loopback is on this machine and knows nothing of the router.
    seen = [address for address, _ in observed if ":" not in address and not ip_address(address).is_loopback]
    return bool(seen) and ip.is_private and not ip.is_loopback and own_ip not in seen


class PortMapper:
    """Keeps one UDP port mapped while it is requested. `external` is the result; `speaks` names the protocol."""

    def __init__(self, on_change: Callable[[], None], find: Callable[[], GatewayRoute | None] | None = None) -> None:
        self._on_change = on_change
        self._find = find or find_gateway
        self._requested: tuple[GatewayRoute, int] | None = None
        self._mapping = PortMapping(os.urandom)
        self._woken = trio.Event()

    @property
    def external(self) -> Address | None:
        """Address by which the router lets others reach us; None without a mapping."""
        return self._mapping.external

    @property
    def speaks(self) -> str:
        """`PCP`, `NAT-PMP`, or empty while no router has answered."""
        return self._mapping.protocol

    @property
    def was_asked(self) -> bool:
        """Whether a router was asked."""
        return self._requested is not None

    def look(self, port: int, observed: Sequence[Address]) -> None:
        """Request a mapping if the router translates this port, after a network change or new observed addresses."""
        route = self._find() if port else None
        requested = (route, port) if route is not None and is_hidden(route[1], observed) else None
        if requested is None and route is not None and not observed and self._requested == (route, port):
            return  # a round without an answer says nothing about a router that is still there
        if requested != self._requested:
            self._requested = requested
            self._woken.set()

    async def run(self) -> None:
        """Request and renew mappings; release them at the end."""
        while True:
            self._woken = trio.Event()
            if self._requested is None:
                await self._woken.wait()
                continue
            route, port = self._requested
            try:
                await self._keep_mapping(route, port)
            except OSError:
                await self._woken.wait()  # this router is unreachable; another network may come

    async def _keep_mapping(self, route: GatewayRoute, port: int) -> None:
        gateway, own_ip = route
        mapping = self._mapping = PortMapping(os.urandom)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            # A connected socket receives from the router alone: RFC 6887 section 8.3 requires checking the source.
            sock.connect((gateway, portmap.PORT))
            try:
                _send(sock, mapping.want(own_ip, port, trio.current_time()))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._exchange_messages, sock, mapping)
                    await self._woken.wait()
                    nursery.cancel_scope.cancel()
            finally:
                _send(sock, mapping.release(trio.current_time()))
        self._on_change()

    async def _exchange_messages(self, sock: socket.socket, mapping: PortMapping) -> None:
        while True:
            before = mapping.external
            wake = mapping.next_wake()
            with trio.move_on_at(inf if wake is None else wake):
                await trio.lowlevel.wait_readable(sock)
                self._read(sock, mapping)
            _send(sock, mapping.on_timer(trio.current_time()))
            if mapping.external != before:
                self._on_change()

    def _read(self, sock: socket.socket, mapping: PortMapping) -> None:
        try:
            datagram = sock.recv(portmap.MAX_SIZE + 1)
        except OSError:
            return  # the router's ICMP error: it has no such service; the repetitions detect that
        try:
            _send(sock, mapping.on_answer_untrusted(datagram, trio.current_time()))
        except WireError:
            return


def _send(sock: socket.socket, datagrams: Sequence[bytes]) -> None:
    for datagram in datagrams:
        try:
            sock.send(datagram)
        except OSError:
            continue  # lost on the way; or an ICMP error of an earlier request
