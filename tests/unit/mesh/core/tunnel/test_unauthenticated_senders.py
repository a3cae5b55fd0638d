"""No state is kept about a sender before its message authentication code is right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.handshake_cookie import mac1_key, mac16
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.address import UdpAddress
from tests.kit.network.simulated_endpoints import SimulatedNetwork, acquainted
from tests.kit.network.wireguard_devices import WALL, Pair, Seeded

FLOOD = 2000


def held_size(root: object) -> int:
    """Return the amount of held data: elements of all containers and bytes of all strings reachable from the object."""
    seen: set[int] = set()
    total = 0
    queue = [root]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type) or callable(item):
            continue
        seen.add(id(item))
        if isinstance(item, bytes | bytearray | str):
            total += len(item)
        elif isinstance(item, dict):
            total += len(item)
            queue += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset) or type(item).__name__ == "deque":
            total += len(item)  # type: ignore[arg-type]
            queue += list(item)  # type: ignore[call-overload]
        elif type(item).__module__.startswith("coder."):
            queue += [
                getattr(item, name)
                for cls in type(item).__mro__
                for name in getattr(cls, "__slots__", ())
                if hasattr(item, name)
            ]
            queue += list(getattr(item, "__dict__", {}).values())
    return total


def noise(random: Random, size: int, kind: int) -> bytes:
    return bytes((kind, 0, 0, 0)) + random.randbytes(size - 4)


def with_mac1(device: Device, message: bytes) -> bytes:
    """Return a message that any sender with our public key can create."""
    return message[:-32] + mac16(mac1_key(device.local.public), message[:-32]) + bytes(16)


def initiation_of_a_stranger(device: Device, number: int) -> bytes:
    """Return an initiation that is genuine in every respect, from an unknown key."""
    stranger = Device(PrivateKey.generate(Seeded(str(number).encode())), Seeded(b"s"), wall_offset=WALL)
    tunnel = stranger.add_peer(device.local.public, 0.0)
    (datagram,) = tunnel.start_handshake(0.0)
    return datagram


FLOODS: dict[str, Callable[[Device, Random, int], bytes]] = {
    "garbage initiation": lambda _d, random, _n: noise(random, 148, 1),
    "garbage response": lambda _d, random, _n: noise(random, 92, 2),
    "garbage cookie reply": lambda _d, random, _n: noise(random, 64, 3),
    "garbage data": lambda _d, random, _n: noise(random, 96, 4),
    "right mac1, garbage inside": lambda device, random, _n: with_mac1(device, noise(random, 148, 1)),
    "right mac1, response to nothing": lambda device, random, _n: with_mac1(device, noise(random, 92, 2)),
    "anything": lambda _d, random, _n: random.randbytes(random.randrange(200)),
}


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.parametrize("under_load", [False, True])
def test_stranger_flood_leaves_no_state(kind: str, under_load: bool) -> None:
    pair = Pair()
    pair.send(pair.a)
    device = pair.b.device
    device.always_under_load = under_load
    random = Random(1)
    # The secret of cookies is drawn once, for the first request.
    device.receive_untrusted(with_mac1(device, noise(random, 148, 1)), ("192.0.2.9", 1), 0.0)
    before = held_size(device)
    for number in range(FLOOD if "mac1" not in kind else FLOOD // 10):
        datagram = FLOODS[kind](device, random, number)
        received = device.receive_untrusted(datagram, (f"10.{number >> 8 & 255}.{number & 255}.1", 1 + number), 1.0)
        assert not received.deliveries and not received.sends and not received.events
    assert held_size(device) == before
    pair.now = 2.0
    device.always_under_load = False
    pair.send(pair.a, b"still here")
    assert pair.b.inbox[-1][40:50] == b"still here"


def test_keyed_strangers_leave_no_state() -> None:
    pair = Pair()
    pair.send(pair.a)
    device = pair.b.device
    before = held_size(device)
    for number in range(60):
        received = device.receive_untrusted(initiation_of_a_stranger(device, number), (f"10.0.0.{number}", 1), 1.0)
        assert not received.sends and not received.replies
    assert held_size(device) == before
    assert device.stats.refused == 60


def test_node_keeps_no_stranger_state() -> None:
    """Disco, WireGuard and noise by UDP and by relay, from unknown addresses and keys."""
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(2.0)
    endpoint = two.endpoint
    random = Random(5)
    stranger = PrivateKey(bytes([77]) * 32)
    box = SharedBox(stranger, endpoint.disco_key)

    def sealed(message: disco.Message) -> bytes:
        return disco.seal(box, stranger.public, random.randbytes(24), message)

    makers: list[Callable[[], bytes]] = [
        lambda: sealed(disco.DiscoPing(random.randbytes(12), stranger.public)),
        lambda: sealed(disco.DiscoPong(random.randbytes(12), UdpAddress("10.1.1.1", 5))),
        lambda: sealed(disco.CallMeMaybe((UdpAddress("10.1.1.1", 5),))),
        lambda: disco.MAGIC + one.endpoint.disco_key + random.randbytes(100),
        lambda: noise(random, 148, 1),
        lambda: noise(random, 96, 4),
        lambda: random.randbytes(random.randrange(1, 200)),
    ]
    parts: list[Any] = [
        endpoint.device,
        endpoint.peers,
        endpoint.routes,
        endpoint._by_address,
        endpoint._disco._by_disco,
        endpoint._actions.timer_queue,
        endpoint._inbound,
        endpoint._actions._waiting_calls,
        endpoint._relay._paused,
    ]
    before = held_size(parts)
    sent = two.sent_udp + two.sent_relay
    for number in range(1400):
        datagram = makers[number % len(makers)]()
        source = (f"172.16.{number >> 8}.{number & 255}", 1 + number)
        endpoint.receive_udp(bytearray(datagram), len(datagram), len(datagram), source, world.now)
        endpoint.receive_relay(7, random.randbytes(32), [datagram], world.now)
        endpoint.flush(world.now)
    assert held_size(parts) == before
    assert two.sent_udp + two.sent_relay == sent, "and gets no answer"


@pytest.mark.parametrize(("size", "kind"), [(148, 1), (92, 2)])
def test_peer_source_needs_authenticated_data(size: int, kind: int) -> None:
    """Forged handshakes fail at mac1; answers of a STUN server, which begin alike, do not count as handshakes."""
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(2.0)
    endpoint = two.endpoint
    stun_messages: list[bytes] = []
    two.stun = stun_messages.append  # type: ignore[assignment, method-assign]
    forged = noise(Random(3), size, kind)
    answer = bytes((kind, 1, 0, size - 20)) + (0x2112A442).to_bytes(4, "big") + bytes(size - 8)
    before = endpoint.device.stats.malformed, endpoint.dropped_strangers
    for source in (one.udp_address, ("198.51.100.1", 3478)):
        for datagram in (forged, answer):
            endpoint.receive_udp(bytearray(datagram), size, size, source, world.now)
    assert stun_messages == [answer, answer]
    assert (endpoint.device.stats.malformed, endpoint.dropped_strangers) == (before[0] + 1, before[1] + 1)
    world.run(200.0)  # the keys are expired
    one.say(two, b"again")
    world.run(202.0)
    assert two.heard()[-1] == b"again", "a genuine initiation from there is answered"
