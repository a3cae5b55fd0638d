"""Transports from the mesh to relays: three with fallback, each for networks that reject the one before.

`GET /derp` upgraded to DERP; a WebSocket, where proxies support no other upgrade; a stream carried by plain HTTPS
requests, where every upgrade is stripped (our own relays only). One `RelayDialer` per node; it is the mesh's DerpDialer
and LatencyProbe. A node stays on the transport that worked (docs/protocol/derp.md#opening) until that one fails too;
then it starts from the first transport again.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace

import trio

from coder.mesh.derp_map import DEFAULT_DERP_PORT, DerpNode, DerpRegion
from coder.mesh.errors import RelayError
from coder.mesh.relay import DerpTransport
from coder.net.errors import HttpError, NetError, UnansweredUpgrade, requested_delay
from coder.net.policy import DialPolicy

UPGRADE, WEBSOCKET, STREAM = "upgrade", "websocket", "stream"
TRANSPORTS = (UPGRADE, WEBSOCKET, STREAM)
_PROTOCOLS = {UPGRADE: "DERP", WEBSOCKET: "websocket"}
TRANSPORT_TIMEOUT = 4.0
"""Seconds a transport has for its answer, and after that for the relay's first bytes: some proxies agree to an upgrade
and then pass nothing. Two transports take less than the ten seconds of a connection attempt."""


@dataclass(slots=True)
class RelayTransport:
    """Transport of one node, and the result of its latest attempt."""

    name: str
    verdict: str = "not tried"
    "`works`, `not tried`, or the error."


@dataclass(slots=True)
class _Fallback:
    at: str = UPGRADE
    "Transport of the next attempt."
    reason: str = ""
    "Reason why it is not the first one."
    is_proven: bool = False
    "Whether it has worked."
    transports: dict[str, RelayTransport] = field(
        default_factory=lambda: {name: RelayTransport(name) for name in TRANSPORTS}
    )


class RelayDialer:
    """Dialler of relay nodes by the rules of `policy`, whose URL and token are the server's.

    The token is sent to the embedded relay only: other relays belong to third parties.
    """

    def __init__(self, policy: DialPolicy, *, force_websockets: bool = False) -> None:
        self._policy = policy
        self._force_websockets = force_websockets
        self._fallbacks: dict[int, dict[str, _Fallback]] = {}
        "Fallback state by region and node, the one that worked last at the end: nodes may be dialled concurrently."

    def transports(self, region: int) -> list[RelayTransport]:
        """Return the state of each transport to a region's current node, from the first to the last."""
        fallbacks = list(self._fallbacks.get(region, {}).values())
        fallback = next(
            (fallback for fallback in reversed(fallbacks) if fallback.is_proven),
            fallbacks[0] if fallbacks else _Fallback(),
        )
        return list(fallback.transports.values())

    def force_websockets(self, on: bool) -> None:
        """Set the server's preference (manifest) for later connections."""
        self._force_websockets = on

    async def __call__(self, region: DerpRegion, node: DerpNode) -> DerpTransport:
        """Connect to a relay. Raises RelayError."""
        policy = self._policy_of(region, node)
        fallbacks = self._fallbacks.setdefault(region.region_id, {})
        fallback = fallbacks.setdefault(node.name, _Fallback())
        if fallback.at != STREAM and policy.learned.strips_upgrades(policy.origin.netloc, trio.current_time()):
            fallback.at, fallback.reason = STREAM, "upgrades to this server are stripped"
        if self._force_websockets and fallback.at == UPGRADE:
            fallback.at, fallback.reason = WEBSOCKET, "forced by configuration"
        try:
            transport = await self._connect_from(fallback, policy)
        except (NetError, HttpError, _RelayTransportRefused) as error:
            reason_text = error.reason if isinstance(error, _RelayTransportRefused) else error.message
            fallback.transports[fallback.at].verdict = reason_text
            if fallback.at == STREAM or not fallback.is_proven:
                fallback.at, fallback.reason, fallback.is_proven = UPGRADE, "", False
            requested = requested_delay(error)
            raise RelayError(f"relay {region.region_code}: {reason_text}", retry_after=requested) from error
        fallbacks[node.name] = fallbacks.pop(node.name)
        return transport

    async def _connect_from(self, fallback: _Fallback, policy: DialPolicy) -> DerpTransport:
        for kind in TRANSPORTS[TRANSPORTS.index(fallback.at) :]:
            fallback.at = kind  # kept even when we are cancelled here: the next attempt starts from this transport
            try:
                transport = await self._connect(kind, policy, fallback.reason)
            except _RelayTransportRefused as error:
                fallback.transports[kind].verdict = fallback.reason = error.reason
                if kind == STREAM:
                    raise
                continue
            fallback.transports[kind].verdict, fallback.is_proven = "works", True
            return transport
        raise AssertionError("the last transport returns or raises")

    async def _connect(self, kind: str, policy: DialPolicy, reason: str) -> DerpTransport:
        try:
            if kind == UPGRADE:
                return await self._upgrade(policy)
            if kind == WEBSOCKET:
                return await self._websocket(policy, reason)
            return await self._stream(policy, reason)
        except (HttpError, NetError) as error:
            from coder.net.carried_stream import may_be_stripped

            is_next_dear = kind == WEBSOCKET
            if kind != STREAM and await may_be_stripped(policy, error, _PROTOCOLS[kind], is_next_dear=is_next_dear):
                raise _RelayTransportRefused(_describe_failure(kind, error)) from error
            raise
        except _NothingReceived as error:
            from coder.net.carried_stream import has_room

            # A relay that has no room is as silent as a proxy that passes nothing.
            if kind != WEBSOCKET or await has_room(policy):
                raise _RelayTransportRefused(str(error)) from error
            raise NetError("timeout", str(error)) from error

    async def try_transport(self, region: DerpRegion, node: DerpNode, kind: str) -> DerpTransport:
        """Try one transport, regardless of the others' state. Raises RelayError with its error."""
        try:
            return await self._connect(kind, self._policy_of(region, node), "tried separately")
        except _RelayTransportRefused as error:
            raise RelayError(error.reason) from error
        except (NetError, HttpError) as error:
            raise RelayError(error.message) from error

    async def probe(self, region: DerpRegion, node: DerpNode) -> float:
        """Return the seconds of one `GET /derp/latency-check` on a warm connection. Raises RelayError."""
        from coder.net.http1 import HttpClient

        try:
            async with HttpClient(replace(self._policy_of(region, node), token=None)) as client:
                await client.request("GET", "/derp/latency-check")  # opens the connection
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
            by_family=(_address_of_family(node.ipv4, 4), _address_of_family(node.ipv6, 6)),
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
            raise UnansweredUpgrade("timeout", f"a WebSocket was not answered within {TRANSPORT_TIMEOUT:g} s")
        return DerpTransport(socket, await _first_bytes(socket, WEBSOCKET), reason, WEBSOCKET)

    async def _stream(self, policy: DialPolicy, reason: str) -> DerpTransport:
        from coder.net.carried_stream import connect_carried

        stream, _ = await connect_carried(policy, "/derp", "DERP")
        policy.learned.record_stripped(policy.origin.netloc, trio.current_time())
        return DerpTransport(stream, b"", f"plain requests, because {reason}", STREAM)


def _address_of_family(address: str, version: int) -> str:
    """Return a map's address for a dial policy: an address that is not of that family forbids the family, like
    `none`."""
    try:
        return address if not address or ipaddress.ip_address(address).version == version else "none"
    except ValueError:
        return "none"


async def _first_bytes(stream: trio.abc.Stream, kind: str) -> bytes:
    """Return the relay's first bytes. A relay always sends first, so silence means that a proxy drops its data."""
    data: bytes | bytearray = b""
    try:
        with trio.move_on_after(TRANSPORT_TIMEOUT):
            data = await stream.receive_some()
    except (trio.BrokenResourceError, OSError):
        pass  # counts as silence: this transport does not work here
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
        raise
    if data:
        return bytes(data)
    await trio.aclose_forcefully(stream)
    raise _NothingReceived(f"the {_TITLES[kind]} was accepted, but nothing came through it")


_TITLES = {UPGRADE: "upgrade to DERP", WEBSOCKET: "WebSocket", STREAM: "carried stream"}


def _describe_failure(kind: str, error: HttpError | NetError) -> str:
    if isinstance(error, HttpError):
        return f"the {_TITLES[kind]} was answered with status {error.status}"
    return f"the {_TITLES[kind]} was not answered ({error.message})"


def proxy_without_credentials(proxy: str) -> str:
    """Return a proxy's URL for display: without user and password."""
    scheme, separator, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if separator else ""


class _NothingReceived(Exception):  # noqa: N818 - never leaves this file
    pass


class _RelayTransportRefused(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
