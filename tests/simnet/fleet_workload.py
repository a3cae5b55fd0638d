"""What happens to a simulated fleet, and the claims that must hold meanwhile (docs/reliability.md)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

import trio

from coder.mesh.errors import UnreachableError
from coder.mesh.node import TcpStream
from coder.tailnet.addresses import agent_address
from coder.tailnet.peers import LOST_TIMEOUT
from tests.kit.network.simulated_fleet import ECHO_PORT, Internet, Machine, Overlay, Server, joined

PAUSE = 4.0
"""Mean seconds between two events."""
LONGEST_OUTAGE = 30.0
"""Seconds without a path, which sessions survive."""
REVOKED_WITHIN = 2.0
SHOWN_WITHIN = 30.0
SETTLE = 120.0
"""Seconds without events, before the end is judged: more than the longest pause between two attempts of anything."""
REACHED_WITHIN = 30.0
_ENDED = (trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(eq=False)
class Agent:
    """An agent's machine and its process, which a rebuild replaces."""

    id: UUID
    machine: Machine
    process: trio.CancelScope = field(default_factory=trio.CancelScope)
    overlay: Overlay | None = None
    generation: int = 0
    restarted_at: float = -1e9


@dataclass(eq=False)
class Client:
    """A client with one session to one agent."""

    id: UUID
    name: str
    agent: Agent
    machine: Machine
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    generation: int = -1
    """The agent's process that the session belongs to; -1 before the session."""
    is_leaving: bool = False
    leaves: trio.Event = field(default_factory=trio.Event)
    revoked_at: float | None = None
    must_be_cut: bool = False
    """Whether the server knew the client when its right ended."""
    sent: int = 0
    received: int = 0
    last_byte_at: float = 0.0
    wants: trio.Event = field(default_factory=trio.Event)
    chance: random.Random = field(default_factory=random.Random)


class Fleet:
    """All of it, for one seed."""

    def __init__(self, seed: int, agents: int, clients: int, note: Callable[[str], None]) -> None:
        self._chance = random.Random(f"workload {seed}")
        self._note_line = note
        self._agent_count = agents
        self._client_count = clients
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self.ended_at = 0.0
        self.agents: list[Agent] = []
        self.clients: list[Client] = []
        self._quiet_since = 0.0
        self._is_quiet = False
        self._disturbances = 0

    # ---- the run

    async def live(self, seconds: float) -> None:
        """Let the workload happen for so long, then let everything settle, judge it, and end it in order."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._internet = Internet()
            nursery.start_soon(self._internet.run)
            self.server = Server(nursery)
            for _ in range(self._agent_count):
                agent = Agent(self._identity(), self._internet.add())
                self.agents.append(agent)
                nursery.start_soon(self._keep_agent, agent)
            with trio.move_on_after(seconds):
                await self._let_things_happen()
            await self._settle()
            await self._judge_connected()
            await self._judge_absent()
            nursery.cancel_scope.cancel()
        self.ended_at = trio.current_time()

    def _identity(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def note(self, text: str) -> None:
        self._note_line(f"{trio.current_time():.6f} {text}")

    def claim(self, holds: bool, text: str) -> None:
        if not holds:
            self.broken.append(f"{trio.current_time():.1f} s: {text}")
            self.note(f"BROKEN {text}")

    # ---- processes

    async def _keep_agent(self, agent: Agent) -> None:
        while True:
            agent.process = trio.CancelScope()
            with agent.process:
                async with (
                    joined(self.server, agent.machine, agent.id, None) as overlay,
                    trio.open_nursery() as nursery,
                ):
                    agent.overlay = overlay
                    agent.generation += 1
                    listener = overlay.node.tcp_listen(ECHO_PORT)
                    self.note(f"agent {agent.id.hex[:4]} runs, generation {agent.generation}")
                    while True:
                        nursery.start_soon(self._echo, await listener.accept())
            agent.machine.hang_up()
            agent.overlay = None
            await trio.sleep(1)

    async def _echo(self, stream: TcpStream) -> None:
        try:
            async for data in stream:
                await stream.send_all(data)
            await stream.send_eof()
        except _ENDED:
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _client_life(self, client: Client) -> None:
        try:
            with client.scope:
                async with joined(self.server, client.machine, client.id, client.agent.id) as overlay:
                    overlay.controller.add_tunnel(client.agent.id)
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._work, client, overlay, nursery.cancel_scope)
                        await client.leaves.wait()
                        nursery.cancel_scope.cancel()
        finally:
            client.machine.hang_up()
            self.clients.remove(client)
            self.note(f"{client.name} has gone")

    async def _work(self, client: Client, overlay: Overlay, scope: trio.CancelScope) -> None:
        stream = await self._open_session(client, overlay)
        try:
            await self._use_session(client, stream)
        finally:
            await trio.aclose_forcefully(stream)
        scope.cancel()

    async def _open_session(self, client: Client, overlay: Overlay) -> TcpStream:
        since = trio.current_time()
        while True:
            generation = client.agent.generation
            with trio.move_on_after(REACHED_WITHIN):
                try:
                    await overlay.controller.wait_reachable(client.agent.id)
                    stream = await overlay.node.tcp_connect(agent_address(client.agent.id), ECHO_PORT)
                    client.generation = generation
                    self.counts["sessions"] += 1
                    self.note(f"{client.name} has a session after {trio.current_time() - since:.3f} s")
                    return stream
                except (UnreachableError, *_ENDED) as error:
                    self.note(f"{client.name} cannot connect: {type(error).__name__}")
                    await trio.sleep(0.5)
            since_quiet = trio.current_time() - self._quiet_since
            self.claim(
                not self._is_quiet or since_quiet < REACHED_WITHIN * 2 or client.revoked_at is not None,
                f"{client.name} does not reach its agent although nothing hinders it",
            )

    async def _use_session(self, client: Client, stream: TcpStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, client, stream, nursery.cancel_scope)
            while True:
                with trio.move_on_after(client.chance.expovariate(1 / 5)):
                    await client.wants.wait()
                client.wants = trio.Event()
                size = client.chance.choice((1, 30, 700, 20_000, 120_000))
                text = _pattern(client.sent, size)
                client.sent += size
                try:
                    await stream.send_all(text)
                except _ENDED:
                    return  # the reader says why

    async def _read(self, client: Client, stream: TcpStream, scope: trio.CancelScope) -> None:
        try:
            async for data in stream:
                now = trio.current_time()
                if client.revoked_at is not None and client.must_be_cut:
                    self.claim(
                        now <= client.revoked_at + REVOKED_WITHIN,
                        f"{client.name} gets bytes {now - client.revoked_at:.1f} s after its right ended",
                    )
                self.claim(
                    data == _pattern(client.received, len(data)), f"{client.name} reads other bytes than it sent"
                )
                client.received += len(data)
                client.last_byte_at = now
                self.counts["bytes"] += len(data)
            how = "was closed"
        except _ENDED as error:
            how = f"broke ({type(error).__name__}: {error.__cause__ or error})"
        excused = client.is_leaving or client.revoked_at is not None or client.generation != client.agent.generation
        excused = excused or client.agent.overlay is None
        self.note(f"session of {client.name} {how}")
        self.claim(excused, f"the session of {client.name} {how} without a cause")
        scope.cancel()

    # ---- events

    async def _let_things_happen(self) -> None:
        events: dict[Callable[[], Awaitable[None]], int] = {
            self._arrive: 40,
            self._leave: 8,
            self._kill: 4,
            self._type: 30,
            self._roam: 10,
            self._cut_path: 10,
            self._cut_machine: 8,
            self._lose_datagrams: 6,
            self._restart_server: 5,
            self._revoke: 6,
            self._rebuild: 4,
        }
        while True:
            await trio.sleep(self._chance.expovariate(1 / PAUSE))
            (event,) = self._chance.choices(list(events), list(events.values()))
            self.counts["events"] += 1
            await event()

    def _some_client(self) -> Client | None:
        present = [client for client in self.clients if client.revoked_at is None and not client.is_leaving]
        return self._chance.choice(present) if present else None

    def _some_machine(self) -> Machine:
        machines = [agent.machine for agent in self.agents] + [client.machine for client in self.clients]
        return self._chance.choice(machines)

    def _for_a_while(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        async def disturb() -> None:
            self._disturbances += 1
            begin()
            await trio.sleep(self._chance.uniform(0.5, LONGEST_OUTAGE))
            end()
            self._disturbances -= 1

        self._nursery.start_soon(disturb)

    async def _arrive(self) -> None:
        if len(self.clients) >= self._client_count:
            return
        self.counts["clients"] += 1
        name = f"client {self.counts['clients']}"
        client = Client(self._identity(), name, self._chance.choice(self.agents), self._internet.add())
        client.chance.seed(self._chance.random())
        self.clients.append(client)
        self.note(f"{name} arrives for {client.agent.id.hex[:4]}")
        self._nursery.start_soon(self._client_life, client)

    async def _leave(self) -> None:
        client = self._some_client()
        if client is not None:
            self._end(client)

    async def _kill(self) -> None:
        client = self._some_client()
        if client is not None:
            self.note(f"{client.name} is killed")
            client.is_leaving = True
            client.scope.cancel()

    def _end(self, client: Client) -> None:
        self.note(f"{client.name} leaves")
        client.is_leaving = True
        client.leaves.set()

    async def _type(self) -> None:
        client = self._some_client()
        if client is not None:
            client.wants.set()

    async def _roam(self) -> None:
        machine = self._some_machine()
        self.counts["roamed"] += 1
        machine.roam()
        self.note(f"a machine is now at {machine.address}")

    async def _cut_path(self) -> None:
        client = self._some_client()
        if client is None:
            return
        pair = frozenset((client.machine.address, client.agent.machine.address))
        self.counts["paths cut"] += 1
        self.note(f"no direct path between {sorted(pair)}")
        self._for_a_while(lambda: self._internet.blocked.add(pair), lambda: self._internet.blocked.discard(pair))

    async def _cut_machine(self) -> None:
        machine = self._some_machine()
        self.counts["machines cut off"] += 1
        self.note(f"{machine.address} is cut off")

        def begin() -> None:
            machine.is_offline = True
            machine.hang_up()

        self._for_a_while(begin, lambda: setattr(machine, "is_offline", False))

    async def _lose_datagrams(self) -> None:
        share = self._chance.uniform(0.005, 0.1)
        chance = random.Random(self._chance.random())
        self.note(f"{share:.3f} of the datagrams are lost")
        internet = self._internet

        def begin() -> None:
            internet.loses = lambda: chance.random() < share

        def end() -> None:
            internet.loses = lambda: False

        self._for_a_while(begin, end)

    async def _restart_server(self) -> None:
        if self.server.is_down:
            return
        self.counts["server restarts"] += 1
        self.note("the server is killed")
        self._for_a_while(self.server.stop, self.server.start)

    async def _revoke(self) -> None:
        client = self._some_client()
        if client is None or self.server.is_down:
            return
        self.counts["revoked"] += 1
        client.must_be_cut = self.server.knows(client.id) and not client.agent.machine.is_offline
        client.must_be_cut = client.must_be_cut and self.server.coordinator.core.is_present(client.agent.id)
        client.revoked_at = trio.current_time()
        self.note(f"{client.name} loses its right")
        self.server.revoke(client.id, client.agent.id)

        async def give_up() -> None:
            await trio.sleep(LONGEST_OUTAGE)
            client.scope.cancel()

        self._nursery.start_soon(give_up)

    async def _rebuild(self) -> None:
        agent = self._chance.choice(self.agents)
        self.counts["rebuilt"] += 1
        self.note(f"agent {agent.id.hex[:4]} is replaced")
        agent.process.cancel()

    # ---- claims at the end

    async def _settle(self) -> None:
        self.note("everything settles")
        while self._disturbances:
            await trio.sleep(1)
        self._is_quiet, self._quiet_since = True, trio.current_time()
        await trio.sleep(SETTLE)

    async def _judge_connected(self) -> None:
        """Check that every client with a right is served, and that no byte of its stream is missing."""
        for client in self.clients:
            client.wants.set()
        await trio.sleep(SHOWN_WITHIN)
        core = self.server.coordinator.core
        for agent in self.agents:
            self.claim(core.is_present(agent.id), f"agent {agent.id.hex[:4]} is not shown connected")
        for client in self.clients:
            if client.revoked_at is None:
                self.claim(client.generation >= 0, f"{client.name} has no session")
                stale = client.sent - client.received
                self.claim(
                    stale == 0 or trio.current_time() - client.last_byte_at < 10,
                    f"{client.name} waits for {stale} bytes",
                )

    async def _judge_absent(self) -> None:
        """Let all clients leave; check that no peer, tunnel or connection of them remains."""
        for client in list(self.clients):
            self._end(client)
        await trio.sleep(SHOWN_WITHIN)
        core = self.server.coordinator.core
        present = set(core.nodes())
        self.claim(present == {agent.id for agent in self.agents}, f"{len(present)} peers are shown connected")
        self.claim(not core.tunnels(), f"{len(core.tunnels())} tunnels are left")
        self.claim(
            self.server.relay.counters.current == len(self.agents),
            f"{self.server.relay.counters.current} connections are left at the relay",
        )
        # Agents keep a client that was killed for as long as it could return.
        await trio.sleep(2 * LOST_TIMEOUT)
        for agent in self.agents:
            known = len(agent.overlay.node.peers()) if agent.overlay else 0
            self.claim(known == 0, f"agent {agent.id.hex[:4]} still has {known} peers")


def _pattern(at: int, size: int) -> bytes:
    """Return bytes `at` to `at + size` of the stream that every session sends."""
    first = at % 251
    return (_CYCLE * (size // 251 + 2))[first : first + size]


_CYCLE = bytes(range(251))
