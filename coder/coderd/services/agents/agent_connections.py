"""Presence of agents: times that are stored while a connection lives, and its end.

Source: docs/protocol/rpc.md#agents, docs/protocol/agents.md#presence.

A closed connection ends immediately. A silent machine (frozen, cable unplugged) is pinged every five seconds and has
twelve seconds to answer, so that users see its absence within 17 s. One timer serves all agents.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.exception_groups import single_failure
from coder.base.ids import new_uuid
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.base.retry import SECOND_LOOK, STALL
from coder.coderd.services.agents import disconnects
from coder.coderd.services.agents.agent_access import find_current_agent
from coder.coderd.services.agents.report_batches import Liveness
from coder.coderd.services.foundation.turns import Turns
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents.agents import CurrentAgent
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces.change_feed import notify_change
from coder.domain.agents.agents import CONNECTION_UPDATE_FREQUENCY
from coder.domain.agents.disconnects import Ended
from coder.rpc.session import Session

if TYPE_CHECKING:
    from outcome import Outcome

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

PING_INTERVAL = 5.0
PING_TIMEOUT = 12.0
"""Seconds, our own values: upstream pings every 15 s with a timeout of 30 s."""

LATE_PONG = 0.2
"""Seconds, our own value: TCP's minimum delay of a retransmission, so a later answer was lost once."""

OUTDATED = "build is outdated"
STOPPING = "the server stops"

_log = get_logger("agents")


PINGS = 60
"""Pings of which times are kept: those of five minutes."""


class Pings:
    """Round-trip times of the pings of a connection."""

    __slots__ = ("_next", "_recent")

    def __init__(self) -> None:
        self._recent = array("d")
        "A deque of floats would have two kilobytes."
        self._next = 0

    def answered(self, seconds: float) -> None:
        if len(self._recent) < PINGS:
            self._recent.append(seconds)
        else:
            self._recent[self._next] = seconds
            self._next = (self._next + 1) % PINGS

    def reading(self) -> JsonObject | None:
        """Return the median in milliseconds and the share of retransmissions in percent; None before the first."""
        if not self._recent:
            return None
        fastest = min(self._recent)
        late = sum(1 for seconds in self._recent if seconds - fastest >= LATE_PONG)
        return {
            "round_trip_ms": round(1000 * statistics.median(self._recent), 2),
            "loss_percent": round(100 * late / len(self._recent), 1),
        }


@dataclass(slots=True)
class _Presence:
    id: UUID
    links: int = 0


@dataclass(slots=True, eq=False)
class _Link:
    """Connection of an agent that is pinged and checked."""

    current: CurrentAgent
    session: Session
    presence_id: UUID
    pings: Pings = field(default_factory=Pings)
    asked_at: float | None = None
    "trio time of the ping that waits for its answer."
    is_checking: bool = False
    has_left: bool = False

    @property
    def is_over(self) -> bool:
        return self.has_left or self.session.is_closed

    def answered(self, seconds: float) -> None:
        self.pings.answered(seconds)
        self.asked_at = None


class AgentConnections:
    """Connections of each agent to this process.

    An agent that reconnects may have two for a moment: it has left when the last one ends. The time from the first to
    the last connection is a presence with an id. The end of a presence is ignored once another one has begun, at any
    replica.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.began = ctx.clock.now()
        self._presences: dict[UUID, _Presence] = {}
        self._pings = Turns(PING_INTERVAL, self._ping)
        self._silences = Turns(PING_TIMEOUT, self._judge)
        self._second_looks = Turns(SECOND_LOOK, _close_silent)
        self._checks = Turns(CONNECTION_UPDATE_FREQUENCY.total_seconds(), self._check)
        self._links: set[_Link] = set()
        self._is_running = False

    def begin(self, agent_id: UUID) -> UUID:
        """Count a connection; return the id of its presence, new or existing."""
        presence = self._presences.setdefault(agent_id, _Presence(new_uuid()))
        presence.links += 1
        return presence.id

    def end(self, agent_id: UUID) -> bool:
        """Uncount a connection; return whether it was the last one."""
        self._presences[agent_id].links -= 1
        if self._presences[agent_id].links:
            return False
        del self._presences[agent_id]
        return True

    def is_connected(self, agent_id: UUID) -> bool:
        return agent_id in self._presences

    def supervise(self, link: _Link) -> None:
        """Ping an agent and check its token until it leaves; close its session when the server stops."""
        self._links.add(link)
        self._pings.join(link)
        self._checks.join(link)
        if not self._is_running:
            self._is_running = True
            for turns in (self._pings, self._silences, self._second_looks, self._checks):
                self._ctx.nursery.start_soon(turns.run)
            self._ctx.nursery.start_soon(self._leave_on_stop)
        if self._ctx.stopping.is_set():
            link.session.close(STOPPING)

    def forget(self, link: _Link) -> None:
        """Forget a connection that has ended."""
        link.has_left = True
        self._links.discard(link)

    async def _leave_on_stop(self) -> None:
        await self._ctx.stopping.wait()
        for link in list(self._links):
            link.session.close(STOPPING)

    def _ping(self, link: _Link) -> bool:
        if link.is_over:
            return False
        if link.asked_at is None:
            link.asked_at = trio.current_time()
            self._silences.join((link, link.asked_at))
            link.session.start_ping(link.answered)
        return True

    def _judge(self, asked: tuple[_Link, float]) -> bool:
        """Close the session of an agent that did not answer.

        After a standstill of this process the answer may be unread, so the agent gets a second look.
        """
        if trio.current_time() - asked[1] >= PING_TIMEOUT + STALL:
            self._second_looks.join(asked)
        else:
            _close_silent(asked)
        return False

    def _check(self, link: _Link) -> bool:
        """Record that the link is alive, and close it unless the agent's token is still valid."""
        if link.is_over:
            return False
        if not link.is_checking:
            link.is_checking = True
            report = Liveness(link.current, link.presence_id, link.pings.reading(), self._ctx.clock.now())
            self._ctx.services.api.report_batches.liveness.submit(report, partial(_finish_check, link))
        return True


def _close_silent(asked: tuple[_Link, float]) -> bool:
    link, asked_at = asked
    if link.asked_at == asked_at and not link.is_over:
        link.session.close(f"no answer to a ping within {PING_TIMEOUT:g} s", silent=True)
    return False


def _finish_check(link: _Link, outcome: Outcome[bool]) -> None:
    link.is_checking = False
    try:
        is_valid = outcome.unwrap()
    except Exception as error:
        _log_failed_check(link.current, error)
    else:
        if not is_valid and not link.has_left:
            _close_outdated(link.current, link.session)


def _log_failed_check(known: CurrentAgent, error: Exception) -> None:
    # A short outage of the database must not disconnect every agent.
    _log.warn("an agent's token could not be checked", agent=known.agent.id, error=repr(error))


def _close_outdated(known: CurrentAgent, session: Session) -> None:
    _log.info("closing a link whose agent token is no longer valid", agent=known.agent.id)
    session.close(OUTDATED)


@asynccontextmanager
async def track_connection(
    ctx: Context, current: CurrentAgent, session: Session, api_version: str
) -> AsyncIterator[None]:
    """Mark the agent connected for the duration of the block, and ping it.

    The session of a silent agent is closed, and that of an agent whose token is no longer valid.
    """
    connections = ctx.services.api.agent_connections
    presence_id = connections.begin(current.agent.id)
    link = _Link(current, session, presence_id)
    try:
        now = ctx.clock.now()
        template = await ctx.db.run(_mark_connected, now, current, presence_id, api_version, connections.began)
        if current.agent.first_connected_at is None:
            metrics = ctx.services.metrics
            metrics["coderd_agents_first_connection_seconds"].observe(
                max((now - current.agent.created_at).total_seconds(), 0), current.agent.name, template
            )
        connections.supervise(link)
        yield
    finally:
        connections.forget(link)
        if connections.end(current.agent.id):
            with trio.move_on_after(5, shield=True):
                ended = _end_of(ctx, session)
                await ctx.db.run(_mark_disconnected, ctx.clock.now(), current, presence_id, ended)


@asynccontextmanager
async def check_token_during(ctx: Context, current: CurrentAgent, session: Session) -> AsyncIterator[None]:
    """Check the token during a link that uses it in another role; the agent is not marked connected."""

    async def leave_on_stop() -> None:
        await ctx.stopping.wait()
        session.close(STOPPING)

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_checking, ctx, current, session)
            nursery.start_soon(leave_on_stop)
            yield
            nursery.cancel_scope.cancel()


def _end_of(ctx: Context, session: Session) -> Ended | None:
    """Return how a connection ended; None when the server closed it for a known reason."""
    if session.reason == OUTDATED:
        return None
    if ctx.stopping.is_set():
        return "stopping"
    return "silent" if session.is_silent else "closed"


async def _keep_checking(ctx: Context, known: CurrentAgent, session: Session) -> None:
    while not session.is_closed:
        await trio.sleep(CONNECTION_UPDATE_FREQUENCY.total_seconds())
        try:
            is_valid = await ctx.db.read(find_current_agent, known) is not None
        except Exception as error:
            _log_failed_check(known, error)
            continue
        if not is_valid:
            _close_outdated(known, session)


async def _mark_connected(
    tx: Tx, now: datetime, current: CurrentAgent, presence_id: UUID, api_version: str, began: datetime
) -> str:
    """Mark an agent connected; return the name of its template at the first connection, else empty."""
    await disconnects.record_arrival(tx, current, presence_id, api_version, began, now)
    if current.agent.first_connected_at is not None:
        return ""
    template = await system_templates.get_template(tx, current.template_id)
    return template.name if template else ""


async def _mark_disconnected(
    tx: Tx, now: datetime, current: CurrentAgent, presence_id: UUID, ended: Ended | None
) -> None:
    if not await agent_store.mark_disconnected(tx, current.agent.id, presence_id, now):
        return  # the agent reconnected, perhaps to another replica, which gets its report of the gap
    if ended is not None:
        await disconnects.note_disconnect(tx, current, ended, now)
    await _notify(tx, current)


async def _notify(tx: Tx, current: CurrentAgent) -> None:
    await notify_change(
        tx, "connection", owner_id=current.owner_id, workspace_id=current.workspace_id, agent_id=current.agent.id
    )
