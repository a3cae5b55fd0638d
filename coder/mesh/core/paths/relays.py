"""Relay routes of peers, and the lifetime of relay connections.

Obeys docs/protocol/derp.md, "What a client does". `drivers/derp_client.py` opens the connections.
"""

from __future__ import annotations

# docs/protocol/derp.md#what-a-client-does. A relay keeps a queue for each connection, so an unused one is closed; the
# home connection stays, as peers find us there.
IDLE_CLOSE = 60.0
"""Seconds after which an unused connection to a region that is not home is closed."""
# A quarter of the limit: a connection lives at most so much longer than it should, and checking costs nothing.
IDLE_SCAN = 15.0


class RelayRoutes:
    """Learnt routes: peer key -> the region it was last heard through."""

    __slots__ = ("_regions",)

    def __init__(self) -> None:
        self._regions: dict[bytes, int] = {}

    def learn(self, key: bytes, region: int) -> None:
        """Record that a packet of this (installed) peer came through the region."""
        # Written for every relayed packet: an assignment is cheaper than a comparison first.
        self._regions[key] = region

    def forget(self, key: bytes, region: int | None = None) -> None:
        """Forget a peer that left the region (PeerGone), or all regions (None)."""
        # A late notice from the region the peer has left must not undo a newer route.
        if region is None or self._regions.get(key) == region:
            self._regions.pop(key, None)

    def forget_region(self, region: int) -> None:
        """Forget the routes of a region whose connection broke or was closed."""
        # A peer heard through it is heard through its home next, which it keeps connected.
        for key in [key for key, learnt in self._regions.items() if learnt == region]:
            del self._regions[key]

    def region(self, key: bytes, home: int) -> int:
        """Return the region for sending: the learnt region, else the peer's home (0 when it has none)."""
        # The learnt region comes first: a moved peer reports its new home to the coordinator later than its packets
        # arrive here.
        return self._regions.get(key, home)
