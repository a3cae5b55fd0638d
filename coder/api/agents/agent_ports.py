"""JSON shapes of agents' ports and their shares, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import WorkspaceAgentPortShareLevel
from coder.api.base.struct import ApiStruct

WorkspaceAgentPortShareProtocol = Literal["http", "https"]


class DeleteWorkspaceAgentPortShareRequest(ApiStruct):
    agent_name: str
    port: int


class UpsertWorkspaceAgentPortShareRequest(ApiStruct):
    agent_name: str
    port: int
    share_level: str
    protocol: str
    expires_at: datetime | UnsetType | None = UNSET
    """Ours: null for never; requests without it, as upstream's clients send, keep the current value."""


class WorkspaceAgentListeningPort(ApiStruct):
    process_name: str
    network: str
    port: int


class WorkspaceAgentListeningPortsResponse(ApiStruct):
    ports: list[WorkspaceAgentListeningPort]


class WorkspaceAgentPortShare(ApiStruct):
    workspace_id: UUID
    agent_name: str
    port: int
    share_level: WorkspaceAgentPortShareLevel
    protocol: WorkspaceAgentPortShareProtocol
    expires_at: datetime | UnsetType = UNSET
    """Ours: absent for a share without expiry."""


class WorkspaceAgentPortShares(ApiStruct):
    shares: list[WorkspaceAgentPortShare]
