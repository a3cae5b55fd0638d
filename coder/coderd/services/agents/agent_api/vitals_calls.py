"""Our own call by which an agent reports its machine on the session it has (docs/protocol/agents.md#vitals).

Released agents post the same document to `/api/v2/workspaceagents/me/vitals`, with a connection and an authentication
for each report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue

from coder.api.agents.agent_health import AgentVitals
from coder.api.base.refusals import Invalid
from coder.coderd.services.agents import vitals
from coder.coderd.services.agents.agent_api.call_table import CallTable, call
from coder.coderd.store.agents.agents import CurrentAgent
from coder.rpc.errors import INVALID_ARGUMENT, RpcError

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

MAX_DOCUMENT = 256 << 10
"""Bytes of a report, as on the route."""


class VitalsCalls:
    """Call of an agent about its machine."""

    def __init__(self, ctx: Context, current: CurrentAgent) -> None:
        self._ctx = ctx
        self._current = current

    def calls(self) -> CallTable:
        """Return the calls of this group by name."""
        return {"ReportVitals": call(self.report_vitals, StringValue)}

    async def report_vitals(self, request: StringValue) -> Empty:
        """Store one reading and the events since the last. Raises RpcError (INVALID_ARGUMENT) for a bad document."""
        try:
            await vitals.report(self._ctx, self._current, _read_untrusted(request.value))
        except Invalid as error:
            raise RpcError(INVALID_ARGUMENT, error.message) from error
        return Empty()


def _read_untrusted(text: str) -> AgentVitals:
    try:
        document = text.encode()
        if len(document) > MAX_DOCUMENT or b"\\u0000" in document:
            raise RpcError(INVALID_ARGUMENT, f"a report has at most {MAX_DOCUMENT} bytes and no NUL")
        return msgspec.json.decode(document, type=AgentVitals)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise RpcError(INVALID_ARGUMENT, f"the report cannot be read: {error}") from error
