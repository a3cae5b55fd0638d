"""Causes of agents' disconnects: the server's view of both ends of an absence, and the agent's report afterwards.

The rule is `domain/agents/disconnects.py`. The agent's report comes with its readings (`vitals.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from coder.api.agents.agent_health import AgentDisconnect, FlightRecord
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.store.agents import arrivals, system_agents
from coder.coderd.store.agents import disconnects as store
from coder.coderd.store.agents.arrivals import ArrivalRow
from coder.coderd.store.workspaces.change_feed import notice_of
from coder.domain.agents.disconnects import Ended, Evidence, Verdict, name_cause, read_events

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import CurrentAgent
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

_SHUTDOWN_STATES = frozenset({"shutting_down", "shutdown_timeout", "shutdown_error", "off"})

_EXPLAINING = frozenset({"disconnected", "started"})
"Kinds of events that explain a disconnect; without one, the machine stayed connected."

_RECENT = 5
"""Absences that an agent may have reported while each answer was lost; it repeats unacknowledged events."""

_SAME_MOMENT = timedelta(seconds=1)
"""Difference below which it is unknown whether the agent or the server noticed the end first."""

_OLDEST = timedelta(days=366)
"Age before which a reported disconnect is not plausible."


async def note_disconnect(tx: Tx, current: CurrentAgent, ended: Ended, now: datetime) -> None:
    """Store the end of an agent's last connection."""
    agent = await system_agents.get_agent(tx, current.agent.id)
    goodbye = agent is not None and agent.lifecycle_state in _SHUTDOWN_STATES
    verdict = name_cause(Evidence(ended, goodbye=goodbye))
    await store.add_disconnect(
        tx,
        current.workspace_id,
        current.agent.name,
        disconnected_at=now,
        ended=ended,
        cause=verdict.cause,
        detail=verdict.detail,
    )


async def record_arrival(
    tx: Tx, current: CurrentAgent, link_id: UUID, api_version: str, began: datetime, now: datetime
) -> None:
    """Store the start of a connection. An earlier one without an end, from before `began`, was lost with a server."""
    agent = current.agent
    last_seen, closed_at = agent.last_connected_at, agent.disconnected_at
    is_lost = last_seen is not None and last_seen < began and (closed_at is None or closed_at <= last_seen)
    verdict = name_cause(Evidence("lost", goodbye=agent.lifecycle_state in _SHUTDOWN_STATES))
    arrival = ArrivalRow(
        agent_id=agent.id,
        agent_name=agent.name,
        workspace_id=current.workspace_id,
        link_id=link_id,
        api_version=api_version,
        at=now,
        lost_at=last_seen if is_lost else None,
        ended="lost",
        cause=verdict.cause,
        detail=verdict.detail,
    )
    notice = notice_of("connection", current.owner_id, current.workspace_id, agent.id)
    await arrivals.record_arrival(tx, arrival, notice)


async def record_events(
    tx: Tx, current: CurrentAgent, events: Sequence[FlightRecord], sent_at: datetime, now: datetime
) -> None:
    """Store the agent's report of its last absences, or of a disconnect that the server did not notice.
    `sent_at` is now by the agent's clock."""
    last = await store.list_disconnects(tx, current.workspace_id, current.agent.name, _RECENT)
    # Repeated because an answer was lost: these events explain the earlier absence only.
    known = {(item["at"], item["kind"]) for row in last for item in row.events}
    events = [event for event in events if (event.at.isoformat(), event.kind) not in known]
    if not _explains(events):
        return
    unexplained = list(takewhile(lambda row: row.told_at is None, last))
    for row, story in zip(unexplained, reversed(split_by_absence(events, len(unexplained))), strict=False):
        evidence = _read(row.ended, story, cut_first=_saw_end_before(story, now - row.disconnected_at, sent_at))
        await store.update_disconnect(tx, row.id, **_report(name_cause(evidence), story, now))
    if unexplained:
        return
    evidence = _read("unnoticed", events)
    rebuilt = any(event.kind == "connected" and event.data.get("rebuilt") is True for event in events)
    if evidence.record_lost or rebuilt:
        return  # a machine that connects for the first time, or was disconnected because it is another agent now
    await store.add_disconnect(
        tx,
        current.workspace_id,
        current.agent.name,
        disconnected_at=disconnect_start(events, now),
        returned_at=now,
        ended="unnoticed",
        **_report(name_cause(evidence), events, now),
    )


def split_by_absence(events: Sequence[FlightRecord], absences: int) -> list[list[FlightRecord]]:
    """Split events, oldest first, after each return of the agent: at most one part for each absence. An agent that was
    away again before it could report has a reason for each; surplus parts are about absences that the server did not
    notice, and belong to the oldest."""
    parts: list[list[FlightRecord]] = [[]]
    for event in events:
        parts[-1].append(event)
        if event.kind == "connected" and _explains(parts[-1]):
            parts.append([])
    if len(parts) > 1 and not _explains(parts[-1]):
        rest = parts.pop()
        parts[-1] += rest
    while len(parts) > max(absences, 1):
        parts[:2] = [parts[0] + parts[1]]
    return parts


def _explains(events: Sequence[FlightRecord]) -> bool:
    return any(event.kind in _EXPLAINING for event in events)


def _read(ended: Ended, events: Sequence[FlightRecord], *, cut_first: bool = False) -> Evidence:
    return read_events(ended, [(event.kind, event.data) for event in events], cut_first=cut_first)


def _saw_end_before(events: Sequence[FlightRecord], absent: timedelta, sent_at: datetime) -> bool:
    """Return whether the agent's connection ended before the server noticed it, which was `absent` ago."""
    away = [sent_at - event.at for event in events if event.kind == "disconnected"]
    return bool(away) and away[-1] > absent + _SAME_MOMENT


def _report(verdict: Verdict, events: Sequence[FlightRecord], now: datetime) -> store.DisconnectReport:
    stored: list[store.StoredEvent] = [
        {"at": event.at.isoformat(), "kind": event.kind, "data": event.data} for event in events
    ]
    return {"told_at": now, "cause": verdict.cause, "detail": verdict.detail, "events": stored}


def disconnect_start(events: Sequence[FlightRecord], now: datetime) -> datetime:
    """Return when the agent says it was disconnected, limited to the last year because its clock is untrusted."""
    at = min([event.at for event in events if event.kind == "disconnected"] or [now])
    return min(max(at, now - _OLDEST), now)


async def list_disconnects(ctx: Context, subject: Subject, agent_id: UUID) -> list[AgentDisconnect]:
    """Return disconnects, newest first, also of agents with that name in earlier builds. Raises NotFound."""
    current = await load_agent(ctx, subject, agent_id)
    rows = await ctx.db.read(store.list_disconnects, current.workspace_id, current.agent.name)
    return [_present(row) for row in rows]


def _present(row: store.DisconnectRow) -> AgentDisconnect:
    return AgentDisconnect(
        disconnected_at=row.disconnected_at,
        returned_at=row.returned_at,
        ended=row.ended,
        cause=row.cause,
        detail=row.detail,
        told=row.told_at is not None,
        events=[
            FlightRecord(at=datetime.fromisoformat(item["at"]).astimezone(UTC), kind=item["kind"], data=item["data"])
            for item in row.events
        ],
    )
