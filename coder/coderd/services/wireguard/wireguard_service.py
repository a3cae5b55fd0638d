"""The running WireGuard gateway: its table of clients, kept in step with permissions, and its tunnels to agents.

The table is reloaded whenever the database announces a possible change (triggers of migration 0008) and when the next
client expires. Clients that left the table are cut off at that moment; the audit log follows (`wireguard_audit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.access import authentication
from coder.coderd.services.wireguard import wireguard_audit
from coder.coderd.services.wireguard.wireguard_access import (
    ReachableAgent,
    client_address,
    client_alias,
    of_workspaces,
    targets_of,
)
from coder.coderd.services.wireguard.wireguard_audit import Watched
from coder.coderd.store.wireguard import wireguard_clients as client_store
from coder.coderd.store.wireguard.wireguard_clients import ACTIVE, CHANNEL, WireguardClientRow
from coder.mesh.errors import MeshError
from coder.mesh.gateway import ClientStatus, GatewayClient, WireguardGateway
from coder.mesh.keys import PublicKey
from coder.mesh.node import Node
from coder.tailnet.agent_dialer import IDLE_CHECK, IDLE_TIMEOUT
from coder.tailnet.controller import Controller

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject


REACH_TIMEOUT = 30.0
"Seconds to wait for an agent that a client sends to; the client's next packet retries."
RETRY = 0.5
"Seconds until the table is loaded again after the database did not answer."

_log = get_logger("wireguard")


@dataclass(frozen=True, slots=True)
class Entry:
    """A client as last loaded."""

    row: WireguardClientRow
    targets: Sequence[ReachableAgent]


class WireguardService:
    """The tasks and the table of a running gateway."""

    def __init__(self, ctx: Context, node: Node, controller: Controller, endpoint: str) -> None:
        self.endpoint = endpoint
        "host:port in configurations of clients."
        self.gateway: WireguardGateway
        self._ctx = ctx
        self._node, self._controller = node, controller
        self._watched: list[Watched] = []
        self._is_new = trio.Event()
        self._entries: list[Entry] = []
        self._agents: dict[bytes, UUID] = {}
        "Agent by overlay address, for all agents that any client may reach."
        self._used: dict[UUID, float] = {}
        self._tunnel_requests, self._requested_tunnels = trio.open_memory_channel[bytes](1024)
        self._admitted: dict[bytes, str] = {}

    # -- the table ----------------------------------------------------------------------------------------------------
    async def read_reach(self) -> list[Watched]:
        """Return what each client may reach, according to the database and the policy."""
        clients = await self._ctx.db.read(client_store.list_watched, self._ctx.clock.now())
        owners: dict[UUID, tuple[Subject | None, list[ReachableAgent]]] = {}
        for owner in {client.row.user_id for client in clients if client.standing == ACTIVE}:
            subject = await authentication.user_subject(self._ctx, owner)
            owners[owner] = subject, await targets_of(self._ctx, subject) if subject is not None else []
        watched = []
        for client in clients:
            subject, targets = owners.get(client.row.user_id, (None, []))
            watched.append(Watched(client, subject, of_workspaces(targets, client.row.workspace_ids)))
        return watched

    async def load(self) -> None:
        """Load clients and their targets for `apply`."""
        self._watched = await self.read_reach()
        self._entries = [
            Entry(item.client.row, item.targets) for item in self._watched if item.client.standing == ACTIVE
        ]

    def apply(self, now: datetime) -> datetime | None:
        """Give the gateway all clients that are not expired at `now`; return when the next one expires."""
        active = [entry for entry in self._entries if entry.row.expires_at is None or entry.row.expires_at > now]
        self._agents = {
            address.packed: target.current.agent.id
            for entry in active
            for target in entry.targets
            for address in target.addresses
        }
        self.gateway.set_clients([_gateway_client(entry) for entry in active])
        self._log_changes(active)
        self._forget_agents()
        return min((entry.row.expires_at for entry in active if entry.row.expires_at), default=None)

    def _log_changes(self, active: list[Entry]) -> None:
        present = {entry.row.public_key: entry.row.name for entry in active}
        for key in present.keys() - self._admitted.keys():
            _log.info("client admitted", client=present[key], public_key=PublicKey(key).short)
        for key in self._admitted.keys() - present.keys():
            _log.info("client cut off", client=self._admitted[key], public_key=PublicKey(key).short)
        self._admitted = present

    def _forget_agents(self) -> None:
        """Close tunnels to agents that no client may reach any more."""
        reachable = set(self._agents.values())
        for agent_id in [agent_id for agent_id in self._used if agent_id not in reachable]:
            self._close_tunnel(agent_id)

    async def follow(self) -> None:
        """Reload the table on changes and expiry, until cancelled."""
        async with self._ctx.db.listen(CHANNEL) as notices:
            while True:
                next_expiry = await self._refresh()
                with trio.move_on_after(self._seconds_until(next_expiry)):
                    await notices.receive()
                while notices.statistics().current_buffer_used:
                    notices.receive_nowait()  # one reload covers all of them

    async def _refresh(self) -> datetime | None:
        """Load and apply the table; return when to do it again.

        When the database does not answer, the table stays, except that clients still expire.
        """
        try:
            await self.load()
        except Exception as error:  # the gateway must outlive any failure of the database
            _log.warn("permissions could not be read; retrying", error=error)
            self.apply(self._ctx.clock.now())
            return self._ctx.clock.now() + timedelta(seconds=RETRY)
        self._is_new.set()
        now = self._ctx.clock.now()
        next_expiry = self.apply(now)
        overtaken = any(entry.row.expires_at and entry.row.expires_at <= now for entry in self._entries)
        return now if overtaken else next_expiry  # a client that expired during the load was loaded as active

    async def audit_losses(self) -> None:
        """Write losses to the audit log, until cancelled. Disconnecting a client never waits for the entry."""
        while True:
            await self._is_new.wait()
            self._is_new = trio.Event()
            watched = self._watched
            try:
                while not await wireguard_audit.write_losses(self._ctx, watched):
                    watched = await self.read_reach()  # another replica was first: read which entries are left
            except Exception as error:  # as above
                _log.warn("losses could not be written to the audit log; retrying", error=error)
                await trio.sleep(RETRY)
                self._is_new.set()

    def _seconds_until(self, at: datetime | None) -> float:
        return float("inf") if at is None else max(0.0, (at - self._ctx.clock.now()).total_seconds())

    # -- agents -------------------------------------------------------------------------------------------------------
    def request_tunnel(self, address: bytes) -> None:
        """Request a tunnel to an agent that a client sent a packet to."""
        try:
            self._tunnel_requests.send_nowait(address)
        except trio.WouldBlock:
            self.gateway.peer_lost(address)

    async def open_tunnels(self) -> None:
        """Connect the gateway's node to agents as clients send to them, until cancelled."""
        async with trio.open_nursery() as nursery:
            async for address in self._requested_tunnels:
                nursery.start_soon(self._connect, address)

    async def _connect(self, address: bytes) -> None:
        agent_id = self._agents.get(address)
        if agent_id is not None:
            self._used[agent_id] = trio.current_time()
            self._controller.add_tunnel(agent_id)
            try:
                with trio.move_on_after(REACH_TIMEOUT):
                    await self._controller.wait_reachable(agent_id)
                    self.gateway.peer_ready(address)
                    return
            except MeshError as error:
                _log.warn("an agent could not be reached for a client", agent=agent_id, error=error)
        self.gateway.peer_lost(address)

    async def drop_idle(self) -> None:
        """Close tunnels that were idle for a while, until cancelled."""
        seen: dict[UUID, int] = {}
        while True:
            await trio.sleep(IDLE_CHECK)
            now = trio.current_time()
            for agent_id in list(self._used):
                moved = self._bytes_of(agent_id)
                if moved != seen.get(agent_id):
                    seen[agent_id], self._used[agent_id] = moved, now
                elif now - self._used[agent_id] > IDLE_TIMEOUT:
                    seen.pop(agent_id, None)
                    self._close_tunnel(agent_id)

    def _bytes_of(self, agent_id: UUID) -> int:
        key = self._controller.public_key_of(agent_id)
        if key is None:
            return 0
        try:
            status = self._node.peer_status(key)
        except MeshError:
            return 0  # the peer was replaced meanwhile
        return status.rx_bytes + status.tx_bytes

    def _close_tunnel(self, agent_id: UUID) -> None:
        del self._used[agent_id]
        self._controller.remove_tunnel(agent_id)

    def status(self, public_key: bytes) -> ClientStatus | None:
        """Return a client's state; None when the client is not admitted."""
        return self.gateway.status(public_key)


def _gateway_client(entry: Entry) -> GatewayClient:
    return GatewayClient(
        PublicKey(entry.row.public_key),
        client_address(entry.row.id).packed,
        client_alias(entry.row.id).packed,
        frozenset(address.packed for target in entry.targets for address in target.addresses),
        {target.stable.packed: target.addresses[0].packed for target in entry.targets},
    )


def gateway_of(ctx: Context) -> WireguardService | None:
    """Return the running gateway; None when this server has none."""
    return ctx.services.edge.wireguard
