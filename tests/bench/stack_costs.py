"""CPU of the TCP/IP stack alone, per packet of a stream and per round trip of a conversation: no tunnel, no sockets.

`python -m tests.bench.stack_costs` prints the table; `measure()` returns rows for scripts/bench. Medians of
several runs.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from typing import Any

from coder.mesh.core.stack.interface import Stack, TcpSettings, TcpSocket
from coder.mesh.core.wire.batch import TxBuf

LEFT, RIGHT = bytes(15) + b"\1", bytes(15) + b"\2"
CHUNK = bytes(65_536)
STREAM = 30_000_000
ROUNDS = 3000
RUNS = 5
Row = dict[str, Any]
clock = time.perf_counter


class Pair:
    """Two stacks joined by function calls, and the time each side spends."""

    def __init__(self, skip_checksums: bool) -> None:
        settings = TcpSettings(skip_checksums=skip_checksums)
        self.now = 100.0
        self.left = Stack([LEFT], os.urandom, settings=settings)
        self.right = Stack([RIGHT], os.urandom, settings=settings)
        self.txbuf = TxBuf()
        listener = self.right.tcp_listen(7)
        self.sender = self.left.tcp_connect(RIGHT, 7, self.now)
        while not listener.readable:
            self.exchange()
        accepted = listener.accept_nowait()
        assert accepted is not None
        self.receiver: TcpSocket = accepted
        self.sending = self.receiving = 0.0
        self.packets = 0

    def outgoing(self, stack: Stack) -> list[bytes]:
        """Everything the stack sends now."""
        out = []
        while (batch := stack.emit(self.txbuf, self.now)) is not None:
            plain = self.txbuf.layout(batch.size).plain
            out += [bytes(view) for view in plain[: batch.packets - 1]]
            out.append(bytes(plain[batch.packets - 1][: batch.last]))
        for _, packets in stack.take_output(self.now):
            out += packets
        return out

    def exchange(self) -> None:
        """One round, both ways, a tenth of a millisecond."""
        self.now += 1e-4
        for stack, other in ((self.left, self.right), (self.right, self.left)):
            other.input_batch(self.outgoing(stack), self.now)
            stack.on_timer(self.now)

    def stream(self) -> None:
        """Send STREAM bytes; copies out of the superbuffer, which a tunnel would seal in place, are not counted."""
        queued = 0
        while self.receiver.received < STREAM:
            begun = clock()
            while queued < STREAM and (taken := self.sender.write_nowait(CHUNK)):
                queued += taken
            self.sending += clock() - begun
            if not self._batch():
                self.exchange()

    def _batch(self) -> bool:
        self.now += 5e-5
        begun = clock()
        batch = self.left.emit(self.txbuf, self.now)
        sent = clock()
        self.sending += sent - begun
        if batch is None:
            return False
        plain = self.txbuf.layout(batch.size).plain
        packets = [bytes(view) for view in plain[: batch.packets]]
        packets[-1] = packets[-1][: batch.last]
        begun = clock()
        self.right.input_batch(packets, self.now)
        while self.receiver.unread:
            self.receiver.read_nowait()
        answers = self.right.take_output(self.now)
        middle = clock()
        for _, acknowledgements in answers:
            self.left.input_batch(acknowledgements, self.now)
        self.receiving += middle - begun
        self.sending += clock() - middle
        self.packets += batch.packets
        return True

    def converse(self) -> float:
        """Seconds per question and answer of 32 bytes, both stacks together."""
        begun = clock()
        for _ in range(ROUNDS):
            self.now += 1e-4
            self.sender.write_nowait(b"q" * 32)
            self.right.input_batch(self.outgoing(self.left), self.now)
            self.receiver.read_nowait()
            self.receiver.write_nowait(b"a" * 32)
            self.now += 1e-4
            self.left.input_batch(self.outgoing(self.right), self.now)
            self.sender.read_nowait()
        return (clock() - begun) / ROUNDS


def measure(*, quick: bool = False) -> list[Row]:
    """Rows of scripts/bench."""
    gc.freeze()
    runs = 3 if quick else RUNS
    rows: list[Row] = []
    for name, skip in (("without checksums", True), ("with checksums", False)):
        sending, receiving = [], []
        for _ in range(runs):
            pair = Pair(skip)
            pair.stream()
            sending.append(pair.sending / pair.packets * 1e6)
            receiving.append(pair.receiving / pair.packets * 1e6)
        target = 2.0 if skip else None
        rows.append(_row(f"stack: send a packet, {name}", statistics.median(sending), target))
        rows.append(_row(f"stack: receive a packet, {name}", statistics.median(receiving), target))
    pair = Pair(True)
    turns = statistics.median(pair.converse() for _ in range(runs))
    rows.append(_row("stack: question and answer, both sides", turns * 1e6, None))
    return rows


def _row(metric: str, value: float, target: float | None) -> Row:
    met = None if target is None else value <= target
    return {
        "metric": metric,
        "value": round(value, 2),
        "unit": "us",
        "better": "lower",
        "peer": None,
        "peer_value": None,
        "ratio": None,
        "target": target,
        "met": met,
    }


if __name__ == "__main__":
    for row in measure():
        print(f"{row['metric']:50} {row['value']:8.2f} {row['unit']}")
