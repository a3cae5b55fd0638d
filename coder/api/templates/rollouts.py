"""JSON shapes of staged rollouts of template versions. Ours, not upstream's."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct

TemplateRolloutStatus = Literal["running", "stopped", "completed", "rolled_back", "canceled"]
TemplateRolloutAction = Literal["next", "stop", "resume", "rollback"]


class CreateTemplateRollout(ApiStruct):
    """Start of a rollout. Fields left out have defaults."""

    template_version_id: UUID
    stages: list[int] | UnsetType = UNSET
    """Percentages of the template's workspaces, increasing; the last one is 100."""
    group_id: UUID | UnsetType | None = UNSET
    """Group whose members' workspaces belong to every stage."""
    failure_percent: int | UnsetType = UNSET
    """The rollout stops when more than this percentage of its builds fail."""
    minimum_builds: int | UnsetType = UNSET
    """Finished builds before the failure limit applies."""


class UpdateTemplateRollout(ApiStruct):
    """Change of a template's open rollout."""

    rollout_id: UUID
    action: TemplateRolloutAction
    percent: int | UnsetType = UNSET
    """Stage that the caller knows. A rollout that is in another one is not changed."""
    status: TemplateRolloutStatus | UnsetType = UNSET
    """Status that the caller knows, `running` by default for `next`, so that a stopped rollout does not go on."""


class TemplateRolloutProgress(ApiStruct):
    """Counts of an open rollout. Builds are starts with its version since the current stage began."""

    workspaces: int
    """Workspaces of the template."""
    offered: int
    """Workspaces that the version is offered to, or that have it."""
    updated: int
    """Workspaces whose latest build with the version succeeded."""
    builds_succeeded: int
    builds_failed: int
    builds_unfinished: int
    failure_percent: float | None
    """Percentage of failed builds; null while no build has finished."""


class TemplateRollout(ApiStruct):
    id: UUID
    template_id: UUID
    template_version_id: UUID
    template_version_name: str
    former_version_id: UUID
    former_version_name: str
    """Empty if the version no longer exists."""
    group_id: UUID | None
    group_name: str
    """Empty without a group."""
    stages: list[int]
    percent: int
    """Current stage, or the last one before the end."""
    status: TemplateRolloutStatus
    message: str
    """Reason of a stop or an end; may be empty."""
    failure_percent: int
    minimum_builds: int
    created_by_name: str
    created_at: datetime
    updated_at: datetime
    stage_started_at: datetime
    ended_at: datetime | None
    progress: TemplateRolloutProgress | None
    """Null for a rollout that ended: its workspaces are no longer counted."""


class OfferedVersion(ApiStruct):
    """Version to which an update brings a workspace."""

    workspace_id: UUID
    template_version_id: UUID
    template_version_name: str
    rollout_id: UUID | None
    """Rollout of the template that is running or stopped."""
    is_staged: bool
    """Whether it is the version of the rollout, not the active one."""
    outdated: bool
    """Whether the workspace's latest build has another version."""
