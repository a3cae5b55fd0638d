"""Events of peers that belong to no socket."""

from __future__ import annotations

from typing import NamedTuple


class TsmpAnswer(NamedTuple):
    """A peer answered a TSMP ping."""

    source: bytes
    token: bytes


class EchoReply(NamedTuple):
    """A peer answered an ICMPv6 echo request."""

    source: bytes
    identifier: int
    sequence: int
    payload: bytes


class Unreachable(NamedTuple):
    """A peer cannot deliver what we sent to a port."""

    destination: bytes
    port: int


class TooBig(NamedTuple):
    """A packet to this destination exceeded a link's MTU."""

    destination: bytes
    mtu: int


StackEvent = TsmpAnswer | EchoReply | Unreachable | TooBig
