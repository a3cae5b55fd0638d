"""JSON shapes of tasks, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.agents.agents import WorkspaceAgentHealth, WorkspaceAgentLifecycle
from coder.api.base.struct import ApiStruct
from coder.api.workspaces.builds import WorkspaceBuild, WorkspaceStatus

TaskLogType = Literal["input", "output"]

TaskState = Literal["complete", "failed", "idle", "working"]

TaskStatus = Literal["active", "error", "initializing", "paused", "pending", "unknown"]


class CreateTaskRequest(ApiStruct):
    template_version_id: UUID
    input: str
    display_name: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET


class PauseTaskResponse(ApiStruct):
    workspace_build: WorkspaceBuild | None


class ResumeTaskResponse(ApiStruct):
    workspace_build: WorkspaceBuild | None


class TaskStateEntry(ApiStruct):
    timestamp: datetime
    state: TaskState
    message: str
    uri: str


class Task(ApiStruct):
    id: UUID
    organization_id: UUID
    owner_id: UUID
    owner_name: str
    name: str
    display_name: str
    template_id: UUID
    template_version_id: UUID
    template_name: str
    template_display_name: str
    template_icon: str
    workspace_id: UUID | None
    workspace_name: str
    workspace_agent_id: UUID | None
    workspace_agent_lifecycle: WorkspaceAgentLifecycle | None
    workspace_agent_health: WorkspaceAgentHealth | None
    workspace_app_id: UUID | None
    initial_prompt: str
    status: TaskStatus
    current_state: TaskStateEntry | None
    created_at: datetime
    updated_at: datetime
    owner_avatar_url: str | UnsetType = UNSET
    workspace_build_number: int | UnsetType = UNSET
    workspace_status: WorkspaceStatus | UnsetType = UNSET


class TaskLogEntry(ApiStruct):
    id: int
    content: str
    type: TaskLogType
    time: datetime


class TaskLogsResponse(ApiStruct):
    logs: list[TaskLogEntry]
    snapshot: bool | UnsetType = UNSET
    snapshot_at: datetime | UnsetType = UNSET


class TaskSendRequest(ApiStruct):
    input: str


class UpdateTaskInputRequest(ApiStruct):
    input: str


class TasksListResponse(ApiStruct):
    tasks: list[Task]
    count: int
