"""Untrusted web addresses: from headers, queries and bodies.

`urllib.parse.urlsplit` raises for some of them (`http://[`), as does reading `port` for others: untrusted input must
not raise in the server.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

_NONE = SplitResult("", "", "", "", "")
_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443"}


def split_untrusted(text: str) -> SplitResult:
    """Return the parts of an address, its port readable; all of them empty for an invalid one."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return _NONE
    return parts


def canonical_host(netloc: str, scheme: str) -> str:
    """Return host and port in the form for comparison: in lower case, without the scheme's own port.

    Browsers leave that port out of Origin and Host; settings and proxies may write it.
    """
    name, colon, port = netloc.lower().rpartition(":")
    is_usual = port == "" or port.lstrip("0") == _PORTS.get(scheme.lower())
    return name if colon and is_usual else netloc.lower()


def host_of_origin(text: str) -> str:
    """Return host and port of an Origin header or another address, as `canonical_host` does.

    Empty for `null` and for an invalid address.
    """
    parts = split_untrusted(text)
    return canonical_host(parts.netloc, parts.scheme)


def shares_cookies(host: str, other: str) -> bool:
    """Return whether a page of one host could set a cookie that browsers send to the other (RFC 6265, section 5.1.3).

    Ports do not matter, since cookies ignore them. Names with the same last two labels count: no list of public
    suffixes is used, so that `a.co.uk` is taken to be near `b.co.uk`.
    """
    host_a, host_b = (split_untrusted(f"//{name}").hostname or "" for name in (host, other))
    if host_a == host_b:
        return True
    if _is_number(host_a) or _is_number(host_b):
        return False
    return "." in host_a and host_a.split(".")[-2:] == host_b.split(".")[-2:]


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
