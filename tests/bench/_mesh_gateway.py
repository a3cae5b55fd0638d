"""The gateway for plain WireGuard clients, through its socket: a flood of garbage, and handshakes one after the other.

python -m tests.bench._mesh_gateway SECONDS prints one JSON object. Unlike a mesh endpoint, which knows strangers by
their address, the gateway must compute a MAC over every initiation. Quiet and flooded spells alternate, and medians of
the spells are given. Flood and clients are processes of their own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.mesh.drivers.wireguard_gateway import WireguardGateway
    from tests.kit.network.wireguard_devices import Phone

ROUNDS = 5
CLIENTS = 200
WINDOW = 4
"""Handshakes under way at once: far below what would make the gateway ask for cookies."""


@dataclass(frozen=True)
class Spell:
    """What `seconds` of round trips between a phone and a peer behind the gateway gave."""

    median: float
    cpu: float
    """Of this process: the gateway, its node and the peer's, and the phone."""
    trips: int


async def measure(seconds: float) -> dict[str, float]:
    from coder.mesh.core.crypto.keys import PrivateKey
    from coder.mesh.drivers.wireguard_gateway import open_gateway
    from tests.kit.network.overlay_pair import introduce, node_pair
    from tests.kit.network.wireguard_devices import Phone

    key = PrivateKey.generate(os.urandom)
    async with (
        node_pair(direct=False) as pair,
        open_gateway(pair.one, key, "127.0.0.1", 0, lambda _: None) as gateway,
        trio.open_nursery() as nursery,
    ):
        phone = Phone(gateway)
        await nursery.start(phone.run)
        gateway.set_clients([phone.config()])
        introduce(pair.two, pair.one)
        await _trips(phone, 0.2)
        found = await _under_flood(gateway, phone, seconds)
        nursery.cancel_scope.cancel()
    return found | await _handshakes(seconds)


async def _trips(phone: Phone, seconds: float) -> Spell:
    from tests.kit.network.overlay_pair import address
    from tests.kit.network.wireguard_devices import echo

    question = echo(address(2).packed, bytes(32))
    found: list[float] = []
    cpu, end = time.process_time(), time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await phone.send(question)
        with trio.move_on_after(1) as late:
            await phone.packets.receive()
        if not late.cancelled_caught:
            found.append(time.perf_counter() - began)
    return Spell(median(found), time.process_time() - cpu, len(found))


async def _under_flood(gateway: WireguardGateway, phone: Phone, seconds: float) -> dict[str, float]:
    stats = gateway._device.stats
    quiet: list[float] = []
    flooded: list[float] = []
    each: list[float] = []
    for _ in range(ROUNDS):
        before = await _trips(phone, seconds)
        with _child("tests.bench._mesh_flood", "--flood", str(gateway.port)):
            await trio.sleep(0.5)
            count = stats.malformed
            during = await _trips(phone, seconds)
            count = stats.malformed - count
        quiet.append(before.median)
        flooded.append(during.median)
        # What CPU time there is beyond that of the round trips went into garbage.
        each.append((during.cpu - before.cpu / before.trips * during.trips) / max(count, 1))
        await trio.sleep(0.2)
    return {
        "quiet_us": median(quiet) * 1e6,
        "flooded_us": median(flooded) * 1e6,
        "garbage_us": median(each) * 1e6,
        "refused": stats.malformed,
    }


async def _handshakes(seconds: float) -> dict[str, float]:
    """CPU of a gateway, apart, for each handshake it answers through its socket."""
    from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
    from coder.mesh.drivers.wireguard_gateway import GatewayClient, open_gateway

    each: list[float] = []
    async with open_gateway(_Alone(), PrivateKey.generate(os.urandom), "127.0.0.1", 0, lambda _: None) as gateway:
        for _ in range(ROUNDS):
            words = ["--clients", str(gateway.port), bytes(gateway.public_key).hex(), str(seconds)]
            with _child("tests.bench._mesh_gateway", *words) as clients:
                assert clients.stdout is not None
                keys = json.loads(await trio.to_thread.run_sync(clients.stdout.readline))
                own = [b"\xfd" + number.to_bytes(15, "big") for number in range(2 * CLIENTS)]
                gateway.set_clients(
                    GatewayClient(PublicKey(bytes.fromhex(key)), own[2 * at], own[2 * at + 1], frozenset())
                    for at, key in enumerate(keys)
                )
                cpu = time.process_time()
                _tell(clients)
                answered = int(await trio.to_thread.run_sync(clients.stdout.readline))
                each.append((time.process_time() - cpu) / answered)
        assert not gateway._device.stats.cookies_sent, "it was asked faster than it answers without cookies"
    return {"handshake_us": median(each) * 1e6}


class _Alone:
    """A mesh node without a mesh."""

    def set_router(self, route: object) -> None: ...
    def set_addresses(self, others: object) -> None: ...
    def send_packets(self, address: bytes, packets: list[bytes]) -> bool:
        return False

    def kick(self) -> None: ...


@contextmanager
def _child(module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def clients(port: int, gateway: bytes, seconds: float) -> None:
    """Tells its public keys, waits for a word, then begins handshakes from one socket, a few at a time."""
    from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
    from coder.mesh.core.tunnel.device import Device

    devices = [Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=time.time()) for _ in range(CLIENTS)]
    print(json.dumps([bytes(device.local.public).hex() for device in devices]), flush=True)
    sys.stdin.readline()
    tunnels = [device.add_peer(PublicKey(gateway), 0.0) for device in devices]
    answered, turn, end = 0, 0, time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        sock.settimeout(0.2)
        while time.monotonic() < end:
            # A tunnel's handshakes are a while apart, or the gateway would rightly call the second one too fast.
            began = time.monotonic()
            asked = [tunnels[(turn + at) % CLIENTS] for at in range(WINDOW)]
            turn += WINDOW
            # A client repeats an initiation after REKEY_TIMEOUT (5 s) at the earliest, by its own clock.
            now = time.monotonic() + 6 * (turn // CLIENTS)
            for tunnel in asked:
                sock.send(tunnel.start_handshake(now)[0])
            for _ in asked:
                try:
                    answered += len(sock.recv(2048)) == RESPONSE_SIZE
                except TimeoutError:
                    break
            time.sleep(max(0.0, WINDOW / RATE - (time.monotonic() - began)))
    print(answered, flush=True)


RATE = 500.0
"""Handshakes a second: half of what a gateway takes for load."""
RESPONSE_SIZE = 92


if __name__ == "__main__":
    if sys.argv[1] == "--clients":
        clients(int(sys.argv[2]), bytes.fromhex(sys.argv[3]), float(sys.argv[4]))
    else:
        print(json.dumps(trio.run(measure, float(sys.argv[1]))))
