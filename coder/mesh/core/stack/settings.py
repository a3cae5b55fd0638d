"""Numbers of the stack: those of specifications, and ours with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

# About 12 KB with the tunnel's packets, which holds most short answers: one round trip instead of two or three.
INITIAL_WINDOW_SEGMENTS = 10
"""RFC 6928."""
DUPLICATE_THRESHOLD = 3
"""RFC 5681, 6675."""
FAST_PATH_RTT = 0.002
"""Ours. Below this round trip whatever is in flight may sit in the receiver's UDP socket buffer at once, so the burst
limit bounds it; above, the limit grows in proportion (it then is a rate: burst_limit per 2 ms)."""
DEFAULT_BURST_LIMIT = 1 << 20
"""Ours: until the driver tells the true size of its socket buffer."""
SAME_STACK_PACKET = 32_768
"""Ours: the largest inner packet this stack takes from a node of its own kind."""
QUICK_ACKS = 16
"""Segments acknowledged at once when a connection begins, so that the peer's slow start is not delayed (as Linux)."""


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Limits and timers of TCP; seconds and bytes."""

    receive_buffer: int = 4 << 20
    "Unread bytes, and the largest window (upstream: 6 MiB)."
    send_buffer: int = 4 << 20
    "Unacknowledged and unsent bytes at most; grows to it with the congestion window (upstream: 4 MiB)."
    send_buffer_start: int = 512 << 10
    first_rto: float = 1.0
    "RFC 6298."
    min_rto: float = 0.2
    "Ours and everybody's: RFC 6298 says 1 s, which is an age on a path of 20 ms. 0.2 covers delayed ACKs."
    max_rto: float = 60.0
    "RFC 6298."
    delayed_ack: float = 0.04
    "As Linux: RFC 1122 allows 0.5."
    syn_retries: int = 5
    "As upstream; 63 s with first_rto 1."
    give_up: float = 924.0
    "Silence after which unacknowledged data kills a connection (Linux: 15 retries). A laptop may sleep for minutes."
    orphan_give_up: float = 100.0
    """Ours: seconds; the same for a connection that its application has closed: what is queued is of no use any more,
    and only memory and retransmissions are at stake. The least RFC 9293 section 3.8.3 allows (R2); Linux gives up after
    eight retries (tcp_orphan_retries), which come to 102 s. A peer that answers window probes and takes nothing gets
    `give_up` instead: its reader may only be slow."""
    # RFC 9293 section 3.4.2 guesses two minutes for a segment's life, and waits for two lives. The tunnel refuses
    # whatever is older than its keys or behind its window, so Linux's minute is plenty.
    time_wait: float = 60.0
    "TIME_WAIT, and how long a closed socket waits for the peer's FIN."
    hold_syn: float = 75.0
    "How long a fallback may think about a SYN."
    max_held_syns: int = 1024
    max_write: int = 256 << 10
    "A single write may overshoot the send buffer by this much before it is cut; cutting copies."
    skip_checksums: bool = True
    "Whether to agree with nodes of our own kind to leave inner checksums out."
