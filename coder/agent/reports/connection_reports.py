"""Begin and end of sessions for the server's connection log. Bounded; a rejected report is dropped."""

from __future__ import annotations

from datetime import UTC, datetime

from coder.agent.reports.ordered_reports import OrderedReports
from coder.agent.state import ConnectionEvent
from coder.rpc.proto import agent_pb2

LIMIT = 2048
"Reports kept while disconnected (docs/protocol/agents.md#limits)."
_KINDS = {
    "ssh": agent_pb2.Connection.SSH,
    "vscode": agent_pb2.Connection.VSCODE,
    "jetbrains": agent_pb2.Connection.JETBRAINS,
    "reconnecting_pty": agent_pb2.Connection.RECONNECTING_PTY,
}


class ReportQueue(OrderedReports[agent_pb2.ReportConnectionRequest]):
    """Queue of connection reports, in order."""

    def __init__(self) -> None:
        super().__init__(LIMIT)

    def note(self, event: ConnectionEvent) -> None:
        if event.kind not in _KINDS:
            return
        report = agent_pb2.Connection(
            id=event.id,
            action=agent_pb2.Connection.CONNECT if event.connect else agent_pb2.Connection.DISCONNECT,
            type=_KINDS[event.kind],
            ip=event.ip,
            status_code=event.status_code,
        )
        report.timestamp.FromDatetime(datetime.now(UTC))
        if event.reason:
            report.reason = event.reason
        self.add(agent_pb2.ReportConnectionRequest(connection=report))
