"""What a flood of garbage initiations does to an established pair: its round trips with and without, on loopback.

python -m tests.bench._mesh_flood SECONDS prints one JSON object. The flood comes from a process of its own, from an
address that belongs to no peer, at RATE datagrams a second.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from statistics import median

import trio

RATE = 20_000
GARBAGE = bytes((1, 0, 0, 0)) + os.urandom(144)


def flood(port: int) -> None:
    """Until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        began, sent = time.monotonic(), 0
        while True:
            due = (time.monotonic() - began) * RATE
            while sent < due:
                try:
                    sock.send(GARBAGE)
                except OSError:
                    pass
                sent += 1
            time.sleep(0.001)


async def measure(seconds: float) -> dict[str, float]:
    from tests.kit.network.overlay_pair import node_pair

    async with node_pair() as pair, trio.open_nursery() as nursery:
        there = pair.addresses[1]
        listener = pair.two.tcp_listen(7)

        async def echo() -> None:
            stream = await listener.accept()
            while data := await stream.receive_some():
                await stream.send_all(data)

        nursery.start_soon(echo)
        stream = await pair.one.tcp_connect(there, 7)
        while (await pair.one.ping(there)).via != "direct":
            await trio.sleep(0.05)

        async def trips() -> tuple[float, float, int]:
            """Median round trip, CPU of both nodes, and round trips in `seconds`."""
            found: list[float] = []
            cpu, end = time.process_time(), time.perf_counter() + seconds
            while (began := time.perf_counter()) < end:
                await stream.send_all(bytes(32))
                await stream.receive_some()
                found.append(time.perf_counter() - began)
            return median(found), time.process_time() - cpu, len(found)

        quiet, flooded, garbage = [], [], []
        dropped = pair.two.endpoint.dropped_strangers
        for _ in range(3):
            before = await trips()
            quiet.append(before[0])
            # This file must not be imported again as it is: the child needs no trio.
            flooder = subprocess.Popen(
                [sys.executable, "-m", "tests.bench._mesh_flood", "--flood", str(pair.two.status().udp_ports[0])]
            )
            try:
                await trio.sleep(0.5)
                count = pair.two.endpoint.dropped_strangers
                during = await trips()
                count = pair.two.endpoint.dropped_strangers - count
            finally:
                flooder.kill()
                flooder.wait()
            flooded.append(during[0])
            # What CPU time there is beyond that of the round trips went into garbage.
            garbage.append((during[1] - before[1] / before[2] * during[2]) / max(count, 1))
            await trio.sleep(0.1)
        dropped = pair.two.endpoint.dropped_strangers - dropped
        nursery.cancel_scope.cancel()
    return {
        "quiet_us": median(quiet) * 1e6,
        "flooded_us": median(flooded) * 1e6,
        "garbage_us": median(garbage) * 1e6,
        "dropped": dropped,
    }


if __name__ == "__main__":
    if sys.argv[1] == "--flood":
        flood(int(sys.argv[2]))
    print(json.dumps(trio.run(measure, float(sys.argv[1]))))
