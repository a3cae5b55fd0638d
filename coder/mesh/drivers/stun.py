"""STUN on trio: asking servers from the node's own sockets, and the small server coderd embeds.

Lives here: names, retries, the server's socket. The messages are `core/wire/stun.py`; `core/paths/netcheck.py`
interprets answers. Obeys RFC 8489 and docs/protocol/stun.md.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

import trio

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.wire import stun
from coder.mesh.core.wire.address import UdpAddress, endpoint

ROUND = 3.0
"""Maximum seconds of a round of requests."""
RETRIES = (0.0, 0.2, 0.6, 1.4)
"""Send times of each request, from the start of the round: UDP is lossy and a lost answer costs a direct path."""
_DRAIN = 64
STRANGERS_RATE, STRANGERS_BURST = 100.0, 200.0
"""Ours: answers a second to clients of other implementations. Enough for people who test; useless for amplification
attacks, since requests can be smaller than the answers."""


class StunRound:
    """A round of binding requests to several servers, sent through the caller's socket."""

    def __init__(self, random: Callable[[int], bytes], send: Callable[[bytes, Address], object]) -> None:
        self._random = random
        self._send = send
        self._outstanding: dict[bytes, Address] = {}
        self._answered = trio.Event()

    async def ask(self, servers: Iterable[tuple[str, int]], families: Iterable[socket.AddressFamily]) -> None:
        """Ask every server in each family; return when all have answered or the round is over."""
        family_list = list(families)
        with trio.move_on_after(ROUND):
            async with trio.open_nursery() as nursery:
                for host, port in servers:
                    nursery.start_soon(self._ask, host, port, family_list)

    def on_answer_untrusted(self, datagram: bytes) -> tuple[Address, Address] | None:
        """Return (server asked, address it saw) when the datagram answers a request of this round.

        Raises WireError if malformed.
        """
        response = stun.parse_response_untrusted(datagram)
        server = self._outstanding.pop(response.tx_id, None)
        if server is None:
            return None
        self._answered.set()
        self._answered = trio.Event()
        return server, response.source

    async def _ask(self, host: str, port: int, families: list[socket.AddressFamily]) -> None:
        requests: dict[bytes, Address] = {}
        for address in await resolve(host, port, families):
            requests[self._random(stun.TX_ID_SIZE)] = address
        self._outstanding |= requests
        began = trio.current_time()
        for at in (*RETRIES, ROUND):
            with trio.move_on_at(began + at):
                while not self._outstanding.keys().isdisjoint(requests):
                    await self._answered.wait()
            unanswered = [tx for tx in requests if tx in self._outstanding]
            if not unanswered:
                return
            for tx in unanswered:
                self._send(stun.BindingRequest(tx).encode(), requests[tx])


async def resolve(host: str, port: int, families: Iterable[socket.AddressFamily]) -> list[Address]:
    """Return the first address of the host in each family; nothing when the name is unknown or the port is none."""
    resolved: list[Address] = []
    if not 0 < port < 65_536:
        return resolved
    for family in families:
        try:
            infos = await trio.socket.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
        except (OSError, ValueError):  # a zero byte, or a label of 64 letters
            continue
        if infos:
            resolved.append((str(infos[0][4][0]), port))
    return resolved


async def serve_stun(
    host: str = "", port: int = 3478, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve binding requests for ever; starts with the bound port. Raises OSError when the port is taken.

    Requests in our own form are answered with fewer bytes than they have, so without limit; others up to a rate.
    """
    family = socket.AF_INET if host and ":" not in host else socket.AF_INET6
    try:
        sock = socket.socket(family, socket.SOCK_DGRAM)
    except OSError:
        family = socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM)
    with sock:
        if family == socket.AF_INET6 and not host:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setblocking(False)
        sock.bind((host, port))
        task_status.started(sock.getsockname()[1])
        strangers = _Allowance()
        while True:
            await trio.lowlevel.wait_readable(sock)
            _answer_waiting(sock, strangers)


class _Allowance:
    """A token bucket for answers to strangers."""

    def __init__(self) -> None:
        self._tokens = STRANGERS_BURST
        self._at = trio.current_time()

    def take(self) -> bool:
        now = trio.current_time()
        self._tokens = min(STRANGERS_BURST, self._tokens + (now - self._at) * STRANGERS_RATE)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _answer_waiting(sock: socket.socket, strangers: _Allowance) -> None:
    for _ in range(_DRAIN):
        try:
            datagram, source = sock.recvfrom(2048)
        except OSError:
            return  # no more datagrams, or an ICMP error of an earlier answer
        answer = _answer(datagram, endpoint(source[0], source[1]), strangers)
        if answer:
            try:
                sock.sendto(answer, source)
            except OSError:
                continue


def _answer(datagram: bytes, source: UdpAddress, strangers: _Allowance) -> bytes:
    try:
        return stun.BindingResponse(stun.parse_request_untrusted(datagram).tx_id, source).encode()
    except WireError:
        pass  # not in our form: a stranger's, within the allowance
    try:
        answer = stun.answer_any_untrusted(datagram, source)
    except WireError:
        return b""
    return answer if strangers.take() else b""
