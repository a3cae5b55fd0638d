"""Free ports for programs that need to know their port before they listen."""

from __future__ import annotations

import random
import socket
import sys
from collections import deque

PORTS = range(15_000, 30_000)
"""Below those that kernels give to whoever names none: several runs of the suite go on beside each other, each asks for
many of those, and the kernel would give ours away again before the program that was told has begun to listen."""
ECHO = 19_099
"""The recorded workspace's web server was there: nobody is given it, so that it is free when that is repeated."""
KEPT = 64
"""Of the ports given last, how many nobody else is given while this process lives: their programs listen by then."""
_CHOICE = random.SystemRandom()  # several processes must not choose alike, and Hypothesis seeds the other one
_CLAIMS: deque[socket.socket] = deque()


def free_port() -> int:
    """A port that was free a moment ago, and that no run beside this one is given."""
    while True:
        port = _CHOICE.choice(PORTS)
        if port == ECHO:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _claimed(port):
            return port


def _claimed(port: int) -> bool:
    """By a name that one process of the machine can have at a time, and that ends with it; Linux alone has those."""
    if sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0coder-test-port-{port}")
    except OSError:
        claim.close()
        return False
    _CLAIMS.append(claim)
    while len(_CLAIMS) > KEPT:
        _CLAIMS.popleft().close()
    return True
