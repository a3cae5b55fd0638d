"""JSON shapes of previews of updates: what another version of the template would change. Ours, not upstream's."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.templates.parameters import WorkspaceBuildParameter

PreviewStatus = Literal["pending", "running", "succeeded", "failed", "canceled"]
PreviewAction = Literal["keep", "create", "update", "replace", "restart", "delete", "forget", "unknown"]
PreviewDisk = Literal["kept", "lost", "none", "unknown"]
PreviewChange = Literal["added", "removed", "changed"]


class CreateUpdatePreviewRequest(ApiStruct):
    template_version_id: UUID | UnsetType | None = UNSET
    """Version to compare with; the template's active one by default."""
    rich_parameter_values: list[WorkspaceBuildParameter] | UnsetType | None = UNSET


class CreateTemplateUpdatePreviewRequest(ApiStruct):
    template_version_id: UUID


class UpdatePreviewAttribute(ApiStruct):
    path: str
    before: str
    """Value as JSON; empty when it is not shown."""
    after: str
    forces_replacement: bool


class UpdatePreviewResource(ApiStruct):
    address: str
    type: str
    name: str
    action: PreviewAction
    disk: bool
    attributes: list[UpdatePreviewAttribute]


class UpdatePreviewAgent(ApiStruct):
    name: str
    action: PreviewAction
    restarts: bool


class UpdatePreviewPlan(ApiStruct):
    known: bool
    """False: the provisioner did not report changes; nothing is known about resources."""
    summary: list[str]
    """The plan in plain sentences."""
    disk: PreviewDisk
    counts: dict[str, int] | None
    """Number of resources by action; null when it is not known."""
    resources: list[UpdatePreviewResource]
    agents: list[UpdatePreviewAgent]
    omitted: int
    """Resources of the plan that are left out."""


class UpdatePreviewParameter(ApiStruct):
    name: str
    change: PreviewChange
    fields: list[str]
    """Attributes that differ."""
    required: bool
    value: str | None
    """Value that the update would use; null when there is none."""


class UpdatePreviewFile(ApiStruct):
    path: str
    change: PreviewChange
    diff: str
    """Unified diff; empty for files that are not text, too large to compare, or differ in the ends of lines only."""


class VersionChanges(ApiStruct):
    from_version_id: UUID
    from_version_name: str
    to_version_id: UUID
    to_version_name: str
    parameters: list[UpdatePreviewParameter]
    files: list[UpdatePreviewFile] | None
    """Null when the caller may not read the template's files, or the archives are too large to compare."""
    files_omitted: int


class UpdatePreview(ApiStruct):
    id: UUID | None
    """Null when there is nothing to wait for: the plan could not be started."""
    workspace_id: UUID
    workspace_name: str
    owner_name: str
    status: PreviewStatus
    error: str
    queue_position: int
    queue_size: int
    changes: VersionChanges | None
    """Only in the response that started the preview."""
    plan: UpdatePreviewPlan | None
    """Null until the plan has succeeded."""


class TemplateUpdatePreview(ApiStruct):
    id: UUID | None
    """Null when no workspace is previewed."""
    template_id: UUID
    template_version_id: UUID
    previews: list[UpdatePreview]
    not_previewed: int
    """Workspaces of the template that are not previewed: beyond the sample, or not the caller's to update."""
    changes: VersionChanges | None
    """Compared with the active version. Only in the response that started the preview."""
