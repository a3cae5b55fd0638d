"""Metric families that agents are known to send: their kinds and labels.

The families of the recorded list (tests/data/api/recorded/metrics.tsv) that agents report; our agent sends some of them
(`coder/agent/counters.py`), agents of other programs all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Kind = Literal["counter", "gauge"]
AGENT_LABELS = ("agent_name", "template_name", "username", "workspace_name")
"""Labels that the server adds to every series of an agent."""

_COUNTERS: Mapping[str, str] = {
    "agent": (
        "boundary_log_proxy_batches_forwarded_total reconnecting_pty_connections_total "
        "ssh_server_failed_connections_total ssh_server_sftp_connections_total "
        "ssh_server_sftp_server_errors_total"
    ),
    "derp": "home_change",
    "dnsfallback": "recursive_errors recursive_matches recursive_mismatches",
    "issue": "869_workaround",
    "magicdns": "packet_in",
    "magicsock": (
        "disco_recv_bad_key disco_recv_bad_parse disco_recv_bad_peer disco_recv_bpf_ipv4 disco_recv_bpf_ipv6 "
        "disco_recv_callmemaybe disco_recv_callmemaybe_bad_disco disco_recv_callmemaybe_bad_node "
        "disco_recv_derp disco_recv_derp_peer_gone_unknown disco_recv_derp_peer_not_here disco_recv_ping "
        "disco_recv_pong disco_recv_udp disco_send_derp disco_send_udp disco_sent_callmemaybe disco_sent_derp "
        "disco_sent_ping disco_sent_pong disco_sent_udp rebind_calls recv_data_derp recv_data_ipv4 "
        "recv_data_ipv6 restun_calls send_data send_data_network_down send_derp send_derp_error "
        "send_derp_error_chan send_derp_error_closed send_derp_error_queue send_derp_queued send_udp "
        "send_udp_error update_endpoints"
    ),
    "netcheck": (
        "https_measure report report_error report_full stun_recv_ipv4 stun_recv_ipv6 stun_send_ipv4 stun_send_ipv6"
    ),
    "packet": "reflect_to_os",
    "portmap": (
        "pcp_address_mismatch pcp_not_authorized pcp_ok pcp_sent pcp_unhandled_response_code "
        "pmp_network_failure pmp_not_authorized pmp_ok pmp_out_of_resources pmp_sent pmp_unhandled_opcode "
        "pmp_unhandled_response_code pxp_response upnp_ok upnp_parse_err upnp_response "
        "upnp_response_alternate_port upnp_sent upnp_updated_meta"
    ),
    "wgengine": "major_changes minor_changes",
}
"""Counters without labels, grouped by the first word of their names."""

KNOWN: Mapping[str, tuple[Kind, tuple[str, ...]]] = {
    **{f"{first}_{rest}": ("counter", ()) for first, all_of in _COUNTERS.items() for rest in all_of.split()},
    "agent_scripts_executed_total": ("counter", ("success",)),
    "agent_sessions_total": ("counter", ("magic_type", "pty")),
    "coderd_agentstats_currently_reachable_peers": ("gauge", ("connection_type",)),
    "coderd_agentstats_startup_script_seconds": ("gauge", ("success",)),
    "magicsock_netmap_num_peers": ("gauge", ()),
    "magicsock_num_derp_conns": ("gauge", ()),
}
"""Known families; labels in alphabetical order."""
