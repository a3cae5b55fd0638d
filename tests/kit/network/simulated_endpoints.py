"""Endpoints over a simulated network: UDP that carries datagrams up to a size, a relay that carries everything.

Lives here: machines, the network between them, a stack that only remembers. Does not live here: what they do (tests).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.endpoint import Endpoint
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.peers.peer import PeerParameters
from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.wire import ip
from coder.mesh.core.wire.batch import Batch, TxBuf

REGION = 7


class FakeStack:
    """Remembers what came in; sends what the test queued."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.paused: set[bytes] = set()
        self.mtus: dict[bytes, int | None] = {}
        self.changes: list[bytes] = []
        self.resets: list[bytes] = []
        self.queue: list[tuple[bytes, list[bytes]]] = []
        self.bulk: list[tuple[bytes, list[bytes]]] = []

    def input_batch(self, packets: list[bytes], now: float) -> None:
        self.received += packets

    @property
    def idle(self) -> bool:
        return not (self.bulk or self.queue)

    def emit(self, txbuf: TxBuf, now: float) -> Batch | None:
        if not self.bulk:
            return None
        destination, packets = self.bulk.pop(0)
        size = len(packets[0])
        layout = txbuf.layout(size)
        for i, packet in enumerate(packets):
            layout.plain[i][: len(packet)] = packet
        return Batch(destination, len(packets), size, len(packets[-1]))

    def take_output(self, now: float) -> list[tuple[bytes, list[bytes]]]:
        queue, self.queue = self.queue, []
        return queue

    def next_wake(self) -> float | None:
        return None

    def path_changed(self, destination: bytes, now: float) -> None:
        self.changes.append(destination)

    def set_mtu_to(self, destination: bytes, mtu: int | None) -> None:
        self.mtus[destination] = mtu

    def pause(self, destination: bytes) -> None:
        self.paused.add(destination)

    def resume(self, destination: bytes) -> None:
        self.paused.discard(destination)

    def reset_peer(self, destination: bytes, now: float) -> None:
        self.resets.append(destination)

    def on_timer(self, now: float) -> None:
        pass


class Machine:
    """One endpoint and its sink."""

    def __init__(
        self,
        world: SimulatedNetwork,
        number: int,
        *,
        direct: bool = True,
        real: bool = False,
        settings: TcpSettings | None = None,
    ) -> None:
        self.world = world
        self.udp_address: Address = (f"203.0.113.{number}", 1000 + number)
        self.overlay = bytes([0xFD, 0x7A, *bytes(13), number])
        self.stack = FakeStack()
        self.tcp = Stack([self.overlay], random.Random(number).randbytes, settings=settings)
        "Used instead with `real`."
        private = PrivateKey(bytes([number]) * 32)
        self.endpoint = Endpoint(
            private,
            PrivateKey(bytes([100 + number]) * 32),
            self.tcp if real else self.stack,
            self,
            random.Random(number).randbytes,
            wall_offset=1.7e9,
            direct=direct,
        )
        self.key = private.public
        self.answers: list[tuple[PingAnswered, int]] = []
        self.wanted = 0
        self.alive: list[PublicKey] = []
        self.paths: list[tuple[PathState, Address | None]] = []
        self.sent_udp = 0
        self.sent_relay = 0
        self.relay_is_long = False
        self.refuses_beyond = 1 << 16
        "Bytes of the largest datagram its operating system sends."

    def config(self, **changes: Any) -> PeerParameters:
        values: dict[str, Any] = {
            "public_key": self.key,
            "disco_key": self.endpoint.disco_key,
            "allowed_ips": (self.overlay,),
            "home_derp": REGION,
            "endpoints": (self.udp_address,),
        }
        return PeerParameters(**(values | changes))

    def packet(self, to: Machine, text: bytes) -> bytes:
        return ip.header(59, self.overlay, to.overlay, len(text)) + text

    def say(self, to: Machine, *texts: bytes) -> None:
        self.stack.queue.append((to.overlay, [self.packet(to, text) for text in texts]))
        self.endpoint.flush(self.world.now)

    def heard(self) -> list[bytes]:
        return [packet[40 : 40 + int.from_bytes(packet[4:6], "big")] for packet in self.stack.received]

    # Sink
    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        if any(len(datagram) > self.refuses_beyond for datagram in datagrams):
            return False
        self.sent_udp += len(datagrams)
        for datagram in datagrams:
            self.world.send_udp(self.udp_address, to, bytes(datagram))
        return True

    def udp_batch(self, batch: memoryview, segment: int, to: Address) -> bool:
        return self.udp([bytes(batch[at : at + segment]) for at in range(0, len(batch), segment)], to)

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        self.sent_relay += len(packets)
        self.world.send_relay(region, self.key, to, [bytes(packet) for packet in packets])
        return not self.relay_is_long

    def stun(self, datagram: bytes) -> None:
        raise AssertionError("nobody sends STUN here")

    def ping_answered(self, answer: PingAnswered, peer: PublicKey, region: int) -> None:
        self.answers.append((answer, region))

    def needs_endpoints(self) -> None:
        self.wanted += 1

    def peer_alive(self, peer: PublicKey) -> None:
        self.alive.append(peer)

    def path_changed(self, peer: PublicKey, state: PathState, address: Address | None) -> None:
        self.paths.append((state, address))


class SimulatedNetwork:
    """A network with delays; `passes` says which datagrams survive."""

    def __init__(self) -> None:
        self.now = 0.0
        self.machines: list[Machine] = []
        self.flying: list[tuple[float, int, Callable[[], None]]] = []
        self.serial = itertools.count()
        self.passes: Callable[[Address, Address, bytes], bool] = lambda source, to, datagram: True
        self.largest = 1312
        "Bytes of the largest datagram the network carries."

    def add(self, number: int, **kwargs: Any) -> Machine:
        machine = Machine(self, number, **kwargs)
        self.machines.append(machine)
        machine.endpoint.set_own_endpoints([machine.udp_address], 0.0, 1e9)
        return machine

    def send_udp(self, source: Address, to: Address, datagram: bytes) -> None:
        machine = next((m for m in self.machines if m.udp_address == to), None)
        if machine is not None and len(datagram) <= self.largest and self.passes(source, to, datagram):
            size = len(datagram)
            receive = machine.endpoint.receive_udp
            self._later(0.01, lambda: receive(bytearray(datagram), size, size, source, self.now), machine)

    def send_relay(self, region: int, source: bytes, to: bytes, packets: list[bytes]) -> None:
        machine = next((m for m in self.machines if m.key == to), None)
        if machine is not None:
            receive = machine.endpoint.receive_relay
            self._later(0.04, lambda: receive(region, bytes(source), packets, self.now), machine)

    def _later(self, delay: float, deliver: Callable[[], None], machine: Machine) -> None:
        def arrive() -> None:
            deliver()
            machine.endpoint.flush(self.now)

        self.flying.append((self.now + delay, next(self.serial), arrive))
        self.flying.sort(key=lambda item: item[:2])

    def run(self, until: float) -> None:
        while True:
            wakes = [m.endpoint.next_wake() for m in self.machines]
            times = [at for at in wakes if at is not None] + [item[0] for item in self.flying[:1]]
            at = min(times, default=until)
            if at > until:
                break
            self.now = max(self.now, at)
            if self.flying and self.flying[0][0] <= self.now:
                self.flying.pop(0)[2]()
                continue
            if not times:
                break
            for machine in self.machines:
                wake = machine.endpoint.next_wake()
                if wake is not None and wake <= self.now:
                    machine.endpoint.on_timer(self.now)
        self.now = until


def acquainted(world: SimulatedNetwork, *, real: bool = False, **changes: Any) -> tuple[Machine, Machine]:
    one, two = world.add(1, real=real), world.add(2, real=real)
    one.endpoint.set_peer(two.config(**changes), 0.0)
    two.endpoint.set_peer(one.config(**changes), 0.0)
    return one, two


def state(machine: Machine, of: Machine) -> PathState:
    return machine.endpoint.peers[of.key].paths.selector.state
