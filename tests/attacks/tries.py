"""What a try is: a kind with a name of its own, the process it is aimed at, and the steps of a client on the wire.

A kind is a different way to be wrong, not the same way with another number.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Mark = Literal["read", "half", "reset", "close", "pause"]
Step = bytes | Mark
Carrier = Literal["tcp", "tls", "raw-tls"]

PATIENCE = 0.4
"""Seconds to wait for bytes of the server in one step: a try is over after its steps, answered or not."""
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class WireTry:
    """Bytes on a new connection. `{token}` and `{host}` in them are replaced."""

    name: str
    process: str
    steps: tuple[Step, ...]
    carrier: Carrier = "tcp"


def wire(process: str, name: str, *steps: Step, carrier: Carrier = "tcp") -> WireTry:
    return WireTry(name, process, steps, carrier)


def play(stream: socket.socket, steps: Sequence[Step]) -> bytes:
    """Take the steps; return what the server sent. The end of the connection ends the try."""
    received = b""
    stream.settimeout(PATIENCE)
    try:
        for step in steps:
            if isinstance(step, bytes):
                stream.sendall(step)
            elif step == "read":
                received += _read(stream)
            elif step == "half":
                stream.shutdown(socket.SHUT_WR)
            elif step == "pause":
                time.sleep(PAUSE)
            elif step == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
            else:
                break
        else:
            received += _read(stream)
    except OSError:
        pass  # the server has closed, or waits for more
    finally:
        stream.close()
    return received


def _read(stream: socket.socket) -> bytes:
    received = b""
    try:
        while piece := stream.recv(1 << 16):
            received += piece
            if len(received) > 1 << 20:
                break
    except TimeoutError:
        pass
    return received
