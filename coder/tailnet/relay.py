"""How the mesh reaches relays: a ladder of three transports, each for networks that refuse the one before.

`GET /derp` upgraded to DERP; a WebSocket, where proxies know no other upgrade; a stream carried by plain HTTPS
requests, where every upgrade is stripped (our own relays only). One `RelayDialer` per node; it is the mesh's DerpDialer
and LatencyProbe. A node stays on the transport that worked (docs/protocol/derp.md#opening) until that one fails too;
then the ladder is climbed from its foot again.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace

import trio

from coder.mesh.derp_map import DEFAULT_DERP_PORT, DerpNode, DerpRegion
from coder.mesh.errors import RelayError
from coder.mesh.relay import DerpTransport
from coder.net.errors import HttpError, NetError
from coder.net.policy import DialPolicy
from coder.net.websocket import is_stripped

UPGRADE, WEBSOCKET, STREAM = "upgrade", "websocket", "stream"
TRANSPORTS = (UPGRADE, WEBSOCKET, STREAM)
TRANSPORT_TIMEOUT = 4.0
"""Seconds a transport has for its answer, and after that for the relay's first bytes: some proxies agree to an
upgrade and then pass nothing. Two transports fit into the ten seconds a connection may take."""


@dataclass(slots=True)
class RelayTransport:
    """One transport of one node, as far as it was tried."""

    name: str
    verdict: str = "not tried"
    "`works`, `not tried`, or what went wrong."


@dataclass(slots=True)
class _Ladder:
    at: str = UPGRADE
    "The transport to begin at."
    reason: str = ""
    "Why it is not the first one."
    is_proven: bool = False
    "It has worked."
    transports: dict[str, RelayTransport] = field(
        default_factory=lambda: {name: RelayTransport(name) for name in TRANSPORTS}
    )


class RelayDialer:
    """Dials relay nodes by the rules of `policy`, whose URL and token are those of the server.

    The token is sent to the embedded relay only: other relays are somebody else's machines.
    """

    def __init__(self, policy: DialPolicy, *, force_websockets: bool = False) -> None:
        self._policy = policy
        self._force_websockets = force_websockets
        self._ladders: dict[int, dict[str, _Ladder]] = {}
        "By region and node, the one that worked last at the end: nodes may be dialled side by side."

    def transports(self, region: int) -> list[RelayTransport]:
        """What is known of each transport to a region's node in use, from the first to the last."""
        ladders = list(self._ladders.get(region, {}).values())
        ladder = next(
            (ladder for ladder in reversed(ladders) if ladder.is_proven), ladders[0] if ladders else _Ladder()
        )
        return list(ladder.transports.values())

    def force_websockets(self, on: bool) -> None:
        """The server's spec (manifest), for connections made from now on."""
        self._force_websockets = on

    async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
        """Raises RelayError."""
        policy = self._policy_of(region, node)
        ladders = self._ladders.setdefault(region.region_id, {})
        ladder = ladders.setdefault(node.name, _Ladder())
        if ladder.at != STREAM and policy.learned.strips_upgrades(policy.origin.netloc, trio.current_time()):
            ladder.at, ladder.reason = STREAM, "upgrades to this server are stripped"
        if self._force_websockets and ladder.at == UPGRADE:
            ladder.at, ladder.reason = WEBSOCKET, "forced by configuration"
        try:
            transport = await self._climb_from(ladder, policy)
        except (NetError, HttpError, _RelayTransportRefused) as error:
            what = error.reason if isinstance(error, _RelayTransportRefused) else error.message
            ladder.transports[ladder.at].verdict = what
            if ladder.at == STREAM or not ladder.is_proven:
                ladder.at, ladder.reason, ladder.is_proven = UPGRADE, "", False
            raise RelayError(f"relay {region.region_code}: {what}") from error
        ladders[node.name] = ladders.pop(node.name)
        return transport

    async def _climb_from(self, ladder: _Ladder, policy: DialPolicy) -> DerpTransport:
        for kind in TRANSPORTS[TRANSPORTS.index(ladder.at) :]:
            ladder.at = kind  # remembered even when we are cancelled here: the next attempt goes on from this transport
            try:
                transport = await self._climb(kind, policy, ladder.reason)
            except _RelayTransportRefused as error:
                ladder.transports[kind].verdict = ladder.reason = error.reason
                if kind == STREAM:
                    raise
                continue
            ladder.transports[kind].verdict, ladder.is_proven = "works", True
            return transport
        raise AssertionError("the last kind returns or raises")

    async def _climb(self, kind: str, policy: DialPolicy, reason: str) -> DerpTransport:
        try:
            if kind == UPGRADE:
                return await self._upgrade(policy)
            if kind == WEBSOCKET:
                return await self._websocket(policy, reason)
            return await self._stream(policy, reason)
        except (HttpError, NetError) as error:
            if kind != STREAM and is_stripped(error):
                raise _RelayTransportRefused(_what_happened(kind, error)) from error
            raise

    async def try_transport(self, region: DerpRegion, node: DerpNode, kind: str) -> DerpTransport:
        """One transport by itself, whatever is known of the others. Raises RelayError with what is wrong with it."""
        try:
            return await self._climb(kind, self._policy_of(region, node), "tried by itself")
        except _RelayTransportRefused as error:
            raise RelayError(error.reason) from error
        except (NetError, HttpError) as error:
            raise RelayError(error.message) from error

    async def probe(self, region: DerpRegion, node: DerpNode) -> float:
        """Seconds of one `GET /derp/latency-check` on a warm connection. Raises RelayError."""
        from coder.net.http1 import HttpClient

        try:
            async with HttpClient(replace(self._policy_of(region, node), token=None)) as client:
                await client.request("GET", "/derp/latency-check")  # pays for the connection
                started = trio.current_time()
                await client.request("GET", "/derp/latency-check")
                return trio.current_time() - started
        except (NetError, HttpError) as error:
            raise RelayError(f"relay {region.region_code}: {error.message}") from error

    def _policy_of(self, region: DerpRegion, node: DerpNode) -> DialPolicy:
        scheme = "http" if node.force_http else "https"
        host = f"[{node.host_name}]" if ":" in node.host_name else node.host_name
        port = node.derp_port or DEFAULT_DERP_PORT
        policy = replace(
            self._policy,
            url=f"{scheme}://{host}:{port}",
            by_family=(_place(node.ipv4, 4), _place(node.ipv6, 6)),
            certificate_name=node.cert_name,
        )
        if region.embedded_relay:
            return policy
        insecure = policy.insecure or node.insecure_for_tests
        return replace(policy, token=None, headers=(), address="", insecure=insecure)

    async def _upgrade(self, policy: DialPolicy) -> DerpTransport:
        from coder.net.websocket import connect_upgrade

        stream, headers, leftover = await connect_upgrade(policy, "/derp", "DERP", timeout=TRANSPORT_TIMEOUT)
        if headers.get("upgrade", "").lower() != "derp":
            await trio.aclose_forcefully(stream)
            raise _RelayTransportRefused(f"the upgrade was answered as {headers.get('upgrade', 'nothing')!r}")
        return DerpTransport(stream, leftover or await _first_bytes(stream, UPGRADE))

    async def _websocket(self, policy: DialPolicy, reason: str) -> DerpTransport:
        from coder.net.websocket import connect_websocket

        socket = None
        with trio.move_on_after(TRANSPORT_TIMEOUT):
            socket = await connect_websocket(policy, "/derp", subprotocols=("derp",), carry=False)
        if socket is None:
            raise _RelayTransportRefused(f"a WebSocket was not answered within {TRANSPORT_TIMEOUT:g} s")
        return DerpTransport(socket, await _first_bytes(socket, WEBSOCKET), reason, WEBSOCKET)

    async def _stream(self, policy: DialPolicy, reason: str) -> DerpTransport:
        from coder.net.carried_stream import connect_carried

        stream, _ = await connect_carried(policy, "/derp", "DERP")
        policy.learned.on_stripped(policy.origin.netloc, trio.current_time())
        return DerpTransport(stream, b"", f"plain requests, because {reason}", STREAM)


def _place(address: str, version: int) -> str:
    """A map's address for a dial policy: what is no address of that family forbids the family, like `none`."""
    try:
        return address if not address or ipaddress.ip_address(address).version == version else "none"
    except ValueError:
        return "none"


async def _first_bytes(stream: trio.abc.Stream, kind: str) -> bytes:
    """What the relay says first. A relay always speaks first, so silence means that something swallows it."""
    data: bytes | bytearray = b""
    try:
        with trio.move_on_after(TRANSPORT_TIMEOUT):
            data = await stream.receive_some()
    except (trio.BrokenResourceError, OSError):
        pass  # as silence: this transport does not work here
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
        raise
    if data:
        return bytes(data)
    await trio.aclose_forcefully(stream)
    raise _RelayTransportRefused(f"the {_TITLES[kind]} was accepted, but nothing came through it")


_TITLES = {UPGRADE: "upgrade to DERP", WEBSOCKET: "WebSocket", STREAM: "carried stream"}


def _what_happened(kind: str, error: HttpError | NetError) -> str:
    if isinstance(error, HttpError):
        return f"the {_TITLES[kind]} was answered with status {error.status}"
    return f"the {_TITLES[kind]} was not answered ({error.message})"


def shown_proxy(proxy: str) -> str:
    """A proxy's URL as people may see it: without user and password."""
    scheme, found, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else ""


class _RelayTransportRefused(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
