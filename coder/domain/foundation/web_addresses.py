"""Web addresses that somebody else wrote: in headers, queries and bodies.

`urllib.parse.urlsplit` raises for some of them (`http://[`), and reading `port` for others: a server that takes apart
what it was sent must not fail of it.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

_NONE = SplitResult("", "", "", "", "")


def split_untrusted(text: str) -> SplitResult:
    """The parts of an address, its port readable; all of them empty for what is none."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return _NONE
    return parts


def host_of_origin(text: str) -> str:
    """Host and port of an Origin header in lower case; empty for `null` and for what is no address."""
    return split_untrusted(text).netloc.lower()
