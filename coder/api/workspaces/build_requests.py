"""JSON shapes for requesting builds, shared by server and client."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import WorkspaceTransition
from coder.api.base.struct import ApiStruct
from coder.api.templates.parameters import WorkspaceBuildParameter


class CreateWorkspaceBuildOnSuccessRequest(ApiStruct):
    transition: WorkspaceTransition
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET


class CreateWorkspaceBuildRequest(ApiStruct):
    transition: str
    dry_run: bool | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    on_success: CreateWorkspaceBuildOnSuccessRequest | UnsetType = UNSET
    orphan: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    state: str | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET


class UpdateWorkspaceBuildStateRequest(ApiStruct):
    state: str
