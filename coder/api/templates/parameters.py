"""JSON shapes of parameters, shared by server and client."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json

DiagnosticSeverityString = Literal["error", "warning"]

OptionType = Literal["bool", "list(string)", "number", "string"]

ParameterFormType = Literal[
    "checkbox", "", "dropdown", "error", "input", "multi-select", "radio", "slider", "switch", "tag-select", "textarea"
]

ValidationMonotonicOrder = Literal["decreasing", "increasing"]


class DiagnosticExtra(ApiStruct):
    code: str


class DynamicParametersRequest(ApiStruct):
    id: int = 0
    inputs: Json = None
    owner_id: UUID | UnsetType = UNSET


class FriendlyDiagnostic(ApiStruct):
    severity: DiagnosticSeverityString
    summary: str
    detail: str
    extra: DiagnosticExtra


class NullHCLString(ApiStruct):
    value: str
    valid: bool


class PreviewParameterOption(ApiStruct):
    name: str
    description: str
    value: NullHCLString
    icon: str


class PreviewParameterStyling(ApiStruct):
    disabled: bool | UnsetType = UNSET
    label: str | UnsetType = UNSET
    mask_input: bool | UnsetType = UNSET
    placeholder: str | UnsetType = UNSET


class PreviewParameterValidation(ApiStruct):
    validation_error: str
    validation_regex: str | None
    validation_min: float | None
    validation_max: float | None
    validation_monotonic: str | None


class PreviewParameter(ApiStruct):
    default_value: NullHCLString
    description: str
    diagnostics: list[FriendlyDiagnostic]
    display_name: str
    ephemeral: bool
    form_type: ParameterFormType
    icon: str
    mutable: bool
    name: str
    options: list[PreviewParameterOption]
    order: int
    required: bool
    styling: PreviewParameterStyling
    type: OptionType
    validations: list[PreviewParameterValidation]
    value: NullHCLString


class DynamicParametersResponse(ApiStruct):
    id: int
    diagnostics: list[FriendlyDiagnostic]
    parameters: list[PreviewParameter]


class InvalidatedPreset(ApiStruct):
    template_name: str
    template_version_name: str
    preset_name: str


class InvalidatePresetsResponse(ApiStruct):
    invalidated: list[InvalidatedPreset]


class PresetParameter(ApiStruct):
    Name: str
    Value: str


class Preset(ApiStruct):
    ID: str
    Name: str
    Parameters: list[PresetParameter]
    Default: bool
    DesiredPrebuildInstances: int | None
    Description: str
    Icon: str


class TemplateParameterValue(ApiStruct):
    value: str
    count: int


class TemplateVersionParameterOption(ApiStruct):
    name: str
    description: str
    value: str
    icon: str


class TemplateParameterUsage(ApiStruct):
    template_ids: list[UUID]
    display_name: str
    name: str
    type: str
    description: str
    values: list[TemplateParameterValue]
    options: list[TemplateVersionParameterOption] | UnsetType = UNSET


class TemplateVersionParameter(ApiStruct):
    name: str
    description: str
    description_plaintext: str
    type: str
    form_type: str
    mutable: bool
    default_value: str
    icon: str
    options: list[TemplateVersionParameterOption]
    required: bool
    ephemeral: bool
    display_name: str | UnsetType = UNSET
    validation_error: str | UnsetType = UNSET
    validation_max: float | UnsetType = UNSET
    validation_min: float | UnsetType = UNSET
    validation_monotonic: ValidationMonotonicOrder | UnsetType = UNSET
    validation_regex: str | UnsetType = UNSET


class UserParameter(ApiStruct):
    name: str
    value: str


class WorkspaceBuildParameter(ApiStruct):
    name: str
    value: str
