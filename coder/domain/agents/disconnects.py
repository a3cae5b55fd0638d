"""Why an agent was away: one table over what the server saw and what the agent's flight recorder brought back.

The first row that holds names the cause. Before the agent has come back and told its side, only the server's own doing
can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Ended = Literal["closed", "silent", "stopping", "lost", "unnoticed"]
"""How the server saw a connection end: closed by the other side, no answer to pings, the server stopped, the server was
gone itself, or not at all: the agent dialled again before anything was noticed."""
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
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is known of one disconnect."""

    ended: Ended
    told: bool = False
    "Whether the agent has told its side."
    new_process: bool = False
    upgraded: bool = False
    "The agent replaced its own program."
    goodbye: bool = False
    "The old process ended as it should: its last lifecycle state, or its record."
    record_lost: bool = False
    "A new process that found no record of an old one."
    rebooted: bool = False
    oom_kills: int = 0
    "Processes the kernel killed for memory between the old process' last sign and the new one."
    stood_still: float = 0.0
    machine_slept: bool = False
    addresses: str = ""
    "`before -> after`, when they changed."
    cut: bool = False
    "The agent's end saw the connection closed, and the agent had not closed it."


@dataclass(frozen=True, slots=True)
class Verdict:
    cause: Cause
    detail: str
    "One sentence."


Rule = tuple[Cause, Callable[[Evidence], bool], Callable[[Evidence], str]]

RULES: tuple[Rule, ...] = (
    (
        "server_restarted",
        lambda e: e.ended in {"stopping", "lost"} and not (e.told and e.new_process),
        lambda e: "The server was stopped." if e.ended == "stopping" else "The server itself was away.",
    ),
    ("stopped", lambda e: e.goodbye and not e.told, lambda _: "The agent was stopped."),
    ("unknown", lambda e: not e.told, lambda _: "The agent has not come back with its side of it."),
    (
        "unknown",
        lambda e: e.new_process and e.record_lost,
        lambda _: "A new agent runs, and it found no record of the old one.",
    ),
    (
        "upgraded",
        lambda e: e.new_process and e.upgraded,
        lambda _: "The agent went on with the server's newer program.",
    ),
    ("stopped", lambda e: e.new_process and e.goodbye, lambda _: "The agent was stopped and started again."),
    ("rebooted", lambda e: e.new_process and e.rebooted, lambda _: "The machine started anew."),
    (
        "out_of_memory",
        lambda e: e.new_process and e.oom_kills > 0,
        lambda e: f"The agent was killed while the machine had no memory left ({e.oom_kills} killed for it).",
    ),
    ("killed", lambda e: e.new_process, lambda _: "The agent's process was killed; the machine went on running."),
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
        lambda e: e.cut and e.ended in {"closed", "silent", "unnoticed"},
        lambda _: "Something on the way closed the connection; neither the agent nor the server did.",
    ),
    ("unknown", lambda _: True, lambda _: "Neither side saw why."),
)
"""In this order: a process that is gone explains more than what it saw before, sleep explains a changed network."""

CAUSES: tuple[Cause, ...] = tuple(dict.fromkeys(cause for cause, _, _ in RULES))


def name_cause(evidence: Evidence) -> Verdict:
    """The first row of `RULES` that holds."""
    for cause, holds, detail in RULES:
        if holds(evidence):
            return Verdict(cause, detail(evidence))
    raise AssertionError("the last rule always holds")


def read_events(ended: Ended, events: Iterable[tuple[str, Mapping[str, Any]]]) -> Evidence:
    """What an agent's events, (kind, data) oldest first, say about the connection it lost last. Foreign data."""
    found = Evidence(ended, told=True)
    for kind, data in events:
        found = _heard(found, kind, data)
    return found


def _heard(found: Evidence, kind: str, data: Mapping[str, Any]) -> Evidence:
    if data.get("survived") is True:  # by the connection that was lost later, for another reason
        return found
    if kind == "started":
        previous = data.get("previous")
        return replace(
            found,
            new_process=True,
            upgraded=previous == "upgraded",
            goodbye=previous == "stopped",
            record_lost=previous not in ("stopped", "upgraded", "died"),
            rebooted=data.get("same_boot") is False,
            oom_kills=int(_number(data.get("oom_kills"))),
        )
    if kind == "stood_still":
        slept = data.get("machine_slept") is True or found.machine_slept
        return replace(found, stood_still=found.stood_still + _number(data.get("seconds")), machine_slept=slept)
    if kind == "network_changed":
        return replace(found, addresses=f"{_text(data.get('before'))} -> {_text(data.get('after'))}")
    if kind == "disconnected":
        return replace(found, cut=data.get("how") == "closed")
    return found


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9 else 0.0


def _text(value: object) -> str:
    shown = value if isinstance(value, str) else ""
    return "".join(char for char in shown if char.isprintable())[:200] or "none"
