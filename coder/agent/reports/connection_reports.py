"""Begin and end of sessions on their way to the server's connection log. Bounded; a refused report is dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import trio

from coder.agent.state import ConnectionEvent
from coder.base.log import get_logger
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

log = get_logger("agent")

LIMIT = 2048
"Reports kept while there is no connection (docs/protocol/agents.md#limits)."
_KINDS = {
    "ssh": agent_pb2.Connection.SSH,
    "vscode": agent_pb2.Connection.VSCODE,
    "jetbrains": agent_pb2.Connection.JETBRAINS,
    "reconnecting_pty": agent_pb2.Connection.RECONNECTING_PTY,
}

Send = Callable[[agent_pb2.ReportConnectionRequest], Awaitable[object]]


class ReportQueue:
    """Keeps reports in order."""

    def __init__(self) -> None:
        self._waiting: deque[agent_pb2.Connection] = deque()
        self._changed = trio.Event()

    def add(self, event: ConnectionEvent) -> None:
        if event.kind not in _KINDS or len(self._waiting) >= LIMIT:
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
        self._waiting.append(report)
        self._wake()

    async def send_loop(self, send: Send) -> None:
        """One at a time; a report the server refuses is dropped, a broken connection ends the loop."""
        while True:
            while not self._waiting:
                await self._changed.wait()
            try:
                await send(agent_pb2.ReportConnectionRequest(connection=self._waiting[0]))
            except RpcError as error:
                log.debug("connection report refused", error=error)
            self._waiting.popleft()
            self._wake()

    async def wait_sent(self) -> None:
        while self._waiting:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
