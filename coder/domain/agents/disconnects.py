"""Causes of agent disconnects: one table over the server's observations and the events of the agent's flight recorder.

The first matching row names the cause. Until the agent reconnects and reports its events, only the server's own actions
can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from coder.base.json_types import Json

Ended = Literal["closed", "silent", "stopping", "lost", "unnoticed"]
"""Ways the server saw a connection end: closed by the peer, no answer to pings, the server stopped, the server itself
was lost, or unnoticed: the agent reconnected before the server detected anything."""
ENDINGS: tuple[Ended, ...] = ("closed", "silent", "stopping", "lost", "unnoticed")

Cause = Literal[
    "stopped",
    "upgraded",
    "rebooted",
    "out_of_memory",
    "killed",
    "server_restarted",
    "slept",
    "network_changed",
    "proxy_cut",
    "network_lost",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Known facts about one disconnect."""

    ended: Ended
    reported: bool = False
    """Whether the agent has reported its events."""
    new_process: bool = False
    upgraded: bool = False
    """Whether the agent replaced its own program."""
    goodbye: bool = False
    """Whether the old process ended cleanly, by its last lifecycle state or its record."""
    record_lost: bool = False
    """Whether a new process found no record of an old process."""
    rebooted: bool = False
    oom_kills: int = 0
    """Processes the kernel killed for memory between the last record of the old process and the new process."""
    stood_still: float = 0.0
    machine_slept: bool = False
    addresses: str = ""
    "`before -> after`, when they changed."
    cut: bool = False
    """Whether the agent's end saw the connection closed without closing it itself."""
    cut_first: bool = False
    """Whether it did so before the server had given up waiting for answers and closed its own end."""
    gave_up: bool = False
    """Whether the agent's end got no answer, and closed the connection itself."""


@dataclass(frozen=True, slots=True)
class Verdict:
    cause: Cause
    detail: str
    "One sentence."


Rule = tuple[Cause, Callable[[Evidence], bool], Callable[[Evidence], str]]

RULES: tuple[Rule, ...] = (
    (
        "server_restarted",
        lambda e: e.ended in {"stopping", "lost"} and not (e.reported and e.new_process),
        lambda e: "The server was stopped." if e.ended == "stopping" else "The server itself was down.",
    ),
    ("stopped", lambda e: e.goodbye and not e.reported, lambda _: "The agent was stopped."),
    ("unknown", lambda e: not e.reported, lambda _: "The agent has not reported its events yet."),
    (
        "unknown",
        lambda e: e.new_process and e.record_lost,
        lambda _: "A new agent process started and found no record of the old one.",
    ),
    (
        "upgraded",
        lambda e: e.new_process and e.upgraded,
        lambda _: "The agent upgraded itself to the server's newer program.",
    ),
    ("stopped", lambda e: e.new_process and e.goodbye, lambda _: "The agent was stopped and started again."),
    ("rebooted", lambda e: e.new_process and e.rebooted, lambda _: "The machine was rebooted."),
    (
        "out_of_memory",
        lambda e: e.new_process and e.oom_kills > 0,
        lambda e: f"The agent was killed while the machine had no memory left ({e.oom_kills} killed for it).",
    ),
    ("killed", lambda e: e.new_process, lambda _: "The agent's process was killed; the machine kept running."),
    (
        "slept",
        lambda e: e.stood_still > 0,
        lambda e: (
            f"The machine slept for {e.stood_still:.0f} s."
            if e.machine_slept
            else f"The agent's process stood still for {e.stood_still:.0f} s (stopped, or its machine was paused)."
        ),
    ),
    ("network_changed", lambda e: bool(e.addresses), lambda e: f"The machine's addresses changed: {e.addresses}."),
    (
        "proxy_cut",
        lambda e: e.cut and (e.ended in {"closed", "unnoticed"} or (e.ended == "silent" and e.cut_first)),
        lambda _: "A proxy or firewall closed the connection; neither the agent nor the server did.",
    ),
    (
        "network_lost",
        lambda e: e.ended == "silent" and (e.cut or e.gave_up),
        lambda _: "The network between the agent and the server was interrupted; both kept running.",
    ),
    ("unknown", lambda _: True, lambda _: "Neither side recorded a reason."),
)
"""Ordered: a dead process explains more than its earlier observations, and sleep explains a changed network. A server
that gave up closes its end, so an agent that sees this after a silence was cut off by no proxy."""

CAUSES: tuple[Cause, ...] = tuple(dict.fromkeys(cause for cause, _, _ in RULES))


def name_cause(evidence: Evidence) -> Verdict:
    """Return the verdict of the first row of `RULES` that matches."""
    for cause, holds, detail in RULES:
        if holds(evidence):
            return Verdict(cause, detail(evidence))
    raise AssertionError("the last rule always holds")


def read_events(ended: Ended, events: Iterable[tuple[str, Mapping[str, Json]]], *, cut_first: bool = False) -> Evidence:
    """Return the evidence in an agent's events, (kind, data) oldest first, about its last lost connection. Untrusted
    data."""
    result = Evidence(ended, reported=True, cut_first=cut_first)
    for kind, data in events:
        result = _with_event(result, kind, data)
    return result


def _with_event(evidence: Evidence, kind: str, data: Mapping[str, Json]) -> Evidence:
    if data.get("survived") is True:  # of the connection that was lost later, for another reason
        return evidence
    if kind == "started":
        previous = data.get("previous")
        return replace(
            evidence,
            new_process=True,
            upgraded=previous == "upgraded",
            goodbye=previous == "stopped",
            record_lost=previous not in ("stopped", "upgraded", "died"),
            rebooted=data.get("same_boot") is False,
            oom_kills=int(_number(data.get("oom_kills"))),
        )
    if kind == "stood_still":
        slept = data.get("machine_slept") is True or evidence.machine_slept
        return replace(evidence, stood_still=evidence.stood_still + _number(data.get("seconds")), machine_slept=slept)
    if kind == "network_changed":
        return replace(evidence, addresses=f"{_text(data.get('before'))} -> {_text(data.get('after'))}")
    if kind == "disconnected":
        return replace(evidence, cut=data.get("how") == "closed", gave_up=data.get("how") == "silent")
    return evidence


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9 else 0.0


def _text(value: Json) -> str:
    text = value if isinstance(value, str) else ""
    return "".join(char for char in text if char.isprintable())[:200] or "none"
