"""`coder ping`: checks whether a workspace is reachable, by which path and how fast."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

import trio

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.quoted import quoted
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.ping import PING, PingOptions
from coder.client.link import WorkspaceLink
from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
from coder.client.shared_link import SharedLink, open_link_for_command
from coder.mesh.description import PingResult
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.tailnet.verdicts import TransportVerdict, lines_of


@implements(PING)
def _run(invocation: Invocation[PingOptions]) -> int:
    return run_trio(_main, invocation)


async def _main(invocation: Invocation[PingOptions]) -> int:
    policy = session.dial_policy(invocation)
    async with HttpClient(policy) as http:
        prepare = Preparation(http, print_to_stderr, autostart=False)
        target = await prepare.wait_connected(await prepare.find(invocation.args[0]))
        return await _ping(invocation, policy, prepare, target)


async def _ping(
    invocation: Invocation[PingOptions], policy: DialPolicy, prepare: Preparation, target: ReadyAgent
) -> int:
    direct = not invocation.globals.disable_direct
    name = target.workspace.name
    async with open_link_for_command(policy, session.config_dir(invocation), prepare, target, direct=direct) as link:
        try:
            await link.wait_reachable()
        except CoderError:
            # Print the failing transport, which explains why there is no answer.
            sys.stderr.write("\n".join(lines_of((await link.explain(None))[0])) + "\n")
            raise
        results = await _ping_all(invocation, link, name)
        last = next((result for result in reversed(results) if result), None)
        transports, path = await link.explain(last)
    if _prints_json(invocation):
        _print_json(name, results, transports, path)
    else:
        _summary(name, results)
        _print_path(path)
        sys.stdout.write("\n" + "\n".join(lines_of(transports)) + "\n")
    return 0 if any(results) else 1


def _prints_json(invocation: Invocation[PingOptions]) -> bool:
    return bool(invocation.options.output == "json")


def _print_path(path: Mapping[str, Json]) -> None:
    """Return what contributes to the time of a ping, and the age of the tunnel."""
    if path["relay_region"]:
        took = f", {path['relay_latency_ms']:.2f} ms away" if path["relay_latency_ms"] is not None else ""
        relay = f", reached by {path['relay_rung']}" if path["relay_rung"] else ""
        sys.stdout.write(f"  home relay: {path['relay_region']}{took}{relay}\n")
    if path["last_handshake_seconds_ago"] is not None:
        sys.stdout.write(f"  WireGuard handshake: {path['last_handshake_seconds_ago']:.1f} s ago\n")
    sys.stdout.write(f"  bytes sent: {path['direct_bytes']} direct, {path['relayed_bytes']} by relay\n")
    if path["not_direct_because"]:
        sys.stdout.write(f"  not direct: {path['not_direct_because']}\n")


def _print_json(
    name: str, results: list[PingResult | None], transports: list[TransportVerdict], path: Mapping[str, Json]
) -> None:
    pings = [
        {
            "latency_ms": round(result.latency_s * 1000, 3),
            "p2p": result.via == "direct",
            "endpoint": result.endpoint,
            "derp_region_id": result.region,
            "derp_region_code": result.region_code,
        }
        if result
        else None
        for result in results
    ]
    latencies = [result.latency_s * 1000 for result in results if result]
    report = {
        "workspace": name,
        "pings": pings,
        "lost": len(results) - len(latencies),
        "latency_ms": {
            "min": round(min(latencies), 3),
            "avg": round(sum(latencies) / len(latencies), 3),
            "max": round(max(latencies), 3),
        }
        if latencies
        else None,
        "path": path,
        "rungs": [transport.to_json() for transport in transports],
    }
    sys.stdout.write(json.dumps(report, indent=4) + "\n")


async def _ping_all(
    invocation: Invocation[PingOptions], link: SharedLink | WorkspaceLink, name: str
) -> list[PingResult | None]:
    """Ping and collect one result per ping (None for a lost one). Without a count, stop at Ctrl-C or at a direct
    path."""
    count = invocation.options.num
    results: list[PingResult | None] = []
    try:
        while not count or len(results) < count:
            began = trio.current_time()
            results.append(await _ping_once(invocation, link, name))
            await trio.sleep_until(
                began + invocation.options.wait.total_seconds() if _continues(count, results) else began
            )
    except KeyboardInterrupt:
        pass
    return results


def _continues(count: int, results: list[PingResult | None]) -> bool:
    return not count or len(results) < count


async def _ping_once(
    invocation: Invocation[PingOptions], link: SharedLink | WorkspaceLink, name: str
) -> PingResult | None:
    stamp = ""
    if invocation.options.time or invocation.options.utc:
        now = datetime.now(UTC) if invocation.options.utc else datetime.now().astimezone()
        stamp = now.strftime("%Y-%m-%d %H:%M:%S ")
    with trio.move_on_after(invocation.options.timeout.total_seconds()):
        try:
            result = await link.ping()
        except (CoderError, OSError, trio.BrokenResourceError) as error:
            _say(invocation, f"{stamp}ping to {quoted(name)} failed: {error}\n")
            return None
        via = f"p2p via {result.endpoint}" if result.via == "direct" else f"proxied via DERP({_region(link, result)})"
        _say(invocation, f"{stamp}pong from {name} {via} in {result.latency_s * 1000:.2f}ms\n")
        return result
    _say(invocation, f"{stamp}ping to {quoted(name)} timed out\n")
    return None


def _region(link: SharedLink | WorkspaceLink, result: PingResult) -> str:
    return str(link.regions.get(result.region) or result.region)


def _say(invocation: Invocation[PingOptions], line: str) -> None:
    """Print the line of one ping; to stderr for JSON output."""
    out = sys.stderr if _prints_json(invocation) else sys.stdout
    out.write(line)
    out.flush()


def _summary(name: str, results: list[PingResult | None]) -> None:
    latencies = [result.latency_s * 1000 for result in results if result]
    lost = len(results) - len(latencies)
    share = lost / len(results) * 100 if results else 0
    sys.stdout.write(f"\n--- {name} ping statistics ---\n")
    sys.stdout.write(f"{len(results)} packets transmitted, {len(latencies)} received, {share:.0f}% packet loss\n")
    if latencies:
        mean = sum(latencies) / len(latencies)
        sys.stdout.write(f"rtt min/avg/max = {min(latencies):.2f}/{mean:.2f}/{max(latencies):.2f} ms\n")
        last = next(result for result in reversed(results) if result)
        if last.via == "direct":
            sys.stdout.write(f"✔ You are connected directly (p2p) via {last.endpoint}\n")
        else:
            sys.stdout.write("❗ You are connected via a DERP relay, not directly (p2p)\n")
