"""Replicas, the other server processes on this database: their liveness, the mesh of relays, and coordination.

Every replica renews its row; the others consider it dead after `DEAD` seconds, or as soon as it sends a goodbye.
Others reach a replica at `--derp-server-relay-url`. Without the URL its relay stays isolated, which suffices as long as
peers can reach each other directly. The relays authenticate each other by a key in the database.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.proxies.proxies import Replica
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION
from coder.coderd.services.access.authorization import require
from coder.coderd.services.foundation.database_clock import DatabaseClock, skew_of
from coder.coderd.services.foundation.sibling_messages import SiblingAwayError, SiblingMessage, send_message
from coder.coderd.services.foundation.this_process import Sibling, same_machine
from coder.coderd.store.network import replicas as store
from coder.coderd.store.network.replicas import ReplicaRow
from coder.domain.access.policy import Class, Subject
from coder.mesh.relay import DerpServer, DerpTransport, keep_meshed
from coder.tailnet.relay_mesh import RelayMesh

if TYPE_CHECKING:
    from coder.base.clock import Clock
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.foundation.this_replica import ThisReplica
    from coder.coderd.services.network.replica_coordination import Bridge

RENEW = 10.0
DEAD = 35.0
"""Seconds until a replica counts as dead; three renewals may be late."""

MAX_SKEW = 5.0
"""Seconds by which a server's clock may differ from the database's before the health report says so."""

_log = get_logger("replicas")


class Replicas:
    """Other replicas, as this one knows them."""

    def __init__(self, ctx: Context, this_replica: ThisReplica) -> None:
        self._ctx = ctx
        self._me = this_replica
        self.rows: list[ReplicaRow] = []
        self._mesh = RelayMesh()
        self._latency_us = 0
        self._renewed_at: datetime | None = None
        self._sibling_links: dict[UUID, trio.CancelScope] = {}
        self._buried: frozenset[UUID] = frozenset()
        "Siblings whose loss was dealt with."

    async def renew(self, nursery: trio.Nursery) -> None:
        """Write this replica's row, and apply the rows of the others."""
        ctx = self._ctx
        if isinstance(ctx.clock, DatabaseClock):
            await ctx.clock.follow(ctx.db)
        now = ctx.clock.now()
        began = ctx.clock.monotonic()
        row = ReplicaRow(
            self._me.id,
            socket.gethostname(),
            ctx.config.derp_server_region_id,
            ctx.config.derp_server_relay_url,
            self._latency_us,
            self._me.started_at,
            now,
            BUILD_VERSION,
            skew_text(ctx.clock),
        )
        self.rows = await ctx.db.run(store.put_replica, row, self._oldest_alive(now))
        self._renewed_at = now
        self._latency_us = int((ctx.clock.monotonic() - began) * 1e6)
        ctx.services.relay.coordinator.bridge.set_others(other.id for other in self.rows)
        relay = ctx.services.relay.derp
        if relay.server is not None:
            relays = {
                row.id: row.relay_address
                for row in self.rows
                if row.relay_address and not same_machine(row.id, self._me.id)
            }
            self._mesh.set_others(relay.server, relay.mesh_key, relays, nursery)
            self._mesh_siblings(nursery)

    def _oldest_alive(self, now: datetime) -> datetime:
        """Return the time since which living replicas have renewed their rows.

        After an outage of the database, a stop of this process or a step of the database's clock, the first renewal
        finds the rows of all others old. They get until the second one.
        """
        known = self._renewed_at
        was_blind = known is not None and now - known > timedelta(seconds=2 * RENEW)
        return (known if known is not None and was_blind else now) - timedelta(seconds=DEAD)

    def _mesh_siblings(self, nursery: trio.Nursery) -> None:
        relay, siblings = self._ctx.services.relay.derp, self._ctx.process.siblings
        if relay.server is None:
            return
        for replica, scope in list(self._sibling_links.items()):
            if replica not in siblings:
                scope.cancel()
                del self._sibling_links[replica]
        for replica, sibling in siblings.items():
            if replica not in self._sibling_links:
                scope = self._sibling_links[replica] = trio.CancelScope()
                nursery.start_soon(_keep_sibling_linked, relay.server, relay.mesh_key, sibling, scope)

    def siblings_changed(self, nursery: trio.Nursery) -> None:
        """Link new siblings' relays, and lose the peers of siblings that ended without a goodbye."""
        self._mesh_siblings(nursery)
        for lost in self._ctx.process.lost - self._buried:
            self._ctx.services.relay.coordinator.bridge.replica_ended(lost)
        if self._ctx.process.has("loops"):
            for lost in self._ctx.process.lost - self._buried:
                nursery.start_soon(self._delete_row, lost)
        self._buried |= self._ctx.process.lost

    async def _delete_row(self, replica: UUID) -> None:
        try:
            await self._ctx.services.relay.coordinator.bridge.publish_end_of(replica)
            await self._ctx.db.run(store.delete_replica, replica)
        except Exception as error:
            # Others notice the stale row.
            _log.warn("the row of a lost process was not deleted", error=error)


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: join the other replicas until the server stops. Needs the relay and the coordinator."""
    replicas = ctx.services.relay.replicas
    bridge = ctx.services.relay.coordinator.bridge
    async with trio.open_nursery() as nursery:
        await nursery.start(bridge.listen)
        nursery.start_soon(bridge.send_notices)
        await replicas.renew(nursery)
        bridge.announce()
        task_status.started()
        ctx.process.on_change.append(partial(replicas.siblings_changed, nursery))
        replicas.siblings_changed(nursery)
        nursery.start_soon(_keep_renewing, replicas, bridge, nursery)
        await ctx.stopping.wait()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):  # everything else is being cancelled
            await _say_goodbye(ctx, bridge)
        nursery.cancel_scope.cancel()


async def _say_goodbye(ctx: Context, bridge: Bridge) -> None:
    try:
        await bridge.say_goodbye()
        await ctx.db.run(store.delete_replica, ctx.services.this_replica.id)
    except Exception as error:
        # The others notice the stale row. Running requests must not be interrupted for it.
        _log.warn("the goodbye to other replicas could not be sent", error=error)


async def _keep_renewing(replicas: Replicas, bridge: Bridge, nursery: trio.Nursery) -> None:
    while True:
        # Packets between clients of two relays are lost until the relays are linked.
        with trio.move_on_after(RENEW):
            await bridge.replica_started.wait()
        bridge.replica_started = trio.Event()
        try:
            await replicas.renew(nursery)
        except Exception as error:
            # The database may be down for a moment; the row may be stale for the others by then.
            _log.warn("this replica's row was not renewed", error=error)


async def _keep_sibling_linked(server: DerpServer, mesh_key: str, sibling: Sibling, scope: trio.CancelScope) -> None:
    """Keep this process's relay linked to that of a sibling."""

    async def dial() -> DerpTransport:
        try:
            return DerpTransport(await send_message(sibling.socket_path, SiblingMessage("relay")))
        except SiblingAwayError as error:
            raise OSError("the sibling cannot be reached") from error

    with scope:
        await keep_meshed(server, dial, mesh_key)


async def list_replicas(ctx: Context, subject: Subject) -> list[Replica]:
    """Return the living replicas, one for each server: its processes are no replicas for users. Raises NotFound without
    permission."""
    require(subject, "read", Class("replicas"))
    replicas = ctx.services.relay.replicas
    began = ctx.clock.monotonic()
    rows = await ctx.db.read(store.list_replicas, ctx.clock.now() - timedelta(seconds=DEAD))
    latency = int((ctx.clock.monotonic() - began) * 1e6)
    me = ctx.services.this_replica
    rows = one_of_each_machine(rows or replicas.rows)
    return [
        Replica(
            id=row.id,
            hostname=row.hostname,
            created_at=row.created_at,
            relay_address=row.relay_address,
            region_id=row.region_id,
            error=row.error,
            database_latency=latency if same_machine(row.id, me.id) else row.database_latency_us,
        )
        for row in rows
    ]


def skew_text(clock: Clock) -> str:
    """Return what to say about the difference between this machine's clock and the database's; empty if it is small."""
    seconds = skew_of(clock)
    if abs(seconds) <= MAX_SKEW:
        return ""
    return f"the clock is {abs(seconds):.0f} seconds {'ahead of' if seconds > 0 else 'behind'} the database's"


def one_of_each_machine(rows: Iterable[ReplicaRow]) -> list[ReplicaRow]:
    """Return the first row of each server."""
    kept: list[ReplicaRow] = []
    for row in rows:
        if not any(same_machine(row.id, other.id) for other in kept):
            kept.append(row)
    return kept
