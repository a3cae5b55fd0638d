"""Bounds of any request before its sender is known: parameters of an address, bytes of a body or message."""

from __future__ import annotations

PUBLIC_LIMIT = 64 << 10
"""Bytes of an unauthenticated body: a hundred times the size that these routes need."""

MAX_PARAMETERS = 1000
"""Ours: parameters of an address. A head can hold ten thousand, and parsing them blocks the process for ten
milliseconds."""

TOO_MANY_PARAMETERS = (
    b'{"message":"The address has too many parameters.","detail":"At most %d are read."}' % MAX_PARAMETERS
)
"""Response body, with status 414."""


def has_too_many(raw: bytes) -> bool:
    """Return whether an address has too many parameters. `raw` may contain its path, too."""
    return raw.count(b"&") >= MAX_PARAMETERS
