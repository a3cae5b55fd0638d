"""Kept HTTP connections: which are still usable, and which requests may be repeated on a fresh one."""

from __future__ import annotations

import select

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods of requests that may be repeated although the server may have processed them (RFC 9110 section 9.2.2)."""


def is_quiet(descriptor: int) -> bool:
    """Return whether nothing has arrived on a socket: what arrives between requests is the server's end of the
    connection."""
    if hasattr(select, "poll"):
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return not poller.poll(0)
    return not select.select([descriptor], [], [], 0)[0]
