"""JSON shapes of errors, shared by server and client."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class ValidationError(ApiStruct):
    field: str
    detail: str


class Response(ApiStruct):
    message: str
    detail: str | UnsetType = UNSET
    validations: list[ValidationError] | UnsetType = UNSET
