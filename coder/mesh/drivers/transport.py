"""Dialer interface for relay connections, implemented by code with an HTTP client.

The mesh does not know HTTP, proxies or certificates. It receives a dialer and gets back a byte stream on which the
upgrade has been done already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import trio

from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion


@dataclass(frozen=True, slots=True)
class DerpTransport:
    """A byte stream to a relay, ready for the first DERP frame."""

    stream: trio.abc.Stream
    leftover: bytes = b""
    """Bytes that were read together with the HTTP answer."""
    forced_websocket: str = ""
    """Reason why the dialer could not use the plain upgrade; empty when it worked."""
    kind: str = "upgrade"
    """Kind of connection to the relay: `upgrade`, `websocket` or `stream`."""


class DerpDialer(Protocol):
    """Opens relay connections. Raises RelayError (or OSError, trio.BrokenResourceError) when it cannot."""

    async def __call__(self, region: DerpRegion, node: DerpNode, /) -> DerpTransport:
        """Connect to a node of a region, within ten seconds."""
        ...


class LatencyProbe(Protocol):
    """Measures a relay by `GET /derp/latency-check`. Raises as DerpDialer does."""

    async def __call__(self, region: DerpRegion, node: DerpNode, /) -> float:
        """Return the seconds from request to answer, connection set-up excluded."""
        ...
