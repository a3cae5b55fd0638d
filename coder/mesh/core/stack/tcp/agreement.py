"""Options that the two SYNs of a connection negotiated.

Lives here: the outcome. Does not live here: the negotiation (handshake.py).
Obeys: RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2.
"""

from __future__ import annotations

FIRST_MSS = 536
"""RFC 9293 3.7.1, for a peer that announces none: 536 for IPv4, 1220 for IPv6. One value for both, as translated IPv4
packets look like IPv6 here, and too small a segment is never wrong."""
_LEAST_MSS = 64
"""Ours: a smaller MSS would make us send mostly headers; no path is that narrow."""


class Agreement:
    """Negotiated options; constant once both SYNs are known."""

    __slots__ = ("peer_mss", "peer_packet", "rcv_scale", "sack", "snd_scale", "timestamps")

    def __init__(self) -> None:
        self.timestamps = False
        "Whether every segment carries timestamps (RFC 7323: Snd.TS.OK)."
        self.sack = False
        # RFC 7323 section 2.2: Rcv.Wind.Shift, and Snd.Wind.Shift below; each direction has its own.
        self.rcv_scale = 0
        "Bits by which the windows we advertise are shifted."
        self.snd_scale = 0
        "Bits by which the peer's windows are shifted."
        self.peer_mss = FIRST_MSS
        self.peer_packet = 0
        "The largest inner packet the peer takes, when it runs this stack too; else 0."

    def offer(self, rcv_scale: int) -> None:
        """Offer all options in an active open; the peer's SYN says which of them it accepts."""
        self.timestamps = self.sack = True
        self.rcv_scale = rcv_scale

    def scale_receiving(self, rcv_scale: int) -> None:
        """Set the scale in a passive open, after the peer's SYN offered window scaling."""
        self.rcv_scale = rcv_scale

    def settle(self, timestamps: bool, sack: bool, snd_scale: int | None, mss: int | None, packet: int) -> None:
        """Apply the options of the peer's SYN; None: the option is absent."""
        # RFC 7323 section 3.2 would have segments without timestamps dropped from here on. They are accepted: the rule
        # protects from an old duplicate, which the tunnel has refused by its counter already.
        self.timestamps = timestamps
        # RFC 2018 section 2: each SYN permits the other side's reports. Here both or neither, so one flag is enough.
        self.sack = sack
        if snd_scale is None:
            self.rcv_scale = self.snd_scale = 0  # RFC 7323 2.2: both scale or neither does
        else:
            self.snd_scale = snd_scale
        # RFC 9293 section 3.7.1: each side's MSS is a limit for the other; nothing is negotiated.
        if mss is not None:
            self.peer_mss = max(mss, _LEAST_MSS)
        self.peer_packet = packet
