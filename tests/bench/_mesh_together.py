"""Round trips with both ends in one process, over the mesh and over plain TCP on trio: the work alone.

python -m tests.bench._mesh_together COUNT prints one JSON object. Between two processes, each of which sleeps while the
other works, most of a round trip is waking up, and the cost of whatever a core has forgotten meanwhile.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

import trio

ROUNDS = 7


async def measure(count: int) -> dict[str, float]:
    """Medians of `count` round trips of 32 bytes, microseconds; the two kinds alternate."""
    from tests.kit.network.overlay_pair import node_pair

    async def echo(stream: trio.abc.Stream) -> None:
        while data := await stream.receive_some():
            await stream.send_all(data)

    async def trips(stream: trio.abc.Stream) -> float:
        found = []
        for _ in range(count):
            began = time.perf_counter()
            await stream.send_all(bytes(32))
            await stream.receive_some()
            found.append(time.perf_counter() - began)
        return median(found) * 1e6

    async with node_pair() as pair, trio.open_nursery() as nursery:
        there = pair.addresses[1]
        listener = pair.two.tcp_listen(7)
        (plain_listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, echo, [plain_listener])
        mesh = await pair.one.tcp_connect(there, 7)
        nursery.start_soon(echo, await listener.accept())
        plain = await trio.open_tcp_stream("127.0.0.1", plain_listener.socket.getsockname()[1])
        while (await pair.one.ping(there)).via != "direct":
            await trio.sleep(0.05)
        found = [(await trips(mesh), await trips(plain)) for _ in range(ROUNDS)]
        nursery.cancel_scope.cancel()
    return {"mesh_us": median(one for one, _ in found), "plain_us": median(other for _, other in found)}


if __name__ == "__main__":
    print(json.dumps(trio.run(measure, int(sys.argv[1]))))
