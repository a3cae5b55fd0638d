"""Is an agent there? Times written while a connection lives, and its end.

Source: docs/protocol/rpc.md#agents, docs/protocol/agents.md#presence.

A connection that closes is over at once. A machine that only falls silent (frozen, cable pulled) is asked every five
seconds and given twelve to answer, so that people learn of it within 17 s.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import trio

from coder.base.groups import single_failure
from coder.base.ids import new_uuid
from coder.base.log import get_logger
from coder.coderd.services.agents import disconnects
from coder.coderd.services.agents.agent_access import find_again
from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import AgentPlace
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.agents.agents import CONNECTION_UPDATE_FREQUENCY
from coder.domain.agents.disconnects import Ended
from coder.rpc.errors import RpcClosed
from coder.rpc.session import Session

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

PING_INTERVAL = 5.0
PING_TIMEOUT = 12.0
"""Ours: upstream asks every 15 s and gives up after 30 s."""

LATE_PONG = 0.2
"""Ours: seconds. TCP sends a lost packet again so much later at the earliest: such an answer was lost once."""

OUTDATED = "build is outdated"

_log = get_logger("agents")


@dataclass(slots=True)
class _Stay:
    id: UUID
    links: int = 0


class AgentConnections:
    """How many connections of each agent live in this process, see `Context.part`.

    An agent that dials again may have two for a moment: it has left when the last one ends. From the first to the last
    is one stay, with an id of its own; the end of a stay means nothing once another one has begun, here or elsewhere.
    """

    def __init__(self, ctx: Context) -> None:
        self.began = ctx.clock.now()
        self._live: dict[UUID, _Stay] = {}

    def begin(self, agent_id: UUID) -> UUID:
        """The id of the stay that this connection begins or goes on with."""
        stay = self._live.setdefault(agent_id, _Stay(new_uuid()))
        stay.links += 1
        return stay.id

    def end(self, agent_id: UUID) -> bool:
        """Whether that was the last one."""
        self._live[agent_id].links -= 1
        if self._live[agent_id].links:
            return False
        del self._live[agent_id]
        return True

    def is_connected(self, agent_id: UUID) -> bool:
        return agent_id in self._live


@asynccontextmanager
async def monitored(ctx: Context, place: AgentPlace, session: Session, api_version: str) -> AsyncIterator[None]:
    """Marks the agent connected for the length of the block and watches that it answers.

    A silent agent, or one that would not be let in again, has its session closed.
    """
    connections = ctx.part(AgentConnections)
    stay = connections.begin(place.agent.id)
    pings = Pings()
    try:
        now = ctx.clock.now()
        template = await ctx.db.run(_mark_connected, now, place, stay, api_version, connections.began)
        if place.agent.first_connected_at is None:
            metrics = ctx.part(Metrics)
            metrics["coderd_agents_first_connection_seconds"].observe(
                max((now - place.agent.created_at).total_seconds(), 0), place.agent.name, template
            )
        with single_failure():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_ping, session, pings)
                nursery.start_soon(_keep_looking, place, session, lambda: _mark(ctx, place, stay, pings))
                yield
                nursery.cancel_scope.cancel()
    finally:
        if connections.end(place.agent.id):
            with trio.move_on_after(5, shield=True):
                ended = _how_it_ended(ctx, session, pings)
                await ctx.db.run(_mark_disconnected, ctx.clock.now(), place, stay, ended)


@asynccontextmanager
async def watched(ctx: Context, place: AgentPlace, session: Session) -> AsyncIterator[None]:
    """For a link that has the agent's token in another role: nothing is marked, its right is looked at."""
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_looking, place, session, lambda: ctx.db.read(find_again, place))
            yield
            nursery.cancel_scope.cancel()


def _how_it_ended(ctx: Context, session: Session, pings: Pings) -> Ended | None:
    """None: we sent it away, which needs no explanation."""
    if session.reason == OUTDATED:
        return None
    if ctx.stopping.is_set():
        return "stopping"
    return "silent" if pings.unanswered else "closed"


class Pings:
    """What the pings of one connection say of the way to the agent."""

    def __init__(self) -> None:
        self._lately: deque[float] = deque(maxlen=60)
        self.unanswered = False

    def answered(self, seconds: float) -> None:
        self._lately.append(seconds)

    def reading(self) -> dict[str, Any] | None:
        """Median milliseconds, and the share of answers so late that a packet was lost on the way; None: none yet."""
        if not self._lately:
            return None
        usual = min(self._lately)
        late = sum(1 for seconds in self._lately if seconds - usual >= LATE_PONG)
        return {
            "round_trip_ms": round(1000 * statistics.median(self._lately), 2),
            "loss_percent": round(100 * late / len(self._lately), 1),
        }


async def _ping(session: Session, pings: Pings) -> None:
    while not session.is_closed:
        await trio.sleep(PING_INTERVAL)
        try:
            pings.answered(await session.ping(PING_TIMEOUT))
        except RpcClosed as error:
            pings.unanswered = not session.is_closed
            session.close(error.message)


async def _keep_looking(place: AgentPlace, session: Session, look: Callable[[], Awaitable[AgentPlace | None]]) -> None:
    while not session.is_closed:
        await trio.sleep(CONNECTION_UPDATE_FREQUENCY.total_seconds())
        try:
            current = await look()
        except Exception as error:
            # A database that is away for a moment must not send every agent away.
            _log.warn("an agent's right to its link was not looked at", agent=place.agent.id, error=repr(error))
            continue
        if current is None:
            _log.info("a link with an agent's token that is good no longer is closed", agent=place.agent.id)
            session.close(OUTDATED)


async def _mark(ctx: Context, place: AgentPlace, stay: UUID, pings: Pings) -> AgentPlace | None:
    return await ctx.db.run(_touch, ctx.clock.now(), place, stay, pings.reading())


async def _mark_connected(
    tx: Tx, now: datetime, place: AgentPlace, stay: UUID, api_version: str, began: datetime
) -> str:
    """The name of the template, when this is the first time."""
    await disconnects.note_return(tx, place, began, now)
    await agent_store.mark_connected(tx, place.agent.id, stay, now, api_version=api_version)
    await agent_store.update_agent(tx, place.agent.id, disconnected_at=None)
    await _tell(tx, place)
    if place.agent.first_connected_at is not None:
        return ""
    template = await template_store.get_template(tx, place.template_id)
    return template.name if template else ""


async def _touch(
    tx: Tx, now: datetime, place: AgentPlace, stay: UUID, path: dict[str, Any] | None
) -> AgentPlace | None:
    current = await find_again(tx, place)
    if current is not None and current.agent.id == place.agent.id:
        await agent_store.mark_connected(tx, place.agent.id, stay, now, path=path)
    return current


async def _mark_disconnected(tx: Tx, now: datetime, place: AgentPlace, stay: UUID, ended: Ended | None) -> None:
    # Later than the last sign of life even when both fall into one tick of a coarse clock.
    if not await agent_store.mark_disconnected(tx, place.agent.id, stay, now + timedelta(microseconds=1)):
        return  # it has come back, perhaps to another replica: what it tells of the moment between is heard there
    if ended is not None:
        await disconnects.note_disconnect(tx, place, ended, now)
    await _tell(tx, place)


async def _tell(tx: Tx, place: AgentPlace) -> None:
    await notify_change(
        tx, "connection", owner_id=place.owner_id, workspace_id=place.workspace_id, agent_id=place.agent.id
    )
