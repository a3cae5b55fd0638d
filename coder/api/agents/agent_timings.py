"""JSON shapes of agents' connection and script durations, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coder.api.base.enums import TimingStage
from coder.api.base.struct import ApiStruct


class AgentScriptTiming(ApiStruct):
    started_at: datetime
    ended_at: datetime
    exit_code: int
    stage: TimingStage
    status: str
    display_name: str
    workspace_agent_id: UUID
    workspace_agent_name: str


class AgentConnectionTiming(ApiStruct):
    started_at: datetime
    ended_at: datetime
    stage: TimingStage
    workspace_agent_id: UUID
    workspace_agent_name: str
