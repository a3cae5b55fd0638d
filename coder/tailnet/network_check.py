"""Measurement of every transport from this machine to a deployment, for `coder netcheck`.

Has the measurements and upstream's JSON of them (`derp`, `interfaces`). The texts are in `verdicts.py`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from coder.api.agents.agent_connection import AgentConnectionInfo
from coder.api.base.answers import read_answer
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.mesh.derp_map import DEFAULT_STUN_PORT, DerpMap, DerpNode, DerpRegion
from coder.mesh.errors import RelayError, WireError
from coder.mesh.netcheck import (
    Address,
    HomeChooser,
    Interface,
    Mappings,
    PortMapper,
    StunRound,
    list_interfaces,
    resolve,
)
from coder.mesh.relay import exchange
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.masking import masked
from coder.net.policy import DialPolicy, proxy_for
from coder.net.websocket import connect_websocket
from coder.tailnet import derpmap, verdicts
from coder.tailnet.relay import TRANSPORTS, RelayDialer, proxy_without_credentials
from coder.tailnet.verdicts import TransportVerdict

SAFE_MTU = 1378
"""Bytes an interface should carry so that our packets (1310 and headers) pass unfragmented; upstream's number."""
TRANSPORT_TIMEOUT = 10.0
MAPPING_TIMEOUT = 5.0
"""Seconds for a router to map a port: PCP's requests, then NAT-PMP's first ones."""
NANO = 1_000_000_000


@dataclass
class NodeResult:
    """Result of one node of one region."""

    node: DerpNode
    latency_s: float | None = None
    transports: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TRANSPORTS, "not tried"))
    transport: str = ""
    "First transport that works."
    round_trip_s: float | None = None
    "Round-trip time of a message between two clients of the relay."
    stun: str | None = None
    "STUN result. None: not asked; empty: answered; else the error."
    log: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def is_healthy(self) -> bool:
        if self.node.stun_only:
            return self.stun == ""
        return self.round_trip_s is not None


@dataclass
class Findings:
    """Results of all measurements."""

    derp_map: DerpMap
    regions: dict[int, list[NodeResult]] = field(default_factory=dict)
    latencies: dict[int, float] = field(default_factory=dict)
    mappings: Mappings = field(default_factory=Mappings)
    servers_asked: int = 0
    "Number of STUN servers that could be asked."
    mapped: Address | None = None
    "Port that the router mapped."
    mapping: str = ""
    "Protocol of the mapping; `none` when a request failed, empty when no request was useful."
    can_send: set[int] = field(default_factory=set)
    "Address families that can send datagrams."
    interfaces: list[Interface] = field(default_factory=list)
    home: int = 0
    is_blocked: bool = False
    "Whether the deployment forbids direct paths."
    transports: list[TransportVerdict] = field(default_factory=list)


async def check_network(policy: DialPolicy, *, direct: bool = True) -> Findings:
    """Run all checks. Raises CoderError only when the deployment itself does not answer or rejects us."""
    proxy = proxy_without_credentials(proxy_for(policy, policy.origin.hostname or "", policy.origin.scheme))
    async with HttpClient(policy) as http:
        await http.request("GET", "/api/v2/buildinfo")
        began = trio.current_time()
        await http.request("GET", "/api/v2/buildinfo")
        took = trio.current_time() - began
        answer = await http.request("GET", "/api/v2/workspaceagents/connection")
    info = read_answer(answer.body, AgentConnectionInfo)
    findings = Findings(derpmap.with_embedded(derpmap.from_json(info.derp_map), policy.url))
    findings.is_blocked = info.disable_direct_connections
    findings.interfaces = list_interfaces()
    findings.transports = [verdicts.api(url=masked(policy.url), proxy=proxy, latency_s=took), await _try_link(policy)]
    dialer = RelayDialer(policy)
    async with trio.open_nursery() as nursery:
        for region in findings.derp_map.regions.values():
            results = findings.regions[region.region_id] = [NodeResult(node) for node in region.nodes]
            for result in results:
                if not result.node.stun_only:
                    nursery.start_soon(_try_relay, dialer, region, result, findings)
        nursery.start_soon(_try_udp, findings)
    findings.home = HomeChooser().on_report(findings.derp_map, findings.latencies, trio.current_time(), 0)
    findings.transports += _relay_verdicts(findings) + _udp_verdicts(findings, direct=direct)
    return findings


async def _try_link(policy: DialPolicy) -> TransportVerdict:
    try:
        socket_ = await connect_websocket(policy, "/api/v2/tailnet?version=2.0")
    except (HttpError, NetError) as error:
        return verdicts.links("", error.message, error.hint)
    await socket_.aclose()
    return verdicts.links(socket_.transport)


async def _try_relay(dialer: RelayDialer, region: DerpRegion, result: NodeResult, findings: Findings) -> None:
    try:
        result.latency_s = await dialer.probe(region, result.node)
        known = findings.latencies.get(region.region_id)
        findings.latencies[region.region_id] = min(result.latency_s, known or result.latency_s)
    except (RelayError, trio.BrokenResourceError, OSError) as error:
        result.errors.append(str(error))
    for transport in TRANSPORTS:
        if transport == "stream" and not region.embedded_relay:
            continue  # supported by our relays alone
        result.log.append(f"trying the relay by {transport}")
        try:
            with trio.fail_after(TRANSPORT_TIMEOUT):
                item = await dialer.try_transport(region, result.node, transport)
                second = await dialer.try_transport(region, result.node, transport)
                took = await exchange(item, second)
        except trio.TooSlowError:
            result.transports[transport] = f"nothing came back within {TRANSPORT_TIMEOUT:g} s"
        except (CoderError, RelayError, WireError, trio.BrokenResourceError, OSError) as error:
            result.transports[transport] = str(error)
        else:
            result.transports[transport] = "works"
            if not result.transport:
                result.transport, result.round_trip_s = transport, took
            continue
        result.errors.append(f"{transport}: {result.transports[transport]}")


async def _try_udp(findings: Findings) -> None:
    """Ask every STUN server from one socket per family, so that their answers can be compared."""
    stun_servers = {
        (result.node.stun_test_ip or result.node.host_name, result.node.stun_port or DEFAULT_STUN_PORT): result
        for results in findings.regions.values()
        for result in results
        if result.node.stun_port >= 0
    }
    findings.servers_asked = len(stun_servers)
    sockets: dict[socket.AddressFamily, trio.socket.SocketType] = {}
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            sockets[family] = trio.socket.socket(family, socket.SOCK_DGRAM)
            await sockets[family].bind((host, 0))
        except OSError:
            sockets.pop(family, None)

    def send(datagram: bytes, to: Address) -> None:
        family = socket.AF_INET6 if ":" in to[0] else socket.AF_INET
        try:
            os_socket = sockets[family]._sock  # type: ignore[attr-defined]
            os_socket.sendto(datagram, to)
            findings.can_send.add(family)
        except (KeyError, OSError):
            pass  # no socket or no route of this family: it is not in `can_send`

    round_ = StunRound(os.urandom, send)
    answered: set[Address] = set()

    async def listen(sock: trio.socket.SocketType) -> None:
        while True:
            try:
                datagram, _ = await sock.recvfrom(2048)
                answer = round_.on_answer_untrusted(datagram)
            except (OSError, WireError):
                await trio.lowlevel.checkpoint()
                continue
            if answer is not None:
                answered.add(answer[0])
                findings.mappings.on_answer(*answer, trio.current_time())

    try:
        async with trio.open_nursery() as nursery:
            for sock in sockets.values():
                nursery.start_soon(listen, sock)
            await round_.ask(stun_servers, list(sockets))
            nursery.cancel_scope.cancel()
        if socket.AF_INET in sockets:
            await _try_mapping(findings, sockets[socket.AF_INET].getsockname()[1])
    finally:
        for sock in sockets.values():
            sock.close()
    for (host, port), result in stun_servers.items():
        addresses = await resolve(host, port, list(sockets))
        result.stun = "" if answered.intersection(addresses) else "no answer" if addresses else "no such host"


async def _try_mapping(findings: Findings, port: int) -> None:
    """Request a mapping of this port when the router uses NAT, and release it."""
    answered = trio.Event()
    mapper = PortMapper(answered.set)
    mapper.look(port, findings.mappings.observed())
    if not mapper.was_asked:
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mapper.run)
        with trio.move_on_after(MAPPING_TIMEOUT):
            await answered.wait()
        findings.mapped, findings.mapping = mapper.external, mapper.speaks or "none"
        nursery.cancel_scope.cancel()


# ---- texts


def _relay_verdicts(findings: Findings) -> list[TransportVerdict]:
    relays = [result for result in findings.regions.get(findings.home, ()) if not result.node.stun_only]
    if not relays:
        return [TransportVerdict("relay", "Relay", "error", "the deployment has no relay", "Ask its administrator.")]
    result = next((item for item in relays if item.is_healthy), relays[0])
    listed, works = [], False
    for transport in TRANSPORTS:
        took = result.round_trip_s if transport == result.transport else None
        listed.append(verdicts.relay(transport, result.transports[transport], is_needed=not works, latency_s=took))
        works = works or result.transports[transport] == "works"
    return listed


def _address_text(addresses: Iterable[Address]) -> str:
    return ", ".join(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in addresses)


def _udp_verdicts(findings: Findings, *, direct: bool) -> list[TransportVerdict]:
    observed = findings.mappings.observed()
    answered = sum(result.stun == "" for results in findings.regions.values() for result in results)
    works = findings.mappings.udp_works
    address_text = _address_text(observed)
    return [
        verdicts.udp(
            works=works,
            servers=findings.servers_asked,
            answered=answered,
            address=address_text,
            mapping=verdicts.explain_mapping(
                findings.mapping, _address_text([findings.mapped] if findings.mapped else [])
            ),
        ),
        verdicts.direct(
            is_disabled=not direct,
            is_blocked=findings.is_blocked,
            udp_works=works if findings.servers_asked else None,
            varies=findings.mappings.varies,
        ),
    ]


# ---- upstream's JSON


def to_json(findings: Findings) -> JsonObject:
    """Return `derp` and `interfaces` as upstream's `netcheck` prints them, and our `rungs`."""
    return {
        "derp": _derp_json(findings),
        "interfaces": _interfaces_json(findings.interfaces),
        "rungs": [verdict.to_json() for verdict in findings.transports],
    }


def _derp_json(findings: Findings) -> JsonObject:
    described = findings.derp_map.regions
    regions = {number: _Region(described[number], results) for number, results in findings.regions.items()}
    warnings = [warning for region in regions.values() for warning in region.warnings]
    stun = [result.stun == "" for results in findings.regions.values() for result in results if result.stun is not None]
    if stun and not any(stun):  # no STUN server at all is a choice, and upstream does not warn about it
        warnings.append({"code": "ESTUN01", "message": "No STUN server answers: UDP seems to be blocked."})
    elif findings.mappings.varies:
        warnings.append(
            {"code": "ESTUN02", "message": "STUN returned different addresses; you may be behind a hard NAT."}
        )
    healthy = all(region.is_healthy for region in regions.values())
    return {
        "severity": "error" if not healthy else "warning" if warnings else "ok",
        "warnings": warnings,
        "dismissed": False,
        "healthy": healthy,
        "regions": {str(number): region.to_json() for number, region in regions.items()},
        "netcheck": _netcheck_json(findings),
        "netcheck_logs": [f"{v.name}: {v.state}: {v.text}" for v in findings.transports],
    }


@dataclass(frozen=True, slots=True)
class _Region:
    """A region of the relay map with the results of its nodes, in their order."""

    described: DerpRegion
    results: list[NodeResult]

    @property
    def is_healthy(self) -> bool:
        bad = sum(not result.is_healthy for result in self.results)
        return bad == 0 or (len(self.results) > 1 and bad == 1)

    @property
    def warnings(self) -> list[dict[str, str]]:
        return [warning for result in self.results for warning in _node_warnings(result)]

    def to_json(self) -> JsonObject:
        is_perfect = all(result.is_healthy for result in self.results)
        severity = "error" if not self.is_healthy else "warning" if self.warnings or not is_perfect else "ok"
        return {
            "healthy": self.is_healthy,
            "severity": severity,
            "warnings": self.warnings,
            "region": derpmap.region_to_json(self.described),
            "node_reports": [
                _node_json(node, result) for node, result in zip(self.described.nodes, self.results, strict=True)
            ],
        }


def _node_warnings(result: NodeResult) -> list[dict[str, str]]:
    if result.node.stun_only or result.transport in {"", "upgrade"}:
        return []
    return [{"code": "EDERP01", "message": f"The relay is reached by {result.transport} only."}]


def _node_json(node: DerpNode, result: NodeResult) -> JsonObject:
    warnings = _node_warnings(result)
    took = result.round_trip_s or 0.0
    severity = "error" if not result.is_healthy else "warning" if warnings else "ok"
    return {
        "healthy": result.is_healthy,
        "severity": severity,
        "warnings": warnings,
        "node": derpmap.node_to_json(node),
        "node_info": {"TokenBucketBytesPerSecond": 0, "TokenBucketBytesBurst": 0},
        "can_exchange_messages": result.round_trip_s is not None,
        "round_trip_ping": f"{took * 1000:.6f}ms".replace("0.000000ms", "0s"),
        "round_trip_ping_ms": int(took * 1000),
        "uses_websocket": result.transport == "websocket",
        "client_logs": [result.log],
        "client_errs": [result.errors],
        "stun": {"Enabled": result.stun is not None, "CanSTUN": result.stun == "", "Error": result.stun or None},
    }


def _netcheck_json(findings: Findings) -> JsonObject:
    nanoseconds = {str(region): int(took * NANO) for region, took in findings.latencies.items()}
    observed = findings.mappings.observed()
    v4 = next((f"{ip}:{port}" for ip, port in observed if ":" not in ip), "")
    v6 = next((f"[{ip}]:{port}" for ip, port in observed if ":" in ip), "")
    return {
        "UDP": findings.mappings.udp_works,
        "IPv6": bool(v6),
        "IPv4": bool(v4) or bool(nanoseconds),
        "IPv6CanSend": socket.AF_INET6 in findings.can_send,
        "IPv4CanSend": socket.AF_INET in findings.can_send,
        "OSHasIPv6": socket.has_ipv6,
        "ICMPv4": False,
        "MappingVariesByDestIP": findings.mappings.varies,
        "HairPinning": None,
        "UPnP": None,
        "PMP": findings.mapping == "NAT-PMP" if findings.mapping else None,
        "PCP": findings.mapping == "PCP" if findings.mapping else None,
        "PreferredDERP": findings.home,
        "RegionLatency": nanoseconds,
        "RegionV4Latency": nanoseconds,
        "RegionV6Latency": {},
        "GlobalV4": v4,
        "GlobalV6": v6,
        "CaptivePortal": None,
    }


def _interfaces_json(interfaces: list[Interface]) -> JsonObject:
    warnings = [
        {
            "code": "EIF01",
            "message": f"Network interface {item.name} has an MTU of {item.mtu}, less than {SAFE_MTU}: "
            "direct paths over it may be slower.",
        }
        for item in interfaces
        if 0 < item.mtu < SAFE_MTU
    ]
    return {
        "severity": "warning" if warnings else "ok",
        "warnings": warnings,
        "dismissed": False,
        "interfaces": [{"name": i.name, "mtu": i.mtu, "addresses": list(i.addresses)} for i in interfaces],
    }
