"""Many idle peers on one node, and floods of handshakes: memory and CPU without sockets, in processes of their own.

python -m tests.bench._mesh_scale memory|idle|handshakes COUNT prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import Any

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.endpoint import Endpoint
from coder.mesh.core.peers.peer import PeerParameters
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.wire.wireguard import RESPONSE_SIZE

HUB = b"\xfd" + bytes(15)
KEEPALIVE = 25.0
WINDOW = 120.0
"""Simulated seconds: five keepalives each way and one new session per peer."""
STEP = 0.1
RENEWAL = 121.0
NO_DISCO = PublicKey(bytes(32))


class Hub:
    """The endpoint under test as its own sink: what it sends goes to the peers' devices."""

    def __init__(self) -> None:
        self.key = PrivateKey.generate(os.urandom)
        stack = Stack([HUB], os.urandom)
        self.sent: list[tuple[PublicKey, bytes]] = []
        self.endpoint = Endpoint(
            self.key,
            PrivateKey.generate(os.urandom),
            stack,
            self,  # type: ignore[arg-type]
            os.urandom,
            wall_offset=time.time(),
        )

    def udp(self, datagrams: Sequence[bytes], to: Any) -> bool:
        return True

    def udp_batch(self, batch: memoryview, segment: int, to: Any) -> bool:
        return True

    def relay(self, region: int, to: PublicKey, packets: Sequence[bytes | memoryview]) -> bool:
        self.sent += [(to, bytes(packet)) for packet in packets]
        return True

    def stun(self, datagram: bytes) -> None: ...
    def ping_answered(self, answer: Any, peer: Any, region: int) -> None: ...
    def needs_endpoints(self) -> None: ...
    def peer_alive(self, peer: Any) -> None: ...
    def path_changed(self, peer: Any, state: Any, address: Any) -> None: ...

    def add(self, key: PublicKey, number: int, now: float) -> None:
        address = b"\xfe" + bytes(7) + number.to_bytes(8, "big")
        self.endpoint.set_peer(PeerParameters(key, NO_DISCO, (address,), 1, (), keepalive=True), now)


class Spoke:
    """A peer: a device that knows only the hub."""

    def __init__(self, hub: Hub, number: int, now: float) -> None:
        self.device = Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=time.time())
        self.key = self.device.local.public
        self.tunnel = self.device.add_peer(hub.key.public, now, allowed=[HUB])
        hub.add(self.key, number, now)

    def hear(self, datagram: bytes, now: float) -> list[bytes]:
        return [sent for _, sent in self.device.receive_untrusted(datagram, b"hub", now).sends]


def _meet(hub: Hub, spoke: Spoke, now: float) -> None:
    """A session, begun by the spoke and confirmed."""
    waiting = spoke.tunnel.start_handshake(now)
    while waiting:
        hub.endpoint.receive_relay(1, spoke.key, waiting, now)
        hub.endpoint.flush(now)
        waiting = []
        for to, datagram in hub.sent:
            if to == spoke.key:
                waiting += spoke.hear(datagram, now)
        hub.sent.clear()


def _at(number: int) -> float:
    """When a peer joins: slowly enough not to put the hub under load, where it would ask for cookies first."""
    return number / 400


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS")


def memory(count: int) -> dict[str, float]:
    """Resident bytes a peer costs: with one session, and with a new one while the old one may still be needed.

    The other ends are in another process: forgotten here, their memory would be used again and hide ours.
    """
    ours, theirs = Pipe()
    hub = Hub()
    process = get_context("fork").Process(target=_others, args=(theirs, hub.key.public, count), daemon=True)
    process.start()
    keys = [PublicKey(ours.recv()) for _ in range(count)]
    gc.collect()
    before = _resident()
    for number, key in enumerate(keys):
        hub.add(key, number, 0.0)
    found = []
    for begin in (0.0, RENEWAL):
        for number, key in enumerate(keys):
            now = begin + _at(number)
            hub.endpoint.receive_relay(1, key, [ours.recv()], now)
            ours.send(next(datagram for to, datagram in hub.sent if to == key and len(datagram) == RESPONSE_SIZE))
            hub.endpoint.receive_relay(1, key, [ours.recv()], now)
            hub.endpoint.flush(now)
            hub.sent.clear()
        gc.collect()
        found.append((_resident() - before) / count)
    process.join()
    assert all(peer.tunnel.stats.last_handshake > RENEWAL - 1 for peer in hub.endpoint.peers.values())  # type: ignore[operator]
    return {"session": found[0], "renewed": found[1]}


def _others(pipe: Any, hub: PublicKey, count: int) -> None:
    devices = [Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=time.time()) for _ in range(count)]
    tunnels = [device.add_peer(hub, 0.0, allowed=[HUB]) for device in devices]
    for device in devices:
        pipe.send(bytes(device.local.public))
    for begin in (0.0, RENEWAL):
        for number, (device, tunnel) in enumerate(zip(devices, tunnels, strict=True)):
            now = begin + _at(number)
            # The second time the packet itself goes first, under the old keys.
            pipe.send(tunnel.seal([b""], now)[-1])
            answers = device.receive_untrusted(pipe.recv(), b"hub", now).sends
            pipe.send(answers[0][1])


def idle(count: int) -> dict[str, float]:
    """CPU the hub spends in `WINDOW` simulated seconds of keepalives both ways and new keys every two minutes."""
    hub = Hub()
    spokes = {}
    wakes: list[tuple[float, bytes]] = []
    for number in range(count):
        now = _at(number)
        spoke = Spoke(hub, number, now)
        spokes[spoke.key] = spoke
        _meet(hub, spoke, now)
        spoke.tunnel.set_persistent_keepalive(KEEPALIVE, now)
        heappush(wakes, (now, spoke.key))
    gc.collect()
    gc.freeze()
    spent, now = 0.0, _at(count)
    end = now + WINDOW
    while now < end:
        now += STEP
        began = time.process_time()
        wake = hub.endpoint.next_wake()
        if wake is not None and wake <= now:
            hub.endpoint.on_timer(now)
        spent += time.process_time() - began
        sent, hub.sent = hub.sent, []
        heard = [(key, spokes[key].hear(datagram, now)) for key, datagram in sent]
        while wakes[0][0] <= now:
            _, key = heappop(wakes)
            device = spokes[PublicKey(key)].device
            heard.append((PublicKey(key), [datagram for _, datagram in device.on_timer(now).sends]))
            heappush(wakes, (max(device.next_wake() or 0.0, now + STEP), key))
        began = time.process_time()
        for key, datagrams in heard:
            if datagrams:
                hub.endpoint.receive_relay(1, key, datagrams, now)
                hub.endpoint.flush(now)
        spent += time.process_time() - began
    return {"core_percent": spent / WINDOW * 100}


def handshakes(count: int) -> dict[str, float]:
    """Microseconds of CPU to answer an initiation, and to refuse forged ones (a wrong mac1; noise of that size)."""
    hub = Hub()
    spokes = [Spoke(hub, number, 0.0) for number in range(count)]
    initiations = [spoke.tunnel.start_handshake(0.0)[0] for spoke in spokes]
    gc.freeze()
    endpoint = hub.endpoint
    answering = []
    part = max(count // 5, 1)
    for at in range(0, count - part + 1, part):
        began = time.process_time()
        for number in range(at, at + part):
            # One a tick: otherwise the hub rightly thinks itself under load and asks for cookies.
            endpoint.receive_relay(1, spokes[number].key, [initiations[number]], 1 + number * 0.06)
        answering.append((time.process_time() - began) / part)
    forged = initiations[0][:116] + bytes(32)
    known = ("192.0.2.1", 1)
    endpoint._by_address.learn(known, next(iter(endpoint.peers.values())), answered=True)
    refusing: dict[str, list[float]] = {"known": [], "stranger": []}
    buffer = bytearray(forged * 44)
    for _ in range(20):
        for name, source in (("known", known), ("stranger", ("192.0.2.2", 1))):
            began = time.process_time()
            for _ in range(50):
                endpoint.receive_udp(buffer, len(buffer), len(forged), source, 9e9)
            refusing[name].append((time.process_time() - began) / 50 / 44)
    costs = {"answer": answering, **refusing}
    return {f"{name}_us": statistics.median(runs) * 1e6 for name, runs in costs.items()}


if __name__ == "__main__":
    print(json.dumps({"memory": memory, "idle": idle, "handshakes": handshakes}[sys.argv[1]](int(sys.argv[2]))))
