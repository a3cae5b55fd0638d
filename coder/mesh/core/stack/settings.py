"""Constants of the stack: from specifications, and our own with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

# About 12 KB with the tunnel's packets, which holds most short answers: one round trip instead of two or three.
INITIAL_WINDOW_SEGMENTS = 10
"""RFC 6928."""
DUPLICATE_THRESHOLD = 3
"""RFC 5681, 6675."""
FAST_PATH_RTT = 0.002
"""Ours. Below this round trip all data in flight may sit in the receiver's UDP socket buffer at the same time, so the
burst limit bounds it. Above, the limit grows in proportion (it then is a rate: burst_limit per 2 ms)."""
DEFAULT_BURST_LIMIT = 1 << 20
"""Ours: until the driver sets the true size of its socket buffer."""
SAME_STACK_PACKET = 32_768
"""Ours: the largest inner packet this stack takes from a node with the same stack."""
QUICK_ACKS = 16
"""Segments acknowledged immediately when a connection opens, so that the peer's slow start is not delayed (as Linux).
"""


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Limits and timers of TCP; seconds and bytes."""

    receive_buffer: int = 4 << 20
    "Unread bytes, and the largest window (upstream: 6 MiB)."
    receive_buffer_start: int = 128 << 10
    "The same before the application has read anything; doubled for each half of it that is read, as Linux does it."
    send_buffer: int = 4 << 20
    "Bytes unacknowledged and unsent; the limit grows to it with the congestion window (upstream: 4 MiB)."
    send_buffer_start: int = 512 << 10
    first_rto: float = 1.0
    "RFC 6298."
    min_rto: float = 0.2
    "Ours, as in most stacks: RFC 6298 says 1 s, which is long on a path of 20 ms. 0.2 covers delayed ACKs."
    max_rto: float = 60.0
    "RFC 6298."
    delayed_ack: float = 0.04
    "Same as Linux: RFC 1122 allows 0.5."
    syn_retries: int = 5
    "Same as upstream; 63 s with first_rto 1."
    give_up: float = 924.0
    """Seconds of silence after which unacknowledged data kills a connection (Linux: 15 retries). A laptop may sleep for
    minutes."""
    orphan_give_up: float = 100.0
    """Ours: the same in seconds for a connection whose application has closed it. Its queued data has no further use;
    only memory and retransmissions are at stake. It is the minimum of RFC 9293 section 3.8.3 (R2); Linux gives up after
    eight retries (tcp_orphan_retries), which come to 102 s. A peer that answers window probes and takes nothing gets
    `give_up` instead: its reader may only be slow."""
    # RFC 9293 section 3.4.2 estimates two minutes for a segment's life, and waits for two lives. The tunnel refuses
    # packets older than its keys or behind its window, so Linux's minute is plenty.
    time_wait: float = 60.0
    "Duration of TIME_WAIT, and how long a closed socket waits for the peer's FIN."
    hold_syn: float = 75.0
    "Seconds a fallback may take to decide about a SYN."
    max_held_syns: int = 1024
    max_connections: int = 4096
    "Connections that peers opened, and as many in TIME_WAIT; peers share both (fair_shares.py)."
    max_write: int = 256 << 10
    "A single write may overshoot the send buffer by this much before it is cut; cutting copies."
    skip_checksums: bool = True
    "Whether to leave out inner checksums between nodes with the same stack."
