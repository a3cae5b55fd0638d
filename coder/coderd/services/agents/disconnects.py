"""Why agents were away: what the server sees at both ends of an absence, and what the agent tells when it is back.

The rule is `domain/agents/disconnects.py`. The agent's side comes with its readings (`vitals.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from coder.api.agents.agent_health import AgentDisconnect, FlightRecord
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents import disconnects as store
from coder.domain.agents.disconnects import Ended, Evidence, name_cause, read_events

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.agents.agents import AgentPlace
    from coder.coderd.store.engine.database import Tx
    from coder.domain.access.policy import Subject

_GOODBYE = frozenset({"shutting_down", "shutdown_timeout", "shutdown_error", "off"})

_TELLING = frozenset({"disconnected", "started"})
"Without one of these, events are about a machine that stayed connected."

_LOOKED_THROUGH = 5
"""Absences an agent may have told of while each of our answers was lost; it repeats what it holds for untold."""

_OLDEST = timedelta(days=366)
"Further back no agent is believed to have been away."


async def note_disconnect(tx: Tx, place: AgentPlace, ended: Ended, now: datetime) -> None:
    """A connection ended, and it was the last one."""
    agent = await agent_store.get_agent(tx, place.agent.id)
    goodbye = agent is not None and agent.lifecycle_state in _GOODBYE
    verdict = name_cause(Evidence(ended, goodbye=goodbye))
    await store.add_disconnect(
        tx,
        place.workspace_id,
        place.agent.name,
        disconnected_at=now,
        ended=ended,
        cause=verdict.cause,
        detail=verdict.detail,
    )


async def note_return(tx: Tx, place: AgentPlace, began: datetime, now: datetime) -> None:
    """A connection began. One that nobody saw end, from before this server `began`, was lost with a server."""
    last_seen, closed_at = place.agent.last_connected_at, place.agent.disconnected_at
    if last_seen is not None and last_seen < began and (closed_at is None or closed_at <= last_seen):
        await note_disconnect(tx, place, "lost", last_seen)
    await store.note_return(tx, place.workspace_id, place.agent.name, now)


async def hear(tx: Tx, place: AgentPlace, events: Sequence[FlightRecord], now: datetime) -> None:
    """The agent tells its side of the last absence. A cut that the server never noticed is a disconnect, too."""
    last = await store.list_disconnects(tx, place.workspace_id, place.agent.name, _LOOKED_THROUGH)
    # Told before, when our answer was lost: they explain that absence and none since.
    told_before = {(item["at"], item["kind"]) for row in last for item in row.events}
    events = [event for event in events if (event.at.isoformat(), event.kind) not in told_before]
    if not any(event.kind in _TELLING for event in events):
        return
    open_one = last[0] if last and last[0].told_at is None else None
    ended = cast("Ended", open_one.ended) if open_one else "unnoticed"
    evidence = read_events(ended, [(event.kind, event.data) for event in events])
    rebuilt = any(event.kind == "connected" and event.data.get("rebuilt") is True for event in events)
    if open_one is None and (evidence.record_lost or rebuilt):
        return  # a machine that was never here before, or one we sent away because it is another agent now
    verdict = name_cause(evidence)
    told = [{"at": event.at.isoformat(), "kind": event.kind, "data": event.data} for event in events]
    values: store.DisconnectTold = {"told_at": now, "cause": verdict.cause, "detail": verdict.detail, "events": told}
    if open_one is not None:
        await store.update_disconnect(tx, open_one.id, **values)
        return
    at = began_of(events, now)
    await store.add_disconnect(
        tx, place.workspace_id, place.agent.name, disconnected_at=at, returned_at=now, ended=ended, **values
    )


def began_of(events: Sequence[FlightRecord], now: datetime) -> datetime:
    """When the agent says it was cut off; its clock may be anything, so within the last year."""
    at = min([event.at for event in events if event.kind == "disconnected"] or [now])
    return min(max(at, now - _OLDEST), now)


async def list_disconnects(ctx: Context, subject: Subject, agent_id: UUID) -> list[AgentDisconnect]:
    """Newest first, those of earlier builds' agents of the same name too. Raises NotFound."""
    place = await load_agent(ctx, subject, agent_id)
    rows = await ctx.db.read(store.list_disconnects, place.workspace_id, place.agent.name)
    return [_shown(row) for row in rows]


def _shown(row: store.DisconnectRow) -> AgentDisconnect:
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
