"""Calls by which an agent sends logs: its own, and requests that its boundary allowed or denied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from coder.base.log import get_logger
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.services.agents.agent_api.message_fields import uuid_untrusted
from coder.coderd.services.agents.agent_logs import AgentLogLine, LogReport, store_all_logs
from coder.coderd.services.foundation.outages import run_once
from coder.coderd.store.agents.agents import CurrentAgent, LogSourceRow
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

MAX_BOUNDARY_LOGS = 1000
EXTERNAL_SOURCE = UUID("3b579bf4-1ed8-4b99-87a8-e9a1e3410410")
"""Source of lines without a source."""
LARGE = 32 << 10
"""Bytes of lines, our own value, that are stored in a transaction of their own."""

_log = get_logger("agents")


class LogCalls:
    """Log calls of an agent."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current
        self._has_external_source = False

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {
            "BatchCreateLogs": call(self.batch_create_logs, agent_pb2.BatchCreateLogsRequest),
            "ReportBoundaryLogs": call(self.report_boundary_logs, agent_pb2.ReportBoundaryLogsRequest),
        }

    async def batch_create_logs(self, request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        stored = await self._append(request.log_source_id, request.logs)
        return agent_pb2.BatchCreateLogsResponse(log_limit_exceeded=not stored)

    async def report_boundary_logs(
        self, request: agent_pb2.ReportBoundaryLogsRequest
    ) -> agent_pb2.ReportBoundaryLogsResponse:
        """Write requests that the boundary decided to the server's log."""
        if len(request.logs) > MAX_BOUNDARY_LOGS:
            raise RpcError(0, f"too many boundary logs: {len(request.logs)} > {MAX_BOUNDARY_LOGS}")
        for entry in request.logs:
            _log.info(
                "boundary_request",
                agent=self._current.agent.id,
                decision="allow" if entry.allowed else "deny",
                method=entry.http_request.method,
                url=entry.http_request.url,
                rule=entry.http_request.matched_rule,
            )
        return agent_pb2.ReportBoundaryLogsResponse()

    async def _append(self, source: bytes, lines: Sequence[agent_pb2.Log]) -> bool:
        """Store a batch; return False when the agent's log is full, which is permanent."""
        source_id = uuid_untrusted(source)
        if not lines:
            return True
        now = self._ctx.clock.now()
        rows = [AgentLogLine(now, line.output, _level(line.level)) for line in lines]
        new_source, is_external = None, source_id.int == 0
        if is_external:
            source_id = EXTERNAL_SOURCE
            if not self._has_external_source:
                new_source = LogSourceRow(self._current.agent.id, source_id, now, "External", "/emojis/1f310.png")
        report = LogReport(self._current, source_id, rows, new_source)
        if sum(len(line.output) for line in rows) > LARGE:
            (stored,) = await run_once(self._ctx.db, store_all_logs, [report])
        else:
            stored = await self._ctx.services.api.report_batches.logs.add(report)
        self._has_external_source |= is_external
        self._update_row(stored=stored)
        return stored

    def _update_row(self, *, stored: bool) -> None:
        """Update the logs' state in the cached row, which decides the notices of the next batch."""
        agent = replace(self._current.agent, logs_length=max(1, self._current.agent.logs_length))
        self._current = replace(self._current, agent=agent if stored else replace(agent, logs_overflowed=True))


def _level(level: int) -> str:
    names = {1: "trace", 2: "debug", 3: "info", 4: "warn", 5: "error"}
    return names.get(level, "info")
