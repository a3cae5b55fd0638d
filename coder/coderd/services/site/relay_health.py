"""The relays section of the health report: two clients log in to each relay and exchange a message.

Reports and codes are upstream's. The server connects to each relay as agents do, and measures the latency.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import trio
from msgspec import UNSET

from coder.api.site.health import (
    DERPHealthReport,
    DERPNodeReport,
    DERPRegionReport,
    HealthMessage,
    HealthSeverity,
    NetcheckReport,
    ServerInfoMessage,
    STUNReport,
    TailDERPNode,
    TailDERPRegion,
)
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.coderd.services.network import derp_map
from coder.mesh.derp_map import DerpMap, DerpNode, DerpRegion
from coder.mesh.errors import RelayError, WireError
from coder.mesh.relay import exchange
from coder.net.policy import DialPolicy
from coder.tailnet import derpmap
from coder.tailnet.relay import UPGRADE, WEBSOCKET, RelayDialer

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_NANO = 1_000_000_000
NODE_TIMEOUT = 20.0
"""Seconds a node may take: less than the section, so that a silent node does not lose the results of all regions."""
_RELAY_ERRORS = (CoderError, RelayError, WireError, trio.BrokenResourceError, OSError)


@dataclass
class _RegionResult:
    """Results of one region."""

    report: DERPRegionReport
    latencies: list[float] = field(default_factory=list)


async def check_relays(ctx: Context) -> DERPHealthReport:
    """Check that each relay of the map can be reached and forwards messages."""
    relays: DerpMap = derp_map.current_map(ctx)
    dialer = RelayDialer(DialPolicy(url=ctx.access_url))
    results: dict[str, _RegionResult] = {}

    async def check_region(region: DerpRegion) -> None:
        key = str(region.region_id)
        results[key] = await _check_region(dialer, region)

    async with trio.open_nursery() as nursery:
        for region in relays.regions.values():
            nursery.start_soon(check_region, region)
    results = dict(sorted(results.items()))
    latency = {key: int(min(result.latencies) * _NANO) for key, result in results.items() if result.latencies}
    return relays_report({key: result.report for key, result in results.items()}, latency, _remarks(relays, latency))


async def _check_region(dialer: RelayDialer, region: DerpRegion) -> _RegionResult:
    described = derpmap.region_to_json(region)
    result = _RegionResult(
        DERPRegionReport(
            healthy=True, severity="ok", warnings=[], region=cast("TailDERPRegion", described), node_reports=[]
        )
    )
    reports: dict[int, DERPNodeReport] = {}

    async def check_node(index: int, node: DerpNode) -> None:
        reports[index] = await _check_node(dialer, region, node, result.latencies)

    async with trio.open_nursery() as nursery:
        for index, node in enumerate(region.nodes):
            nursery.start_soon(check_node, index, node)
    nodes = result.report.node_reports = [reports[index] for index in sorted(reports)]
    warnings = [warning for node in nodes for warning in node.warnings]
    broken = sum(not node.healthy for node in nodes)
    if broken and broken < len(nodes):
        warnings.append(
            HealthMessage(code="EDERP02", message=f"{broken} of the region's {len(nodes)} nodes do not work")
        )
    healthy = broken < len(nodes)
    severity: HealthSeverity = "error" if not healthy else "warning" if warnings else "ok"
    result.report.healthy, result.report.severity, result.report.warnings = healthy, severity, warnings
    return result


async def _check_node(
    dialer: RelayDialer, region: DerpRegion, node: DerpNode, latencies: list[float]
) -> DERPNodeReport:
    report = DERPNodeReport(
        healthy=True,
        severity="ok",
        warnings=[],
        node=cast("TailDERPNode", derpmap.node_to_json(node)),
        node_info=ServerInfoMessage(TokenBucketBytesPerSecond=0, TokenBucketBytesBurst=0),
        can_exchange_messages=False,
        round_trip_ping="0s",
        round_trip_ping_ms=0,
        uses_websocket=False,
        client_logs=[],
        client_errs=[],
        stun=STUNReport(Enabled=node.stun_port >= 0, CanSTUN=False, Error=None),
    )
    if node.stun_only:
        return report
    report.client_logs, report.client_errs = [[], []], [[], []]
    took: timedelta | None = None
    problem = f"no answer within {NODE_TIMEOUT:g} s"
    try:
        with trio.move_on_after(NODE_TIMEOUT):
            latencies.append(await dialer.probe(region, node))
            took = timedelta(seconds=await _exchange(dialer, region, node, report))
    except _RELAY_ERRORS as error:
        problem = str(error)
    if took is None:
        report.healthy, report.severity, report.error = False, "error", problem
        report.client_errs[0].append(problem)
        return report
    report.can_exchange_messages = True
    report.round_trip_ping = format_duration(took)
    report.round_trip_ping_ms = int(took / timedelta(milliseconds=1))
    if report.uses_websocket:
        report.severity = "warning"
        text = "The relay is reachable by WebSocket only: a proxy on the way blocks the upgrade to DERP."
        report.warnings.append(HealthMessage(code="EDERP01", message=text))
    return report


async def _exchange(dialer: RelayDialer, region: DerpRegion, node: DerpNode, report: DERPNodeReport) -> float:
    """Return the round-trip time of a message in seconds, over the upgrade or else a WebSocket. Raises one of
    `_RELAY_ERRORS`.
    """
    for transport in (UPGRADE, WEBSOCKET):
        clients = []
        try:
            for index in range(2):
                log = report.client_logs[index]
                log.append(f"derphttp.Client.Connect: connecting to {_url(node)}/derp")
                if transport == UPGRADE:
                    log.append("derphttp.Client.Connect: not using fast start")
                clients.append(await dialer.try_transport(region, node, transport))
                log.append("derphttp.Client.Connect: DERP server returned status 101")
        except BaseException as error:
            for client in clients:
                await trio.aclose_forcefully(client.stream)
            if transport == WEBSOCKET or not isinstance(error, RelayError):
                raise
            report.client_errs[len(clients)].append(str(error))
            continue
        report.uses_websocket = transport == WEBSOCKET
        return await exchange(*clients)
    raise AssertionError("the last transport returns or raises")


def _url(node: DerpNode) -> str:
    scheme = "http" if node.force_http else "https"
    host = f"[{node.host_name}]" if ":" in node.host_name else node.host_name
    usual = 80 if node.force_http else 443
    port = node.derp_port or 443
    return f"{scheme}://{host}" + (f":{port}" if port != usual else "")


def relays_report(
    regions: dict[str, DERPRegionReport], latency: dict[str, int], remarks: list[str], error: str = ""
) -> DERPHealthReport:
    """Return the section; `latency` in nanoseconds by region."""
    broken = [key for key, region in regions.items() if not region.healthy]
    healthy = bool(regions) and len(broken) < len(regions)
    warnings = [warning for region in regions.values() for warning in region.warnings]
    warnings += [HealthMessage(code="EUNKNOWN", message=f"region {key} cannot be reached") for key in broken]
    severity: HealthSeverity = "ok" if healthy and not warnings else "warning" if healthy else "error"
    return DERPHealthReport(
        dismissed=False,
        healthy=healthy,
        netcheck_logs=remarks,
        regions=regions,
        severity=severity,
        warnings=warnings,
        error=error or UNSET,
        netcheck=_netcheck(latency),
    )


def _netcheck(latency: dict[str, int]) -> NetcheckReport:
    """Return the measurements; null or false for others. The server asks no router for a port mapping."""
    return NetcheckReport(
        UDP=False,
        IPv6=False,
        IPv4=bool(latency),
        IPv6CanSend=False,
        IPv4CanSend=False,
        OSHasIPv6=_os_has_ipv6(),
        ICMPv4=False,
        MappingVariesByDestIP=None,
        HairPinning=None,
        UPnP=False,
        PMP=False,
        PCP=False,
        PreferredDERP=_nearest(latency),
        RegionLatency=latency,
        RegionV4Latency=latency,
        RegionV6Latency={},
        GlobalV4="",
        GlobalV6="",
        CaptivePortal=None,
    )


def _nearest(latency: dict[str, int]) -> int:
    return int(min(latency, key=lambda key: latency[key])) if latency else 0


def _os_has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _remarks(relays: DerpMap, latency: dict[str, int]) -> list[str]:
    """Return the lines of upstream's network check: no ICMP without an address, and the results in one line."""
    lines = [
        f"netcheck: [v1] measuring ICMP latency of {region.region_code} ({region.region_id}): "
        f"no address for node {node.name}"
        for region in relays.regions.values()
        for node in region.nodes[:1]
        if not node.ipv4
    ]
    has_ipv6 = str(_os_has_ipv6()).lower()
    distances = ",".join(f"{key}v4:{round(took / 1_000_000_000, 1):g}s" for key, took in latency.items())
    lines.append(
        f"netcheck: [v1] report: udp=false icmpv4=false v6=false v6os={has_ipv6} mapvarydest= hair= portmap= "
        f"derp={_nearest(latency)} derpdist={distances}"
    )
    return lines
