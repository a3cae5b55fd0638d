"""Metric families of this agent: forwarded with its statistics and served at `/debug/prometheus`.

Names, kinds and labels are those of the recorded list (tests/data/api/recorded/metrics.tsv), so one dashboard reads
this agent and the original. The server adds the agent's identity. Traffic and open sessions are not here: they have
their own fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from coder.mesh.description import NodeStatus

Kind = Literal["counter", "gauge"]
Labels = tuple[tuple[str, str], ...]

FAMILIES: Mapping[str, Kind] = {
    "agent_reconnecting_pty_connections_total": "counter",
    "agent_scripts_executed_total": "counter",
    "agent_sessions_total": "counter",
    "agent_ssh_server_failed_connections_total": "counter",
    "agent_ssh_server_sftp_connections_total": "counter",
    "coderd_agentstats_currently_reachable_peers": "gauge",
    "coderd_agentstats_startup_script_seconds": "gauge",
    "derp_home_change": "counter",
    "magicsock_netmap_num_peers": "gauge",
    "magicsock_num_derp_conns": "gauge",
}
_SESSION_TIMEOUT = 180.0
"Seconds after which a WireGuard session without a new handshake is over (REJECT_AFTER_TIME)."


@dataclass(frozen=True, slots=True)
class Sample:
    """Value of one metric."""

    name: str
    labels: Labels
    value: float

    @property
    def kind(self) -> Kind:
        return FAMILIES[self.name]


class AgentCounters:
    """Counters of one agent process since it started."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, Labels], float] = {}
        self._home = 0

    def count(self, name: str, **labels: str) -> None:
        """Increment a counter. Raises KeyError for a family that is not in the table."""
        self.set(name, self._values.get((name, _sorted_labels(labels)), 0) + 1, **labels)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a value. Raises KeyError for a family that is not in the table."""
        if name not in FAMILIES:
            raise KeyError(name)
        self._values[name, _sorted_labels(labels)] = value

    def note_network(self, status: NodeStatus, now: float) -> None:
        """Record the state of the network; `now` is the node's clock (trio.current_time)."""
        home = status.self_info.preferred_derp
        if home not in {0, self._home}:
            self._home = home
            self.count("derp_home_change")
        since = now - _SESSION_TIMEOUT
        used = [peer for peer in status.peers if peer.last_handshake is not None and peer.last_handshake > since]
        direct = sum(peer.path == "direct" for peer in used)
        self.set("coderd_agentstats_currently_reachable_peers", direct, connection_type="p2p")
        self.set("coderd_agentstats_currently_reachable_peers", len(used) - direct, connection_type="derp")
        self.set("magicsock_netmap_num_peers", len(status.peers))
        self.set("magicsock_num_derp_conns", sum(relay.connected for relay in status.relays))

    def samples(self) -> Iterator[Sample]:
        """Iterate over the values in the order of names."""
        for (name, labels), value in sorted(self._values.items()):
            yield Sample(name, labels, value)


def _sorted_labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
