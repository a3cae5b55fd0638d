"""Metrics common to the server and a workspace proxy: of the process itself, of its relay, of scrapes."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from coder.appproxy.metrics.metric_families import Declaration, Family

if TYPE_CHECKING:
    from coder.mesh.relay import DerpServer

RELAY: tuple[Declaration, ...] = (
    ("coder_derp_server_accepts_total", "counter", "", "Connections the embedded relay accepted."),
    ("coder_derp_server_clients", "gauge", "", "Clients the relay can pass packets to, here or at another replica."),
    ("coder_derp_server_clients_local", "gauge", "", "Clients that are here."),
    ("coder_derp_server_clients_remote", "gauge", "", "Clients that are at another replica."),
    ("coder_derp_server_home_connections", "gauge", "", "Connections of clients that have their home here."),
    ("coder_derp_server_home_moves_in_total", "counter", "", "Times a client made this relay its home."),
    ("coder_derp_server_home_moves_out_total", "counter", "", "Times a client left for another home."),
    ("coder_derp_server_watchers", "gauge", "", "Other relays that watch the connected peers."),
    ("coder_derp_server_got_ping_total", "counter", "", "Pings of clients."),
    ("coder_derp_server_sent_pong_total", "counter", "", "Answers to pings of clients."),
    ("coder_derp_server_unknown_frames_total", "counter", "", "Frames of a kind the relay does not know."),
    ("coder_derp_server_peer_gone_disconnected_total", "counter", "", "Notices to clients that a peer disconnected."),
    ("coder_derp_server_peer_gone_not_here_total", "counter", "", "Notices to clients that a peer is not connected."),
    ("coder_derp_server_packets_received_kind_total", "counter", "kind", "Packets the relay was given: probes or not."),
    ("coder_derp_server_connections", "gauge", "", "Open connections of the embedded relay."),
    ("coder_derp_server_packets_received_total", "counter", "", "Packets the relay was given."),
    ("coder_derp_server_packets_sent_total", "counter", "", "Packets the relay passed on."),
    ("coder_derp_server_bytes_received_total", "counter", "", "Bytes the relay was given."),
    ("coder_derp_server_bytes_sent_total", "counter", "", "Bytes the relay passed on."),
    ("coder_derp_server_packets_forwarded_in_total", "counter", "", "Packets other replicas passed on to us."),
    ("coder_derp_server_packets_forwarded_out_total", "counter", "", "Packets passed on to other replicas."),
    ("coder_derp_server_packets_dropped_total", "counter", "", "Dropped packets."),
    ("coder_derp_server_packets_dropped_reason_total", "counter", "reason", "Dropped packets by reason."),
    ("coder_derp_server_packets_dropped_type_total", "counter", "type", "Dropped packets by kind: probes or not."),
)
PROCESS: tuple[Declaration, ...] = (
    ("process_cpu_seconds_total", "counter", "", "CPU seconds of this process."),
    ("process_resident_memory_bytes", "gauge", "", "Memory of this process."),
    ("process_virtual_memory_bytes", "gauge", "", "Address space of this process."),
    ("process_virtual_memory_max_bytes", "gauge", "", "Address space allowed."),
    ("process_network_receive_bytes_total", "counter", "", "Bytes of IP packets received where this process runs."),
    ("process_network_transmit_bytes_total", "counter", "", "Bytes of IP packets sent where this process runs."),
    ("process_open_fds", "gauge", "", "Open file descriptors."),
    ("process_max_fds", "gauge", "", "File descriptors allowed."),
    ("process_start_time_seconds", "gauge", "", "When this process started, in Unix seconds."),
)
SCRAPES: tuple[Declaration, ...] = (
    ("promhttp_metric_handler_requests_total", "counter", "code", "Scrapes by HTTP status code."),
    ("promhttp_metric_handler_requests_in_flight", "gauge", "", "Scrapes being answered."),
)
_STARTED = time.time()


def set_process(families: Mapping[str, Family]) -> None:
    """Set the kernel's current figures of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    families["process_cpu_seconds_total"].set(usage.ru_utime + usage.ru_stime)
    families["process_start_time_seconds"].set(round(_STARTED, 2))
    families["process_max_fds"].set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    families["process_virtual_memory_max_bytes"].set(2**64 - 1 if allowed == resource.RLIM_INFINITY else allowed)
    try:
        received, sent = _network_bytes(Path("/proc/self/net/netstat").read_text())
        families["process_network_receive_bytes_total"].set(received)
        families["process_network_transmit_bytes_total"].set(sent)
        pages = Path("/proc/self/statm").read_text().split()
        families["process_open_fds"].set(sum(1 for _ in Path("/proc/self/fd").iterdir()))
    except OSError:  # only Linux reports it there
        return
    size = resource.getpagesize()
    families["process_virtual_memory_bytes"].set(int(pages[0]) * size)
    families["process_resident_memory_bytes"].set(int(pages[1]) * size)


def set_relay(families: Mapping[str, Family], relay: DerpServer | None) -> None:
    """Set the totals of the embedded relay; nothing without one."""
    if relay is None:
        return
    counters, present = relay.counters, relay.presence()
    dropped = counters.dropped_unknown + counters.dropped_queue
    for name, value in (
        ("accepts_total", counters.connections),
        ("clients", present.here + present.elsewhere),
        ("clients_local", present.here),
        ("clients_remote", present.elsewhere),
        ("home_connections", present.homes),
        ("home_moves_in_total", counters.moves_in),
        ("home_moves_out_total", counters.moves_out),
        ("watchers", present.watchers),
        ("got_ping_total", counters.pings),
        ("sent_pong_total", counters.pings),
        ("unknown_frames_total", counters.unknown_frames),
        ("peer_gone_disconnected_total", counters.notified_disconnected),
        ("peer_gone_not_here_total", counters.notified_not_here),
        ("connections", counters.current),
        ("packets_received_total", counters.received),
        ("packets_sent_total", counters.sent),
        ("packets_forwarded_in_total", counters.forwarded_in),
        ("packets_forwarded_out_total", counters.forwarded_out),
        ("packets_dropped_total", dropped),
        ("bytes_received_total", counters.bytes_received),
        ("bytes_sent_total", counters.bytes_sent),
    ):
        families[f"coder_derp_server_{name}"].set(value)
    reasons = families["coder_derp_server_packets_dropped_reason_total"]
    reasons.set(counters.dropped_unknown, "unknown_dest")
    reasons.set(counters.dropped_queue, "queue_head")
    for name, whole, probes in (
        ("packets_received_kind_total", counters.received, counters.received_disco),
        ("packets_dropped_type_total", dropped, counters.dropped_disco),
    ):
        families[f"coder_derp_server_{name}"].set(probes, "disco")
        families[f"coder_derp_server_{name}"].set(whole - probes, "other")


def _network_bytes(netstat: str) -> tuple[int, int]:
    """Return (received, sent) from Linux' `netstat` file: a line of names, then one of numbers, for each protocol."""
    rows = [line.split() for line in netstat.splitlines()]
    for names, numbers in zip(rows[::2], rows[1::2], strict=False):
        if names and names[0] == "IpExt:":
            results = dict(zip(names, numbers, strict=False))
            return int(results.get("InOctets", 0)), int(results.get("OutOctets", 0))
    return 0, 0
