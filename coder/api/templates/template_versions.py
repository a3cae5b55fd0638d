"""JSON shapes of template versions, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.people.user_names import MinimalUser
from coder.api.provisioning.jobs import MatchedProvisioners, ProvisionerJob
from coder.api.templates.parameters import WorkspaceBuildParameter


class ArchiveTemplateVersionsRequest(ApiStruct):
    all: bool


class ArchiveTemplateVersionsResponse(ApiStruct):
    template_id: UUID
    archived_ids: list[UUID]


class VariableValue(ApiStruct):
    name: str
    value: str


class CreateTemplateVersionDryRunRequest(ApiStruct):
    workspace_name: str
    rich_parameter_values: list[WorkspaceBuildParameter]
    user_variable_values: list[VariableValue] | UnsetType = UNSET


class CreateTemplateVersionRequest(ApiStruct):
    # Choices are plain text in requests: the service refuses a wrong one with a validation, not as a broken body.
    storage_method: str
    provisioner: str
    tags: dict[str, str]
    example_id: str | UnsetType = UNSET
    file_id: UUID | UnsetType = UNSET
    message: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    template_id: UUID | UnsetType = UNSET
    user_variable_values: list[VariableValue] | UnsetType = UNSET


class PatchTemplateVersionRequest(ApiStruct):
    name: str
    message: str | UnsetType = UNSET


TemplateVersionWarning = Literal["UNSUPPORTED_WORKSPACES"]


class TemplateVersion(ApiStruct):
    id: UUID
    created_at: datetime
    updated_at: datetime
    name: str
    message: str
    job: ProvisionerJob
    readme: str
    created_by: MinimalUser
    archived: bool
    has_external_agent: bool
    matched_provisioners: MatchedProvisioners | UnsetType = UNSET
    organization_id: UUID | UnsetType = UNSET
    template_id: UUID | UnsetType = UNSET
    warnings: list[TemplateVersionWarning] | UnsetType = UNSET


class TemplateVersionVariable(ApiStruct):
    name: str
    description: str
    type: str
    value: str
    default_value: str
    required: bool
    sensitive: bool


class UpdateActiveTemplateVersion(ApiStruct):
    id: UUID
