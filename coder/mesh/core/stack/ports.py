"""Ephemeral ports.

Obeys: RFC 6056 section 3.3.1 (random start), the range of Linux.
"""

from __future__ import annotations

from collections.abc import Callable

from coder.mesh.core.stack.errors import StackError

# RFC 6056 section 3.2 suggests all from 1024 on; Linux's default leaves the lower ones to listeners.
FIRST = 32_768
LAST = 60_999


def choose_port(random: Callable[[int], bytes], is_free: Callable[[int], bool]) -> int:
    """Return a free port, searched from a random start. Raises StackError("no_ports") when all are taken."""
    size = LAST - FIRST + 1
    start = int.from_bytes(random(4), "big")
    # Step by step from there: each port is tried once, so one round detects that all are taken.
    for step in range(size):
        port = FIRST + (start + step) % size
        if is_free(port):
            return port
    raise StackError("no_ports")
