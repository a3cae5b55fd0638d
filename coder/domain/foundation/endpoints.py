"""Server endpoints: `host:port`, `192.0.2.1:port`, `[2001:db8::1]:port`.

Lives here: parsing endpoints that people write, with the reasons for refusal. Does not live here: addresses to listen
on (their host may be empty), addresses of the mesh (`mesh/core/wire/address.py`: never names).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from coder.domain.foundation.numbers import decimal

_NAME = re.compile(r"(?=.{1,253}$)(?:[a-zA-Z0-9_](?:[a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?\.)*[a-zA-Z0-9_-]{1,63}\.?")
"""Host names of RFC 1123 section 2.1, with the underscores some name servers have."""
_NUMBERS = re.compile(r"[0-9.]+")
_MAX_PORT = 0xFFFF
SMTP_PORT = 587
"""Port of a mail server named without one: message submission."""


class HostPort(NamedTuple):
    """A host without brackets and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_endpoint(text: str, default_port: int | None = None) -> HostPort:
    """Parse an endpoint; `default_port` is for a text without one. Raises ValueError with the reason, in words for
    users."""
    if "/" in text:
        raise ValueError("it must be a host and a port, without a scheme or a path")
    if default_port is not None and (":" not in text or text.endswith("]")):
        text = f"{text}:{default_port}"
    host, colon, digits = text.rpartition(":")
    if not colon or (host.startswith("[") and not host.endswith("]")):
        raise ValueError("it has no port")
    port = decimal(digits)
    if port is None or not 0 < port <= _MAX_PORT:
        raise ValueError("its port is not a number from 1 to 65535")
    if not host:
        raise ValueError("it has no host")
    return HostPort(_read_host(host), port)


def _read_host(host: str) -> str:
    if host.startswith("["):
        inner = host[1:-1]
        if "%" in inner or not _is_address(IPv6Address, inner):
            raise ValueError("the text in brackets is not an IPv6 address")
        return inner
    if ":" in host:
        raise ValueError("an IPv6 address must stand in brackets, a port behind them")
    if not _NAME.fullmatch(host) or (_NUMBERS.fullmatch(host) and not _is_address(IPv4Address, host)):
        raise ValueError("its host is neither a name nor an address")
    return host


def _is_address(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
