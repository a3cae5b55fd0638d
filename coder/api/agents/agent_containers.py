"""JSON shapes of an agent's containers, shared by server and client."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json

WorkspaceAgentDevcontainerStatus = Literal["deleting", "error", "running", "starting", "stopped", "stopping"]


class WorkspaceAgentContainerPort(ApiStruct):
    port: int
    network: str
    host_ip: str | UnsetType = UNSET
    host_port: int | UnsetType = UNSET


class WorkspaceAgentContainer(ApiStruct):
    created_at: str
    id: str
    name: str
    image: str
    labels: Json
    running: bool
    ports: list[WorkspaceAgentContainerPort]
    status: str
    volumes: Json


class WorkspaceAgentDevcontainerAgent(ApiStruct):
    id: UUID
    name: str
    directory: str


class WorkspaceAgentDevcontainer(ApiStruct):
    id: UUID
    name: str
    workspace_folder: str
    status: WorkspaceAgentDevcontainerStatus
    dirty: bool
    agent: WorkspaceAgentDevcontainerAgent | UnsetType = UNSET
    config_path: str | UnsetType = UNSET
    container: WorkspaceAgentContainer | UnsetType = UNSET
    error: str | UnsetType = UNSET
    subagent_id: UUID | UnsetType = UNSET


class WorkspaceAgentListContainersResponse(ApiStruct):
    devcontainers: list[WorkspaceAgentDevcontainer]
    containers: list[WorkspaceAgentContainer]
    warnings: list[str] | UnsetType = UNSET
