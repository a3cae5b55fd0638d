"""Keepalive interval of a relay connection, adapted to connections that a middlebox cut.

Proxies and firewalls drop idle connections after a while (30 to 600 s are common) and notify neither end, or only the
next sender. Two cuts after about the same silence are no accident: from then on keepalives are sent twice as often.
"""

from __future__ import annotations

FIRST = 45.0
"""Ours, in seconds: below the 60 s that most proxies grant; upstream's relays speak every 60 to 65 s, too late."""
# No middlebox drops connections within a second; shorter silences end for another reason.
LEAST = 1.0
ALIKE = 1.35
"""Two silences count as the same when neither is longer than the other by this factor."""
# Half as long again as the longest of the usual limits, ten minutes.
PROOF = 900.0
"""Seconds a connection must live before longer silences are tried again."""


class Keepalive:
    """Interval of keepalives on an idle connection to a relay. All times in seconds."""

    __slots__ = ("_last_cut", "interval")

    def __init__(self) -> None:
        self.interval = FIRST
        self._last_cut = 0.0

    def on_cut(self, silence: float, lived: float) -> None:
        """Record a silent end of the connection, after `silence` without traffic and `lived` altogether."""
        # The learnt interval may be about a network we have left. One step back at a time, as a wrong one costs a
        # connection.
        if lived > PROOF:
            self.interval = min(FIRST, self.interval * 2)
        # A cut in the middle of a conversation says nothing about silences, and breaks the sequence of two that would.
        if silence < LEAST:
            self._last_cut = 0.0
            return
        last, self._last_cut = self._last_cut, silence
        # Half of the shorter: the middlebox may have started to count a packet later than we did.
        if last and max(last, silence) <= ALIKE * min(last, silence):
            self.interval = max(LEAST / 2, min(self.interval, min(last, silence) / 2))
