"""Parameters of a version whose files cannot be rendered: the import's records with the submitted values.

For versions imported by old daemons, or whose import failed: the form works, without dependencies between parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, cast

from coder.base.json_types import JsonObject, as_text
from coder.domain.rendering.parameters import FormOption, FormParameter, FormValidation, diagnostic, rule_body
from coder.domain.templates import parameter_rules as rules
from coder.domain.templates.parameters import Definition

_SUMMARY = "This template version is missing required metadata to support dynamic parameters."
_DETAIL = "To restore full functionality, please re-import the terraform as a new template version."


class Recorded(Definition, Protocol):
    """Parameter as an import recorded it, with the fields of a form (a row of the store matches)."""

    @property
    def display_name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def icon(self) -> str: ...
    @property
    def display_order(self) -> int: ...


def render_static(recorded: Iterable[Recorded], inputs: Mapping[str, str]) -> JsonObject:
    """Return diagnostics and parameters of a response, without its number."""
    parameters = [_parameter(item, inputs.get(item.name)) for item in recorded]
    parameters.sort(key=lambda item: (item["order"], item["name"].encode()))
    return {
        "diagnostics": [diagnostic(_SUMMARY, _DETAIL, severity="warning")],
        "parameters": cast("list[JsonObject]", parameters),
    }


def _parameter(row: Recorded, submitted: str | None) -> FormParameter:
    options: list[FormOption] = [
        {
            "name": as_text(option.get("name")),
            "description": as_text(option.get("description")),
            "value": {"value": as_text(option.get("value")), "valid": True},
            "icon": as_text(option.get("icon")),
        }
        for option in row.options
    ]
    kind = row.type if row.type in rules.TYPES else "string"
    form_type, complaint = rules.choose_form_type(kind, bool(options), row.form_type)
    validations = _validations(row)
    value = row.default_value if submitted is None else submitted
    body: rules.Body = {
        "type": kind,
        "form_type": form_type,
        "option": [{"name": option["name"], "value": option["value"]["value"]} for option in options],
        "validation": [rule_body(validation) for validation in validations],
    }
    if submitted is None and row.required:
        problems = [diagnostic("Required parameter not provided", "parameter value is null", "required")]
    else:
        problems = [diagnostic(item.summary, item.detail) for item in rules.check_value(body, value, None, ())]
    return {
        "name": row.name,
        "display_name": row.display_name,
        "description": row.description,
        "type": kind,
        "form_type": "error" if complaint else form_type,
        "styling": {},
        "mutable": row.mutable,
        "default_value": {"value": row.default_value, "valid": not row.required},
        "icon": row.icon,
        "options": options,
        "validations": validations,
        "required": row.required,
        "order": row.display_order,
        "ephemeral": row.ephemeral,
        "value": {"value": value, "valid": submitted is not None or not row.required},
        "diagnostics": problems,
    }


def _validations(row: Recorded) -> list[FormValidation]:
    bounds = (row.validation_min, row.validation_max)
    texts = (row.validation_error, row.validation_regex, row.validation_monotonic)
    if not any(texts) and all(bound is None for bound in bounds):
        return []
    return [
        {
            "validation_error": row.validation_error,
            "validation_regex": row.validation_regex or None,
            "validation_min": row.validation_min,
            "validation_max": row.validation_max,
            "validation_monotonic": row.validation_monotonic or None,
        }
    ]
