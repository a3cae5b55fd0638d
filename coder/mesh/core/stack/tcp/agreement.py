"""What the two SYNs of a connection agreed on.

Lives here: the outcome. Does not live here: how it is negotiated (handshake.py).
Obeys: RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2.
"""

from __future__ import annotations

FIRST_MSS = 536
"""RFC 9293 3.7.1 says 1220 for IPv6 when the peer names none; only used until its SYN is read."""
_LEAST_MSS = 64
"""Ours: a peer that names less would make us send mostly headers; no path is that narrow."""


class Agreement:
    """Options in force; they never change once both SYNs are known."""

    __slots__ = ("peer_mss", "peer_packet", "rcv_scale", "sack", "snd_scale", "timestamps")

    def __init__(self) -> None:
        self.timestamps = False
        "Every segment carries timestamps (RFC 7323: Snd.TS.OK)."
        self.sack = False
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
        self.timestamps = timestamps
        self.sack = sack
        if snd_scale is None:
            self.rcv_scale = self.snd_scale = 0  # RFC 7323 2.2: both scale or none does
        else:
            self.snd_scale = snd_scale
        if mss is not None:
            self.peer_mss = max(mss, _LEAST_MSS)
        self.peer_packet = packet
