"""State of each transport to a workspace, in texts for users. Pure: `network_check.py` measures.

The transports, best first: a direct UDP path, the relay by an upgrade, by a WebSocket, by plain requests; below them
the API and its links, without which nothing works.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from coder.base.json_types import JsonObject

State = Literal["ok", "warning", "error", "skipped"]

MARKS: dict[State, str] = {"ok": "✔", "warning": "❗", "error": "✘", "skipped": "·"}


@dataclass(frozen=True, slots=True)
class TransportVerdict:
    """State of one transport."""

    name: str
    "Identifier for programs: `api`, `links`, `relay-upgrade`, `relay-websocket`, `relay-stream`, `udp`, `direct`."
    title: str
    state: State
    text: str
    hint: str = ""
    "Next step to improve it; empty when there is none."
    latency_ms: float | None = None

    def to_json(self) -> JsonObject:
        fields: JsonObject = {"name": self.name, "state": self.state, "message": self.text}
        if self.hint:
            fields["hint"] = self.hint
        if self.latency_ms is not None:
            fields["latency_ms"] = round(self.latency_ms, 3)
        return fields


def lines_of(verdicts: Iterable[TransportVerdict]) -> list[str]:
    """Return one line for each, followed by a line for its hint."""
    listed = list(verdicts)
    width = max((len(verdict.title) for verdict in listed), default=0)
    lines = []
    for verdict in listed:
        took = f" ({verdict.latency_ms:.1f} ms)" if verdict.latency_ms is not None else ""
        lines.append(f"{MARKS[verdict.state]} {verdict.title.ljust(width)}  {verdict.text}{took}")
        if verdict.hint:
            lines.append(f"  {' ' * width}  → {verdict.hint}")
    return lines


def through(proxy: str) -> str:
    return f"through the proxy {proxy}" if proxy else "without a proxy"


def api(*, url: str, proxy: str, latency_s: float | None, problem: str = "", hint: str = "") -> TransportVerdict:
    if problem:
        return TransportVerdict("api", "API", "error", problem, hint)
    took = None if latency_s is None else latency_s * 1000
    return TransportVerdict("api", "API", "ok", f"{url} answers, {through(proxy)}", latency_ms=took)


def links(transport: str, problem: str = "", hint: str = "") -> TransportVerdict:
    """`transport`: how our link connected (`websocket`, `stream`); empty when it did not."""
    if transport == "websocket":
        return TransportVerdict("links", "Links", "ok", "WebSockets get through")
    if transport:
        return TransportVerdict(
            "links",
            "Links",
            "warning",
            "WebSockets do not get through; plain requests carry the links instead",
            "Let the reverse proxy or firewall in front of the server pass `Upgrade: websocket` on: it is faster.",
        )
    return TransportVerdict("links", "Links", "error", problem or "no link to the server can be opened", hint)


_RELAY_TITLES = {
    "upgrade": "Relay by upgrade",
    "websocket": "Relay by WebSocket",
    "stream": "Relay by plain requests",
}
_RELAY_HINTS = {
    "upgrade": "Harmless while the next one works; a proxy on the way does not know `Upgrade: DERP`.",
    "websocket": "A proxy between this machine and the relay strips upgrades: let it pass `Upgrade: websocket` on.",
    "stream": "Only this server's own relay can do this; a proxy that refuses POST or DELETE breaks it.",
}


def relay(transport: str, verdict: str, *, is_needed: bool, latency_s: float | None = None) -> TransportVerdict:
    """Return the state of one relay transport; `verdict` is `RelayDialer`'s text. `is_needed`: no transport above it
    works."""
    title = _RELAY_TITLES[transport]
    if verdict == "works":
        took = None if latency_s is None else latency_s * 1000
        return TransportVerdict(f"relay-{transport}", title, "ok", "works", latency_ms=took)
    if verdict == "not tried":
        return TransportVerdict(f"relay-{transport}", title, "skipped", "not tried" if is_needed else "not needed")
    return TransportVerdict(
        f"relay-{transport}", title, "error" if transport == "stream" else "warning", verdict, _RELAY_HINTS[transport]
    )


def udp(*, works: bool, servers: int, answered: int, address: str = "", mapping: str = "") -> TransportVerdict:
    """Return the STUN result. `servers`: number that could be asked; `mapping`: text of `explain_mapping`."""
    if not servers:
        return TransportVerdict(
            "udp",
            "UDP",
            "skipped",
            "the deployment names no STUN server, so UDP was not tried",
            "An administrator can configure one with --derp-server-stun-addresses, or run ours with --stun-address.",
        )
    if works:
        seen = f"{answered} of {servers} STUN servers answer; seen as {address}"
        return TransportVerdict("udp", "UDP", "ok", f"{seen}; {mapping}" if mapping else seen)
    return TransportVerdict(
        "udp",
        "UDP",
        "warning",
        f"no answer from {servers} STUN servers: UDP is blocked, or they are down",
        "Ask for outgoing UDP to be allowed; until then everything takes the relay.",
    )


def explain_mapping(protocol: str, endpoint: str) -> str:
    """Return the result of the port mapping (`NodeStatus.port_mapping`); empty when no request was useful."""
    if endpoint:
        return f"the router maps {endpoint} ({protocol})"
    return "" if not protocol else "the router maps no port" + ("" if protocol == "none" else f" ({protocol})")


def direct(
    *,
    endpoint: str = "",
    is_disabled: bool = False,
    is_blocked: bool = False,
    udp_works: bool | None = None,
    varies: bool | None = None,
    peer_endpoints: int | None = None,
) -> TransportVerdict:
    """Return whether a direct path is in use or possible. None: not known."""
    title = "Direct path"
    if endpoint:
        return TransportVerdict("direct", title, "ok", f"in use, by {endpoint}")
    if is_disabled:
        return TransportVerdict("direct", title, "skipped", "switched off here by --disable-direct-connections")
    if is_blocked:
        return TransportVerdict(
            "direct",
            title,
            "skipped",
            "the deployment allows relayed connections only",
            "An administrator set --block-direct-connections.",
        )
    if peer_endpoints == 0:
        return TransportVerdict(
            "direct",
            title,
            "warning",
            "the agent announces no address, so only the relay reaches it",
            "Its network may block UDP: run `coder netcheck` there.",
        )
    if udp_works is False:
        return TransportVerdict(
            "direct",
            title,
            "warning",
            "while UDP is blocked here, possible within one network only",
            "Allow outgoing UDP.",
        )
    if varies:
        return TransportVerdict(
            "direct",
            title,
            "warning",
            "hard: this network's NAT gives every connection another port (endpoint-dependent mapping)",
            "It works with agents that have a public address or an easy NAT; otherwise the relay stays in use.",
        )
    if peer_endpoints is not None:
        return TransportVerdict(
            "direct",
            title,
            "warning",
            f"none found yet; {peer_endpoints} addresses of the agent are being tried",
            "A firewall between may drop UDP, or both ends sit behind a difficult NAT.",
        )
    if udp_works is None:
        return TransportVerdict("direct", title, "skipped", "not known without a STUN server; tried within one network")
    return TransportVerdict("direct", title, "ok", "likely: UDP passes and the NAT keeps its ports")
