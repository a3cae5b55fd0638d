"""A seeded network between two TCP stacks, in virtual time.

Lives here: the link (loss, reordering, duplication, delay, bandwidth, queue, blackouts) and the loop that drives it.
Does not live here: what is sent over it (the tests).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from coder.mesh.core.stack.interface import Stack, TcpSettings, TcpSocket
from coder.mesh.core.wire.batch import TxBuf

A = bytes.fromhex("fd7a115ca1e000000000000000000001")
B = bytes.fromhex("fd7a115ca1e000000000000000000002")
PORT = 7


@dataclass
class Link:
    """One direction."""

    delay: float = 0.01
    loss: float = 0.0
    reorder: float = 0.0
    "Share of packets that take up to `jitter` longer."
    jitter: float = 0.02
    duplicate: float = 0.0
    rate: float = 0.0
    "Bytes per second; 0: no limit."
    queue: int = 256 << 10
    "Bytes before the bottleneck."
    blackouts: list[tuple[float, float]] = field(default_factory=list)
    free_at: float = 0.0
    carried: int = 0
    dropped: int = 0

    def arrivals(self, size: int, now: float, random: Random) -> list[float]:
        """When the copies of a packet sent now arrive."""
        if any(begin <= now < end for begin, end in self.blackouts) or random.random() < self.loss:
            self.dropped += 1
            return []
        at = now
        if self.rate:
            start = max(now, self.free_at)
            if (start - now) * self.rate > self.queue:
                self.dropped += 1
                return []
            self.free_at = at = start + size / self.rate
        at += self.delay
        if random.random() < self.reorder:
            at += random.random() * self.jitter
        self.carried += 1
        if random.random() < self.duplicate:
            return [at, at + random.random() * self.jitter]
        return [at]


class LinkedStacks:
    """Stacks A and B, the two directions between them, and a clock."""

    def __init__(
        self,
        seed: int = 1,
        there: Link | None = None,
        back: Link | None = None,
        settings: TcpSettings | None = None,
        settings_b: TcpSettings | None = None,
        mtu: int = 1280,
        addresses: tuple[bytes, bytes] = (A, B),
    ) -> None:
        self.random = Random(seed)
        self.now = 100.0 + self.random.random()
        self.a = Stack([addresses[0]], self.random.randbytes, mtu, settings)
        self.b = Stack([addresses[1]], self.random.randbytes, mtu, settings_b or settings)
        self.links = {self.a: there or Link(), self.b: back or Link()}
        self.txbuf = TxBuf(mtu)
        self.wire: list[tuple[float, int, Stack, bytes]] = []
        self.sequence = 0
        self.peak = 0
        self.filter: Callable[[Stack, bytes], bool] = lambda _sender, _packet: True
        "Whether a packet gets onto the link; sees everything that is sent."
        self.on_step: Callable[[], None] = lambda: None
        self.jump_at = float("inf")
        "When the clock jumps by two hours."
        self.ahead = {self.a: 0.0, self.b: 0.0}
        "By how much each machine's own clock differs: one that slept alone is ahead from then on."
        self.wake_at: list[float] = []
        "Moments at which an application wants to be looked at, in order."

    def other(self, stack: Stack) -> Stack:
        return self.b if stack is self.a else self.a

    def send(self, sender: Stack, packet: bytes) -> None:
        if not self.filter(sender, packet):
            return
        link = self.links[sender]
        for at in link.arrivals(len(packet), self.now, self.random):
            self.sequence += 1
            heappush(self.wire, (at, self.sequence, self.other(sender), packet))

    def pump(self, stack: Stack) -> None:
        """Everything the stack has to say goes onto its link."""
        rounds = 0
        while stack.pending:
            rounds += 1
            assert rounds < 1000, "a stack that never falls silent"
            while (batch := stack.emit(self.txbuf, self.now + self.ahead[stack])) is not None:
                layout = self.txbuf.layout(batch.size)
                for index in range(batch.packets):
                    size = batch.last if index == batch.packets - 1 else batch.size
                    self.send(stack, bytes(layout.plain[index][:size]))
            for _, packets in stack.take_output(self.now + self.ahead[stack]):
                for packet in packets:
                    self.send(stack, packet)

    def step(self) -> bool:
        """Go to the next thing that happens; False when nothing ever will."""
        self.on_step()
        for stack in (self.a, self.b):
            self.pump(stack)
        wakes = ((stack, stack.next_wake()) for stack in (self.a, self.b))
        times = [wake - self.ahead[stack] for stack, wake in wakes if wake is not None]
        if self.wire:
            times.append(self.wire[0][0])
        while self.wake_at and self.wake_at[0] <= self.now:
            del self.wake_at[0]
        times += self.wake_at[:1]
        if not times:
            return False
        self.now = max(self.now, min(times))
        if self.now >= self.jump_at:
            self.now += 7200
            self.jump_at = float("inf")
        inbound: dict[Stack, list[bytes]] = {self.a: [], self.b: []}
        while self.wire and self.wire[0][0] <= self.now:
            _, _, receiver, packet = heappop(self.wire)
            inbound[receiver].append(packet)
        for stack, packets in inbound.items():
            now = self.now + self.ahead[stack]
            if packets:
                stack.input_batch(packets, now)
            wake = stack.next_wake()
            if wake is not None and wake - self.ahead[stack] <= self.now:
                stack.on_timer(max(now, wake))  # a difference of large numbers may round the other way
        return True

    def run(self, until: Callable[[], bool], limit: float = 12_000.0) -> None:
        """Step until a condition holds; AssertionError when `limit` seconds of the world pass before."""
        end = self.now + limit
        while not until():
            if not self.step():
                # What `on_step` did may have been the last thing to happen: a reader that wakes after everything else.
                assert until(), "the world fell silent before it was done"
                return
            assert self.now < end, f"not done after {limit} s"

    def settle(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.step() and self.now < end:
            pass
        self.now = max(self.now, end)

    def connect(self, port: int = PORT) -> tuple[TcpSocket, TcpSocket]:
        """A finished handshake from A to B: (A's socket, B's socket)."""
        listener = self.b.listeners.get(port) or self.b.tcp_listen(port)
        mine = self.a.tcp_connect(self.b.addresses[0], port, self.now)
        self.run(lambda: listener.readable and mine.connected)
        theirs = listener.accept_nowait()
        assert theirs is not None
        return mine, theirs


class Transfer:
    """Bytes from one socket to the other, checked as they arrive."""

    def __init__(
        self, sender: TcpSocket, receiver: TcpSocket, data: bytes, random: Random, chunk: int = 65_536
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self.data = data
        self.random = random
        self.chunk = chunk
        self.written = 0
        self.read = 0
        self.finish = True

    def step(self, reading: bool = True) -> None:
        """Write what is taken, read what is there."""
        while self.written < len(self.data):
            size = self.random.randint(1, self.chunk)
            taken = self.sender.write_nowait(self.data[self.written : self.written + size])
            self.written += taken
            if not taken:
                break
        if self.finish and self.written == len(self.data) and not self.sender.write_closed:
            self.sender.shutdown_write()
        while reading and self.receiver.unread:
            piece = self.receiver.read_nowait(self.random.randint(1, self.chunk))
            assert piece == self.data[self.read : self.read + len(piece)], "bytes out of place"
            self.read += len(piece)

    @property
    def done(self) -> bool:
        """Whether every byte and the end arrived."""
        return self.read == len(self.data) and (self.receiver.eof or not self.finish)
