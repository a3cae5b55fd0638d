"""What any request may be at most before its sender is known: parameters of an address, bytes of a body or message."""

from __future__ import annotations

PUBLIC_LIMIT = 64 << 10
"Bytes of a body from anybody: what is meant by these routes fits a hundred times."

MAX_PARAMETERS = 1000
"Of an address, ours. Ten thousand fit into a head, and taking them apart keeps everybody waiting for ten milliseconds."

TOO_MANY_PARAMETERS = (
    b'{"message":"The address has too many parameters.","detail":"At most %d are read."}' % MAX_PARAMETERS
)
"What a client is told of it, with status 414."


def has_too_many(raw: bytes) -> bool:
    """Whether an address has more parameters than anybody means. `raw` may hold its path, too."""
    return raw.count(b"&") >= MAX_PARAMETERS
