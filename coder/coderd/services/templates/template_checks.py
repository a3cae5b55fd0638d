"""Checks that creation and changes of templates share."""

from __future__ import annotations

from typing import TypeVar

from msgspec import UnsetType

from coder.api.base.refusals import Conflict, InvalidFields
from coder.api.templates.templates import (
    CreateTemplateRequest,
    UpdateTemplateMeta,
)
from coder.base.json_types import Json
from coder.coderd.store.templates.templates import TemplateRow
from coder.domain.foundation.share_levels import SHARE_LEVELS
from coder.domain.workspaces.workspaces import MAX_TTL_MS, TOO_LONG

CORS_BEHAVIORS = ("simple", "passthru")
Value = TypeVar("Value")
Default = TypeVar("Default")

NAME_INDEX = "ix_templates_organization_id_name_living"


def check_settings(
    message: str, body: CreateTemplateRequest | UpdateTemplateMeta, present: TemplateRow | None = None
) -> None:
    """Check settings with individual messages; an unchanged value passes. Raises InvalidFields."""

    def changed(name: str) -> Json:
        value: Json = value_or(getattr(body, name), None)
        return None if present is not None and value == getattr(present, name) else value

    faults: list[tuple[str, str]] = []
    for name in ("default_ttl_ms", "activity_bump_ms", "time_til_autostop_notify_ms"):
        value = changed(name)
        if isinstance(value, int) and value < 0:
            faults.append((name, "Must be a positive integer."))
        elif isinstance(value, int) and value > MAX_TTL_MS:
            faults.append((name, TOO_LONG))
    level = changed("max_port_share_level")
    if level is not None and level not in SHARE_LEVELS:
        faults.append(("max_port_share_level", f"Must be one of [{' '.join(SHARE_LEVELS)}]"))
    cors = changed("cors_behavior")
    if cors and cors not in CORS_BEHAVIORS:
        faults.append(("cors_behavior", f'Invalid CORS behavior "{cors}". Must be one of [simple, passthru]'))
    if faults:
        raise InvalidFields(*faults, message=message)


def value_or(value: Value | UnsetType | None, default: Default) -> Value | Default:
    return default if isinstance(value, UnsetType) or value is None else value


def name_taken(name: str) -> Conflict:
    return Conflict(
        f'Template with name "{name}" already exists.',
        validations=[("name", "This value is already in use and should be unique.")],
    )
