"""Write docs/protocol/state-machines.md from the state tables in the code, and the diagrams of docs/concepts.

scripts/generate-diagrams runs this; `--check` exits 1 if the committed file differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "docs/protocol/state-machines.md"

from coder.agent import lifecycle  # noqa: E402
from coder.domain.provisioning import jobs  # noqa: E402
from coder.domain.workspaces import builds  # noqa: E402
from coder.mesh.core.paths import mtu, portmapping, selector  # noqa: E402
from coder.mesh.core.stack.tcp import states  # noqa: E402
from coder.mesh.core.tunnel import constants, timers  # noqa: E402
from coder.rpc.proto import agent_pb2  # noqa: E402
from scripts import concept_diagrams  # noqa: E402

Arrow = tuple[str, str, str]
"""Transition: (from, to, event)."""


def main() -> int:
    text = "\n".join([HEAD, tcp(), path(), size(), port(), tunnel(), agent(), workspace()])
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text() == text and not concept_diagrams.differing() else 1
    concept_diagrams.write()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text)
    return 0


HEAD = """# State machines

`scripts/generate-diagrams` generates this file from the tables named below; a test compares it with them. Change the
table, run the script, commit both. For a connection and a path, transitions outside the table are impossible: the code
treats them as errors.
"""


def tcp() -> str:
    usual = [
        (before.name, after.name, event.value)
        for (before, event), after in states.TABLE.items()
        if event is not states.TcpEvent.DIED
    ]
    return f"""## A TCP connection of the overlay

`coder/mesh/core/stack/tcp/states.py`. Listening is a separate object there, not a state. From every state, the event
"{states.TcpEvent.DIED.value}" (reset, aborted or timed out) leads to CLOSED; the diagram omits those arrows.

{diagram(usual, start=states.TcpState.CLOSED.name)}
"""


def path() -> str:
    arrows = [(before.name, step.to.name, event.value) for (before, event), step in selector.TABLE.items()]
    rows = [
        (
            before.value,
            event.value,
            step.to.value,
            "yes" if step.adopt else "",
            "yes" if step.trust else "",
            "yes" if step.forget else "",
        )
        for (before, event), step in selector.TABLE.items()
    ]
    return f"""## The path to a peer

`coder/mesh/core/paths/selector.py`. RELAYED sends through the relay, DIRECT by UDP, DOUBTFUL through both. A pong is
trusted for {selector.TRUST:g} s; doubt lasts {selector.DOUBT:g} s.

{diagram(arrows, start=selector.PathState.RELAYED.name)}

{table(("state", "event", "next", "adopts the address", "restarts trust", "forgets the address"), rows)}
"""


def size() -> str:
    arrows = [(before.name, after.name, event.value) for (before, event), after in mtu.TABLE.items()]
    sizes = ", ".join(map(str, mtu.PROBE_SIZES))
    return f"""## What a path carries

`coder/mesh/core/paths/mtu.py`, as in RFC 8899. There is one search per answering UDP address. Sizes are bytes of UDP
payload, tried in this order: {sizes}. A size unanswered {mtu.MAX_PROBES} times is too large; larger ones are tried
again after {mtu.RAISE_AFTER / 60:g} minutes.

{diagram(arrows, start=mtu.MtuState.SEARCHING.name)}
"""


def port() -> str:
    always = {portmapping.MappingEvent.WANTED, portmapping.MappingEvent.UNWANTED}
    arrows = [
        (before.name, after.name, event.value)
        for (before, event), after in portmapping.TABLE.items()
        if event not in always
        or (before, after) == (portmapping.MappingState.IDLE, portmapping.MappingState.ASKING_PCP)
    ]
    mapping, events = portmapping.MappingState, portmapping.MappingEvent
    return f"""## A port of the router's

`coder/mesh/core/paths/portmapping.py`. From every state "{events.WANTED.value}" (the network changed) leads
to {mapping.ASKING_PCP.name} and "{events.UNWANTED.value}" to {mapping.IDLE.name}; the
diagram omits those arrows. A mapping is requested for {portmapping.LIFETIME} s; a rejection or a timeout lasts
{portmapping.ASK_AGAIN:g} s.

{diagram(arrows, start=mapping.IDLE.name)}
"""


def tunnel() -> str:
    facts = [
        (name, rules)
        for name, rules in vars(timers).items()
        if name.isupper() and isinstance(rules, tuple) and rules and isinstance(rules[0], tuple)
    ]
    words = {
        timers._ARM: "arm unless armed",
        timers._RESTART: "restart",
        timers._DISARM: "disarm",
        timers._RESTART_PERSISTENT: "restart with the configured interval",
    }
    rows = [
        (
            name.lower().replace("_", " "),
            timer.name.lower().replace("_", " "),
            words[operation],
            f"{delay:g} s" if delay else "",
        )
        for name, rules in facts
        for operation, timer, delay in rules
    ]
    return f"""## The timers of a WireGuard tunnel

`coder/mesh/core/tunnel/timers.py`. Facts change timers by these rules; `peer.py` handles expired timers.
Keys older than {constants.REKEY_AFTER_TIME:g} s are renewed by their initiator; keys older than
{constants.REJECT_AFTER_TIME:g} s neither encrypt nor decrypt.

{table(("fact", "timer", "operation", "after"), rows)}
"""


def agent() -> str:
    names = [agent_pb2.Lifecycle.State.Name(state) for state in lifecycle.ORDER]
    chain = " -> ".join(f"`{name}`" for name in names)
    return f"""## The life of an agent

`coder/agent/lifecycle.py`. States only move forward in this order, and may be skipped: a start script that succeeds
leads from STARTING to READY, one that fails to START_ERROR.

{chain}
"""


def workspace() -> str:
    rows = [
        (transition, *(builds.build_status(transition, status) for status in jobs.STATUSES))
        for transition in builds.TRANSITIONS
    ]
    heads = ("transition / job", *jobs.STATUSES)
    return f"""## The status of a workspace

`coder/domain/workspaces/builds.py`. The status of a workspace is the status of its newest build's job
(`coder/domain/provisioning/jobs.py`), combined with the build's transition.

{table(heads, rows)}
"""


def diagram(arrows: Iterable[Arrow], start: str) -> str:
    """Return a Mermaid diagram; arrows between the same two states are merged into one with several lines."""
    merged: dict[tuple[str, str], list[str]] = {}
    for before, after, label in arrows:
        merged.setdefault((before, after), []).append(label)
    lines = [f"    {before} --> {after}: {'<br/>'.join(labels)}" for (before, after), labels in merged.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {start}", *lines, "```"])


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    raise SystemExit(main())
