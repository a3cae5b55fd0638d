"""Diagnostics of a running agent over the overlay: its network, counters and log (`/debug/*`, `/api/v0/netcheck`).

Replies show the agent's current state; nothing is measured for them. The routes are in `http_api.py`.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from coder.agent.counters import FAMILIES, Labels
from coder.agent.state import AgentState
from coder.base.json_types import JsonObject

if TYPE_CHECKING:
    from coder.mesh.description import NodeStatus

MAX_LOG = 10 << 20
"""Bytes returned of the log's end."""


def netcheck_report(status: NodeStatus) -> JsonObject:
    """Return the latest results of STUN and the relays, in the field names of Tailscale's NetInfo."""
    warnings = []
    if status.mapping_varies:
        text = "STUN returned different addresses; direct paths will be rare behind such a router."
        warnings.append({"code": "ESTUN02", "message": text})
    if not any(relay.connected for relay in status.relays):
        warnings.append({"code": "EUNKNOWN", "message": "No relay is connected."})
    return {
        "severity": "warning" if warnings else "ok",
        "warnings": warnings,
        "dismissed": False,
        "net_info": {
            "UDP": status.udp_works,
            "MappingVariesByDestIP": status.mapping_varies,
            "PreferredDERP": status.self_info.preferred_derp,
            "DERPLatency": dict(status.self_info.derp_latency),
            "PMP": status.port_mapping == "NAT-PMP",
            "PCP": status.port_mapping == "PCP",
        },
    }


def network_page(status: NodeStatus) -> str:
    """Return an HTML page about the node, its relays and its peers."""
    info = status.self_info
    about = {
        "key": str(info.public_key),
        "addresses": ", ".join(map(str, info.addresses)),
        "endpoints": ", ".join(map(str, info.endpoints)),
        "home relay": str(info.preferred_derp),
        "UDP ports": ", ".join(map(str, status.udp_ports)),
        "encryption": status.cipher,
    }
    relays = [{name: str(value) for name, value in asdict(relay).items()} for relay in status.relays]
    peers = [
        {
            "key": str(peer.public_key),
            "addresses": ", ".join(map(str, peer.addresses)),
            "path": peer.path,
            "endpoint": peer.endpoint,
            "received": str(peer.rx_bytes),
            "sent": str(peer.tx_bytes),
        }
        for peer in status.peers
    ]
    parts = [_table("Node", [about]), _table("Relays", relays), _table("Peers", peers)]
    return "<!doctype html><title>Agent network</title><h1>Agent network</h1>" + "".join(parts)


def _table(title: str, rows: list[dict[str, str]]) -> str:
    from html import escape  # its table of names is only for pages that are rarely requested

    head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else {"none": ""}))
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row.values()) + "</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def metrics_text(state: AgentState) -> str:
    """Return the agent's counters in Prometheus' text format."""
    status = state.overlay()
    lines = ["# TYPE agent_sessions_open gauge"]
    lines += [f'agent_sessions_open{{app="{name}"}} {count}' for name, count in sorted(state.sessions.items())]
    if status is not None:
        peers = status.peers
        families = {
            "agent_network_peers": ("gauge", len(peers)),
            "agent_network_received_bytes_total": ("counter", sum(peer.rx_bytes for peer in peers)),
            "agent_network_sent_bytes_total": ("counter", sum(peer.tx_bytes for peer in peers)),
            "agent_network_direct_bytes_total": ("counter", sum(peer.direct_bytes for peer in peers)),
            "agent_network_relayed_bytes_total": ("counter", sum(peer.relayed_bytes for peer in peers)),
            "agent_network_relays_connected": ("gauge", sum(relay.connected for relay in status.relays)),
        }
        for name, (kind, value) in families.items():
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        state.counters.note_network(status, trio.current_time())
    for name, samples in groupby(state.counters.samples(), key=lambda sample: sample.name):
        lines.append(f"# TYPE {name} {FAMILIES[name]}")
        lines += [f"{name}{_braces(sample.labels)} {sample.value:.15g}" for sample in samples]
    return "\n".join(lines) + "\n"


def _braces(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""


def log_tail(path: Path, after: int = 0) -> bytes:
    """Return the log from byte `after` on, at most its last `MAX_LOG` bytes. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(after, size - MAX_LOG, 0))
        return file.read(MAX_LOG)
