"""Statistics of the agent's overlay traffic and sessions, reported at the server's interval.

Source: docs/protocol/agents.md#calls (UpdateStats): the first call is empty and only asks for the interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState
from coder.base.retry import spread
from coder.rpc.durations import seconds
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session

if TYPE_CHECKING:
    from coder.agent.network.overlay import AgentNetwork

METHOD = AGENT + "UpdateStats"
UNKNOWN_LATENCY = -0.001
MINIMUM_INTERVAL = 1.0
_TYPES = {"counter": agent_pb2.Stats.Metric.COUNTER, "gauge": agent_pb2.Stats.Metric.GAUGE}


class Statistics:
    """Reporter of one connection; counters are differences, so the next report makes up for a failed one."""

    def __init__(self, state: AgentState, network: AgentNetwork) -> None:
        self._state, self._network = state, network

    async def loop(self, session: Session) -> None:
        answer = await session.call(METHOD, agent_pb2.UpdateStatsRequest(), agent_pb2.UpdateStatsResponse)
        while True:
            await trio.sleep(spread(max(MINIMUM_INTERVAL, seconds(answer.report_interval))))
            request = agent_pb2.UpdateStatsRequest(stats=await self._collect())
            answer = await session.call(METHOD, request, agent_pb2.UpdateStatsResponse)
            self._network.traffic.reported()

    async def _collect(self) -> agent_pb2.Stats:
        sessions, traffic = self._state.sessions, self._network.traffic
        self._network.refresh_traffic()
        rx_packets, rx_bytes, tx_packets, tx_bytes = traffic.since_report()
        connections = self._network.connection_count()
        latencies = await self._network.latencies() if connections else []
        stats = agent_pb2.Stats(
            connection_count=connections,
            connection_median_latency_ms=_median(latencies) * 1000 if latencies else UNKNOWN_LATENCY,
            rx_packets=rx_packets,
            rx_bytes=rx_bytes,
            tx_packets=tx_packets,
            tx_bytes=tx_bytes,
            session_count_vscode=sessions["vscode"],
            session_count_jetbrains=sessions["jetbrains"],
            session_count_reconnecting_pty=sessions["reconnecting_pty"],
            session_count_ssh=sessions["ssh"],
            metrics=self._metrics(),
        )
        if connections:
            stats.connections_by_proto["TCP"] = connections
        return stats

    def _metrics(self) -> list[agent_pb2.Stats.Metric]:
        status = self._state.overlay()
        if status is not None:
            self._state.counters.note_network(status, trio.current_time())
        return [
            agent_pb2.Stats.Metric(
                name=sample.name,
                type=_TYPES[sample.kind],
                value=sample.value,
                labels=[agent_pb2.Stats.Metric.Label(name=name, value=value) for name, value in sample.labels],
            )
            for sample in self._state.counters.samples()
        ]


def _median(values: list[float]) -> float:
    """Return the median. `statistics.median` would import fractions: half a megabyte in an idle agent."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
