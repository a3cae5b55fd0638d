"""Which region carries relayed packets to a peer, and which connections deserve to live.

Obeys docs/protocol/derp.md, "What a client does". Connections themselves are made by `drivers/derp_client.py`.
"""

from __future__ import annotations

# docs/protocol/derp.md#what-a-client-does. A relay keeps a queue for each connection, so one that nobody uses is given
# back; the home one stays, as others find us there.
IDLE_CLOSE = 60.0
"""Seconds after which an unused connection to a region that is not home is closed."""
# A quarter of the limit: a connection lives at most so much longer than it should, and looking costs nothing.
IDLE_SCAN = 15.0


class RelayRoutes:
    """Learnt routes: peer key -> the region it was last heard through."""

    __slots__ = ("_regions",)

    def __init__(self) -> None:
        self._regions: dict[bytes, int] = {}

    def learn(self, key: bytes, region: int) -> None:
        """A packet of this (installed) peer came through the region."""
        # Written for every relayed packet: an assignment is cheaper than asking first whether it changes anything.
        self._regions[key] = region

    def forget(self, key: bytes, region: int | None = None) -> None:
        """The peer left the region (PeerGone), or altogether (None)."""
        # A late notice from the region the peer has left must not undo what was learnt since.
        if region is None or self._regions.get(key) == region:
            self._regions.pop(key, None)

    def forget_region(self, region: int) -> None:
        """The connection to the region broke or was closed."""
        # A peer heard through it is heard through its home next, which it keeps connected.
        for key in [key for key, learnt in self._regions.items() if learnt == region]:
            del self._regions[key]

    def region(self, key: bytes, home: int) -> int:
        """Where to send: the learnt region, else the peer's home (0 when it has none)."""
        # Where it was heard last comes first: a peer that moves tells the coordinator of its new home later than its
        # packets tell us.
        return self._regions.get(key, home)
