"""CPU per packet, handshake and peer of the tunnel alone: no sockets, no stack.

`python -m tests.bench.tunnel_costs` prints the table; `measure()` returns rows for scripts/bench.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.tunnel.peer import Tunnel
from coder.mesh.core.wire.batch import MAX_SLOTS, Batch, TxBuf

SOURCE = ("192.0.2.1", 1)
LEFT, RIGHT = b"\xfd" * 16, b"\xfe" * 16
Row = dict[str, Any]


def _device() -> Device:
    return Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=time.time())


def _connected() -> tuple[Device, Tunnel]:
    """The receiving device, and the tunnel that sends to it."""
    sender, receiver = _device(), _device()
    tunnel = sender.add_peer(receiver.local.public, 0.0, allowed=[RIGHT])
    receiver.add_peer(sender.local.public, 0.0, allowed=[LEFT])
    answer = receiver.receive_untrusted(tunnel.start_handshake(0.0)[0], SOURCE, 0.0).sends[0][1]
    confirm = sender.receive_untrusted(answer, SOURCE, 0.0).sends[0][1]
    receiver.receive_untrusted(confirm, SOURCE, 0.0)
    return receiver, tunnel


def _packet(size: int) -> bytes:
    return b"\x60\0\0\0" + (size - 40).to_bytes(2, "big") + b"\x06\x40" + LEFT + RIGHT + bytes(size - 40)


def _cost(step: Callable[[], object], per: int, repeat: int) -> float:
    """Microseconds of CPU per item, the median of five runs."""
    runs = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(repeat):
            step()
        runs.append((time.process_time() - start) / repeat / per * 1e6)
    return statistics.median(runs)


def _bulk(size: int, repeat: int) -> list[Row]:
    receiver, tunnel = _connected()
    txbuf = TxBuf(size)
    layout, packet = txbuf.layout(size), _packet(size)
    batch = Batch(RIGHT, MAX_SLOTS, size, size)

    def fill() -> None:
        for plain in layout.plain:
            plain[:] = packet

    def seal() -> int:
        return tunnel.seal_into(txbuf, batch, 1.0)

    def whole() -> None:
        fill()
        receiver.receive_batch_untrusted(txbuf.view, seal(), size + 32, SOURCE, 1.0)

    sealing = _cost(seal, MAX_SLOTS, repeat)
    filling = _cost(fill, MAX_SLOTS, repeat)
    opening = _cost(whole, MAX_SLOTS, repeat) - sealing - filling
    return [_row(f"seal a packet of {size} bytes", sealing), _row(f"open a packet of {size} bytes", opening)]


def _handshakes(count: int) -> list[Row]:
    hub = _device()
    spokes = [_device() for _ in range(count)]
    for spoke in spokes:
        hub.add_peer(spoke.local.public, 0.0)
    outer = [spoke.add_peer(hub.local.public, 0.0) for spoke in spokes]
    start = time.process_time()
    initiations = [tunnel.start_handshake(0.0)[0] for tunnel in outer]
    initiated = time.process_time()
    answers = [hub.receive_untrusted(d, SOURCE, i * 0.01).sends[0][1] for i, d in enumerate(initiations)]
    answered = time.process_time()
    for spoke, answer in zip(spokes, answers, strict=True):
        spoke.receive_untrusted(answer, SOURCE, 0.0)
    finished = time.process_time()
    forged = initiations[0][:116] + bytes(32)
    return [
        _row("handshake: make the first message", (initiated - start) / count * 1e6),
        _row("handshake: read it and answer", (answered - initiated) / count * 1e6),
        _row("handshake: read the answer", (finished - answered) / count * 1e6),
        _row(
            "refuse a first message whose mac1 is wrong",
            _cost(lambda: hub.receive_untrusted(forged, SOURCE, 0.0), 1, 2000),
        ),
    ]


def _row(metric: str, value: float) -> Row:
    return {"metric": f"tunnel: {metric}", "value": round(value, 2), "unit": "us CPU", "better": "lower"}


def measure(*, quick: bool = False) -> list[Row]:
    """Rows of scripts/bench."""
    gc.freeze()
    repeat = 50 if quick else 400
    return [*_bulk(1280, repeat), *_bulk(1420, repeat), *_handshakes(50 if quick else 300)]


if __name__ == "__main__":
    for row in measure():
        print(f"{row['metric']:24} {row['value']:8} {row['unit']}")
