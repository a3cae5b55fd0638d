"""JSON shapes for creating workspaces and their quotas, shared by server and client."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.templates.parameters import WorkspaceBuildParameter


class CreateWorkspaceRequest(ApiStruct):
    name: str
    automatic_updates: str | UnsetType = UNSET
    autostart_schedule: str | UnsetType = UNSET
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType = UNSET
    template_id: UUID | UnsetType = UNSET
    template_version_id: UUID | UnsetType = UNSET
    template_version_preset_id: UUID | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET


class PrebuildsSettings(ApiStruct):
    reconciliation_paused: bool


class WorkspaceConnectionLatencyMS(ApiStruct):
    P50: float
    P95: float


class WorkspaceQuota(ApiStruct):
    credits_consumed: int
    budget: int
