"""`coder debug trace`: the events of a connection with times: relays, handshakes, paths, pings."""

from __future__ import annotations

import contextlib
import json
import sys

import trio

from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.debug_trace import TRACE, DebugTraceOptions
from coder.client.link import WorkspaceLink, open_link
from coder.client.ready import Preparation, print_to_stderr
from coder.client.tracing import open_capture
from coder.mesh.description import TraceFields, TraceValue
from coder.mesh.trace import Trace
from coder.net.http1 import HttpClient

PING_PAUSE = 1.0
"Seconds between pings: path discovery runs only while data is sent."


@implements(TRACE)
def _run(invocation: Invocation[DebugTraceOptions]) -> int:
    run_trio(_main, invocation)
    return 0


async def _main(invocation: Invocation[DebugTraceOptions]) -> None:
    policy = session.dial_policy(invocation)
    async with HttpClient(policy) as http:
        prepare = Preparation(http, print_to_stderr, autostart=False)
        target = await prepare.wait_connected(await prepare.find(invocation.args[0]))
    began = trio.current_time()
    show = _show_json if invocation.options.output == "json" else _show_text
    trace = Trace(lambda fact: show(fact.at - began, fact.name, fact.fields))
    direct = not invocation.globals.disable_direct
    async with contextlib.AsyncExitStack() as stack:
        tap = stack.enter_context(open_capture(invocation.options.pcap_file)) if invocation.options.pcap_file else None
        link = await stack.enter_async_context(open_link(policy, target.agent.id, direct=direct, tap=tap, trace=trace))
        with trio.move_on_after(invocation.options.time.total_seconds()):
            await link.wait_reachable()
            show(trio.current_time() - began, "reachable", {})
            while True:
                with contextlib.suppress(Exception):  # the trace already reports a lost ping
                    await link.ping()
                await trio.sleep(PING_PAUSE)
        show(trio.current_time() - began, "end", _summary(link))


def _summary(link: WorkspaceLink) -> TraceFields:
    peers = link.node.status().peers
    if not peers:
        return {"peer": "none"}
    peer = peers[0]
    return {
        "path": peer.path,
        "endpoint": peer.endpoint,
        "region": peer.region,
        "rx_bytes": peer.rx_bytes,
        "tx_bytes": peer.tx_bytes,
        "direct_bytes": peer.direct_bytes,
        "relayed_bytes": peer.relayed_bytes,
    }


def _show_text(at: float, name: str, fields: TraceFields) -> None:
    parts = [f"{key}={_text(value)}" for key, value in fields.items() if value is not None]
    sys.stdout.write(f"{at:9.4f}s  {name:<12} {' '.join(parts)}".rstrip() + "\n")
    sys.stdout.flush()


def _show_json(at: float, name: str, fields: TraceFields) -> None:
    plain = {
        key: value if isinstance(value, int | float | str | None) else _text(value) for key, value in fields.items()
    }
    sys.stdout.write(json.dumps({"at": round(at, 6), "fact": name, **plain}) + "\n")
    sys.stdout.flush()


def _text(value: TraceValue) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, tuple) and len(value) == 2:
        host, port = value
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(value)
