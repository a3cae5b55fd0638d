"""JSON shapes of the template builder, shared by server and client."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.api.templates.templates import Template

TemplateBuilderVariableType = Literal["bool", "number", "string"]

TemplateBuilderSessionEventType = Literal["compose_completion", "wizard_entry"]


class TemplateBuilderModuleVariable(ApiStruct):
    name: str
    type: TemplateBuilderVariableType
    description: str
    required: bool
    sensitive: bool
    default: str | float | bool | UnsetType = UNSET


class TemplateBuilderBase(ApiStruct):
    id: str
    name: str
    description: str
    icon: str
    os: str
    variables: list[TemplateBuilderModuleVariable]
    prerequisites: str


class TemplateBuilderBasesResponse(ApiStruct):
    bases: list[TemplateBuilderBase]


class TemplateBuilderModule(ApiStruct):
    id: str
    display_name: str
    description: str
    icon: str
    category: str
    version: str
    compatible_os: list[str]
    conflicts_with: list[str]
    variables: list[TemplateBuilderModuleVariable]


class TemplateBuilderModulesResponse(ApiStruct):
    modules: list[TemplateBuilderModule]


class TemplateBuilderComposeModule(ApiStruct):
    id: str
    variables: dict[str, str] | UnsetType = UNSET


class TemplateBuilderComposeRequest(ApiStruct):
    base_template_id: str
    modules: list[TemplateBuilderComposeModule]
    base_variable_values: dict[str, str] | UnsetType = UNSET


class TemplateBuilderCreateTemplateRequest(ApiStruct):
    base_template_id: str
    modules: list[TemplateBuilderComposeModule]
    organization_id: UUID
    name: str
    base_variable_values: dict[str, str] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    provisioner_tags: dict[str, str] | UnsetType = UNSET


class TemplateBuilderCreateTemplateResponse(ApiStruct):
    template: Template


class TemplateBuilderSessionRequest(ApiStruct):
    # The event is plain text: the service refuses a wrong one with a validation, not as a broken body.
    session_id: str
    event_type: str
    base_template_id: str | UnsetType = UNSET
    duration_seconds: float | UnsetType = UNSET
    module_ids: list[str] | UnsetType = UNSET
    success: bool | UnsetType = UNSET
