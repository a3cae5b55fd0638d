"""JSON shapes of agents' streams (logs, terminals, events), shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from coder.api.base.enums import LogLevel
from coder.api.base.struct import ApiStruct

ServerSentEventType = Literal["data", "error", "ping"]


class IssueReconnectingPTYSignedTokenRequest(ApiStruct):
    url: str
    agentID: str


class IssueReconnectingPTYSignedTokenResponse(ApiStruct):
    signed_token: str


class ServerSentEvent(ApiStruct):
    type: ServerSentEventType
    data: Any


WorkspaceAgentGitClientMessageType = Literal["refresh"]


class WorkspaceAgentLog(ApiStruct):
    id: int
    created_at: datetime
    output: str
    level: LogLevel
    source_id: UUID
