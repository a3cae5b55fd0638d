"""Two tunnels over any network: no packet twice, no spinning timer, and recovery once the network works again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device
from tests.kit.network.wireguard_devices import WALL, Pair, Seeded, Side

moves = st.lists(
    st.tuples(
        st.sampled_from(["send", "batch", "wait", "cut", "mend", "half", "repeat", "roam", "load"]),
        st.sampled_from("ab"),
        st.sampled_from([0.0, 0.01, 1.0, 4.9, 5.0, 9.5, 61.0, 121.0, 179.0, 541.0]),
    ),
    max_size=25,
)


class World(Pair):
    """A pair whose timers must stop."""

    def __init__(self) -> None:
        super().__init__(persistent_keepalive=25.0)
        self.serial = 0
        self.random = Seeded(b"loss")

    def run(self, until: float) -> None:
        steps = 0
        while (wakes := [w for s in (self.a, self.b) if (w := s.device.next_wake()) is not None and w <= until]) != []:
            super().run(max(self.now, min(wakes)))
            steps += 1
            assert steps < 20 + 4 * (until - self.now + 200), "timers do not come to rest"
        self.now = max(self.now, until)

    def move(self, what: str, side: Side, seconds: float) -> None:
        if what in ("send", "batch"):
            for _ in range(1 if what == "send" else 5):
                self.serial += 1
                self.send(side, self.serial.to_bytes(4, "big"))
        elif what == "cut":
            self.lose = lambda *_: True
        elif what == "mend":
            self.lose = lambda *_: False
        elif what == "half":
            self.lose = lambda *_: self.random(1)[0] < 128
        elif what == "repeat" and self.log:
            for _, name, datagram in self.log[-20:]:
                self.carry(self.a if name == "a" else self.b, [datagram])
        elif what == "roam":
            side.place = ("192.0.2.1", self.random(1)[0])
        elif what == "load":
            side.device.always_under_load = not side.device.always_under_load
        self.run(self.now + seconds)


@settings(max_examples=60, deadline=None)
@given(moves)
def test_tunnels_deliver_at_most_once(story: list[tuple[str, str, float]]) -> None:
    world = World()
    for what, name, seconds in story:
        world.move(what, world.a if name == "a" else world.b, seconds)
    for side in (world.a, world.b):
        numbers = [packet[40:44] for packet in side.inbox]
        assert len(numbers) == len(set(numbers))
    world.lose = lambda *_: False
    # Keepalives every 25 s detect expired keys, and the retries after that need two rounds under load.
    world.run(world.now + 60.0)
    for side in (world.a, world.b):
        world.send(side, b"well")
    world.run(world.now + 30.0)
    for side in (world.a, world.b):
        assert side.inbox[-1][40:44] == b"well"


DEVICE = Device(PrivateKey.generate(Seeded(b"fuzzed")), Seeded(b"f"), wall_offset=WALL)


@given(st.binary(max_size=300), st.integers(0, 5), st.integers(1, 200))
def test_device_survives_arbitrary_datagrams(data: bytes, kind: int, segment: int) -> None:
    for datagrams in (data, bytes((kind, 0, 0, 0)) + data):
        received = DEVICE.receive_batch_untrusted(memoryview(datagrams), len(datagrams), segment, ("192.0.2.1", 1), 1.0)
        assert (received.deliveries, received.sends, received.replies, received.events) == ([], [], [], [])


@given(st.integers(0, 2), st.integers(0, 147), st.integers(1, 255), st.integers(0, 148))
def test_device_survives_damaged_messages(which: int, at: int, flip: int, size: int) -> None:
    pair = Pair()
    pair.send(pair.a)
    name, datagram = pair.log[which][1:]
    damaged = bytearray(datagram)
    damaged[at % len(damaged)] ^= flip
    device = (pair.a if name == "b" else pair.b).device
    for datagram in (bytes(damaged), bytes(damaged[:size])):
        received = device.receive_untrusted(datagram, ("203.0.113.1", 1), 2.0)
        assert received.deliveries == [] and received.events == []
