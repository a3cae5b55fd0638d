"""JSON shapes of agents' streams (logs, terminals, events), shared by server and client."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from coder.api.base.enums import LogLevel
from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json

ServerSentEventType = Literal["data", "error", "ping"]


class IssueReconnectingPTYSignedTokenRequest(ApiStruct):
    url: str
    agentID: str


class IssueReconnectingPTYSignedTokenResponse(ApiStruct):
    signed_token: str


class ServerSentEvent(ApiStruct):
    type: ServerSentEventType
    data: Json


WorkspaceAgentGitClientMessageType = Literal["refresh"]


class WorkspaceAgentLog(ApiStruct):
    id: int
    created_at: datetime
    output: str
    level: LogLevel
    source_id: UUID

    def text(self, agent_name: str, source_name: str) -> str:
        """Return the line as upstream's logs in text form show it: `<time> [info] [agent.main|Startup] …`."""
        at = self.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        place = f"agent.{agent_name}" if agent_name else "agent"
        return f"{at} [{self.level}] [{place}{f'|{source_name}' if source_name else ''}] {self.output}"
