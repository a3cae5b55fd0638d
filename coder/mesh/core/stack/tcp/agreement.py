"""What the two SYNs of a connection agreed on.

Lives here: the outcome. Does not live here: how it is negotiated (handshake.py).
Obeys: RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2.
"""

from __future__ import annotations

FIRST_MSS = 536
"""RFC 9293 3.7.1, for a peer that names none: 536 for IPv4, 1220 for IPv6. One number for both, as translated IPv4
packets look like IPv6 here, and too small a segment is never wrong."""
_LEAST_MSS = 64
"""Ours: a peer that names less would make us send mostly headers; no path is that narrow."""


class Agreement:
    """Options in force; they never change once both SYNs are known."""

    __slots__ = ("peer_mss", "peer_packet", "rcv_scale", "sack", "snd_scale", "timestamps")

    def __init__(self) -> None:
        self.timestamps = False
        "Every segment carries timestamps (RFC 7323: Snd.TS.OK)."
        self.sack = False
        # RFC 7323 section 2.2: Rcv.Wind.Shift, and Snd.Wind.Shift below; each direction has its own.
        self.rcv_scale = 0
        "By how many bits windows we advertise are shifted."
        self.snd_scale = 0
        "By how many bits windows of the peer are."
        self.peer_mss = FIRST_MSS
        self.peer_packet = 0
        "The largest inner packet the peer takes, when it runs this stack too; else 0."

    def offer(self, rcv_scale: int) -> None:
        """We open actively and offer everything; what the peer takes of it is read from its SYN."""
        self.timestamps = self.sack = True
        self.rcv_scale = rcv_scale

    def scale_receiving(self, rcv_scale: int) -> None:
        """We open passively: the peer's SYN told whether windows may be scaled."""
        self.rcv_scale = rcv_scale

    def settle(self, timestamps: bool, sack: bool, snd_scale: int | None, mss: int | None, packet: int) -> None:
        """Take what the peer's SYN has; None: it does not have the option."""
        # RFC 7323 section 3.2 would have segments without timestamps dropped from here on. They are taken: what the
        # rule protects from, an old duplicate, the tunnel has refused by its counter already.
        self.timestamps = timestamps
        # RFC 2018 section 2: each SYN allows the other side's reports. Here both or none, so one flag says it.
        self.sack = sack
        if snd_scale is None:
            self.rcv_scale = self.snd_scale = 0  # RFC 7323 2.2: both scale or none does
        else:
            self.snd_scale = snd_scale
        # RFC 9293 section 3.7.1: each side's MSS is a limit for the other and nothing is negotiated.
        if mss is not None:
            self.peer_mss = max(mss, _LEAST_MSS)
        self.peer_packet = packet
