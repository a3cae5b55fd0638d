"""A fleet on simulated time: real nodes, controllers, RPC sessions, coordinator and relay; the network is simulated.

Lives here: the network between machines, the server's coordinator and relay, agents and clients. Does not live here:
what happens to them, and what must hold (tests/simnet/fleet.py). Not simulated: HTTP, the database, workspaces' builds.
The process must have been prepared by `tests/kit/network/simulated_time.py` before the mesh was imported.
"""

from __future__ import annotations

import heapq
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import trio
import trio.testing

import coder.mesh.drivers.netcheck as netcheck_module
import coder.mesh.node as node_module
from coder.coderd.services.network.coordinator import Coordinator
from coder.coderd.services.network.tailnet_rpc import TailnetPeer, TailnetService
from coder.domain.network.coordination_rules import AgentAccess, ClientAccess
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.interfaces import Network
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.pump import Pump
from coder.mesh.drivers.transport import DerpTransport
from coder.mesh.node import Node, NodeConfig, open_node
from coder.rpc.session import Session, open_session
from coder.tailnet.addresses import agent_addresses, random_address
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.reconnect import keep_coordinated

REGION = 999
MAP = DerpMap(
    {REGION: DerpRegion(REGION, "coder", "Coder", (DerpNode("999b", REGION, "127.0.0.1", stun_port=-1),), True)}
)
PORT = 41_641
ECHO_PORT = 7
LATENCY = 0.01
"""Seconds of a datagram between two machines."""

_machine: ContextVar[Machine] = ContextVar("machine")


@dataclass(eq=False)
class Machine:
    """A machine with one address, which changes when it roams."""

    internet: Internet
    address: str
    is_offline: bool = False
    links: set[PipeStream] = field(default_factory=set)
    """Its connections to server and relay."""
    changed: trio.Event = field(default_factory=trio.Event)
    receive: Callable[[bytes, Address], None] | None = None

    @property
    def network(self) -> Network:
        return Network((self.address,), (self.address,))

    def roam(self) -> None:
        """Move to another network: the address is another one, and connections from the old one are dead."""
        del self.internet.machines[self.address]
        self.address = self.internet.new_address()
        self.internet.machines[self.address] = self
        self.hang_up()
        self.changed.set()
        self.changed = trio.Event()

    def hang_up(self) -> None:
        """Break the connections to server and relay."""
        for link in list(self.links):
            link.close()
        self.links.clear()


class Internet:
    """All machines, and which datagrams arrive."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.blocked: set[frozenset[str]] = set()
        """Pairs of addresses without a direct path."""
        self.loses: Callable[[], bool] = lambda: False
        self._numbers = itertools.count(1)
        self._serial = itertools.count()
        self._flying: list[tuple[float, int, Machine, bytes, Address]] = []
        self._more = trio.Event()

    def new_address(self) -> str:
        number = next(self._numbers)
        return f"203.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def add(self) -> Machine:
        machine = Machine(self, self.new_address())
        self.machines[machine.address] = machine
        return machine

    def send(self, source: Machine, to: Address, datagram: bytes) -> None:
        target = self.machines.get(to[0])
        if target is None or to[1] != PORT or source.is_offline or target.is_offline or self.loses():
            return
        if frozenset((source.address, target.address)) in self.blocked:
            return
        at = trio.current_time() + LATENCY
        heapq.heappush(self._flying, (at, next(self._serial), target, datagram, (source.address, PORT)))
        self._more.set()

    async def run(self) -> None:
        """Deliver datagrams for ever."""
        while True:
            if not self._flying:
                self._more = trio.Event()
                await self._more.wait()
            await trio.sleep_until(self._flying[0][0])
            while self._flying and self._flying[0][0] <= trio.current_time():
                _, _, target, datagram, source = heapq.heappop(self._flying)
                if target.receive is not None and not target.is_offline:
                    target.receive(datagram, source)


class SimulatedPump(Pump):
    """A pump whose socket is a machine of the simulated network."""

    def open_sockets(self, port: int) -> None:
        self._machine = _machine.get()
        self._machine.receive = self._receive

    def _receive(self, datagram: bytes, source: Address) -> None:
        size = len(datagram)
        self.endpoint.receive_udp(bytearray(datagram), size, size, source, self._clock())
        self.kick()

    def reopen_sockets(self) -> None:
        return  # the port stays, as one that the caller chose

    def close_sockets(self) -> None:
        self._machine.receive = None

    def port(self, family: socket.AddressFamily) -> int:
        return PORT if family == socket.AF_INET else 0

    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        for datagram in datagrams:
            self._machine.internet.send(self._machine, to, bytes(datagram))
        return True

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        return self.udp([bytes(batch[at : at + segment]) for at in range(0, len(batch), segment)], to)


async def _network_changed(before: Network) -> Network:
    machine = _machine.get()
    while machine.network == before:
        await machine.changed.wait()
    return machine.network


def replace_network() -> None:
    """Let nodes of this process use the simulated network and clock."""
    replaced: list[tuple[object, str, object]] = [
        (node_module, "Pump", SimulatedPump),
        (netcheck_module, "current_network", lambda: _machine.get().network),
        (netcheck_module, "wait_network_changed", _network_changed),
        (netcheck_module, "elapsed", trio.current_time),
    ]
    for module, name, value in replaced:
        setattr(module, name, value)


class Server:
    """The server's coordinator and relay; both can be replaced by new ones, as after a restart."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.revoked: set[tuple[UUID, UUID]] = set()
        """(client, agent): rights that ended."""
        self.is_down = False
        self.watched: dict[UUID, set[UUID]] = {}
        """Lost clients and the agents of their tunnels, as `absent_clients.py` remembers them."""
        self.links: set[PipeStream] = set()
        self.relay_links: set[PipeStream] = set()
        self.start()

    def start(self) -> None:
        """Begin with an empty coordinator and relay."""
        services = SimpleNamespace(relay_map=SimpleNamespace(current=MAP, proxies={}), relay=SimpleNamespace())
        ctx: Any = SimpleNamespace(services=services, clock=None)
        self.ctx = ctx
        replica: Any = SimpleNamespace(id=uuid4())
        self.coordinator = Coordinator(ctx, replica)
        services.relay.coordinator = self.coordinator
        self.relay = DerpServer(PrivateKey.generate(os.urandom))
        self.watched.clear()
        self.is_down = False

    def stop(self) -> None:
        """Break every connection without a goodbye."""
        self.is_down = True
        for link in [*self.links, *self.relay_links]:
            link.close()
        self.links.clear()
        self.relay_links.clear()

    def knows(self, client: UUID) -> bool:
        """Return whether this server would pass on the end of a client's rights."""
        return self.coordinator.core.is_present(client) or client in self.watched

    def revoke(self, client: UUID, agent: UUID) -> None:
        """End a right, as `ClientConnection.close_when_revoked` and `AbsentClients` do."""
        self.revoked.add((client, agent))
        if self.coordinator.core.is_present(client):
            self.coordinator.cut(client)
        if self.watched.pop(client, None):
            self.coordinator.revoke(client, [agent])

    def _left_behind(self, client: UUID, agents: Iterable[UUID]) -> None:
        if any((client, agent) in self.revoked for agent in agents):
            self.coordinator.revoke(client, agents)
        else:
            self.watched.setdefault(client, set()).update(agents)

    def peer_of(self, identity: UUID, agent: UUID | None) -> TailnetPeer:
        """Return the peer that a client of an agent, or without `agent` the agent itself, is to the coordinator."""
        if agent is None:
            return TailnetPeer(identity, AgentAccess(identity))

        async def check(wanted: UUID) -> str:
            return "no permission" if (identity, wanted) in self.revoked else ""

        left = lambda agents: self._left_behind(identity, agents)  # noqa: E731
        return TailnetPeer(identity, ClientAccess(agent), check_tunnel=check, left_behind=left)

    def _link(self, machine: Machine, links: set[PipeStream]) -> tuple[PipeStream, PipeStream]:
        if self.is_down or machine.is_offline:
            raise OSError("the server does not answer")
        ours, theirs = pipe_pair()
        machine.links.add(ours)
        links.update((ours, theirs))
        return ours, theirs

    async def dial_relay(self, machine: Machine) -> DerpTransport:
        await trio.sleep(LATENCY)
        ours, theirs = self._link(machine, self.relay_links)
        self._nursery.start_soon(self.relay.serve_connection, theirs)
        return DerpTransport(ours)

    @asynccontextmanager
    async def session_of(self, machine: Machine, peer: TailnetPeer) -> AsyncIterator[Session]:
        await trio.sleep(LATENCY)
        ours, theirs = self._link(machine, self.links)
        ctx = self.ctx
        self._nursery.start_soon(self._serve, ctx, theirs, peer)
        try:
            async with open_session(ours, "client") as session:
                yield session
        finally:
            machine.links.discard(ours)
            ours.close()

    async def _serve(self, ctx: Any, stream: PipeStream, peer: TailnetPeer) -> None:
        try:
            async with open_session(stream, "server") as session:
                await session.serve(TailnetService(ctx, peer).handlers())
        finally:
            self.links.discard(stream)


@dataclass
class Overlay:
    """A node of the fleet with its controller."""

    machine: Machine
    node: Node
    controller: Controller


@asynccontextmanager
async def joined(server: Server, machine: Machine, identity: UUID, agent: UUID | None) -> AsyncIterator[Overlay]:
    """Join the overlay as `identity`: as an agent, or as a client of `agent`."""
    token = _machine.set(machine)
    try:
        addresses = agent_addresses(identity) if agent is None else (random_address(),)

        async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
            return await server.dial_relay(machine)

        config = NodeConfig(addresses, MAP, dial)
        role: Any = "destination" if agent is None else "source"
        async with (
            open_node(config) as node,
            open_controller(node, role, number=identity.int & 0xFFFF | 1) as controller,
            trio.open_nursery() as nursery,
        ):
            connect = lambda _token: server.session_of(machine, server.peer_of(identity, agent))  # noqa: E731
            nursery.start_soon(keep_coordinated, controller, connect)
            yield Overlay(machine, node, controller)
            with trio.move_on_after(2):
                await controller.disconnect()
            nursery.cancel_scope.cancel()
    finally:
        _machine.reset(token)
