"""Rich parameters of a build: resolution of values, and validation against the template.

Precedence, later wins: the template's default, the previous build's value (except for ephemeral parameters), the
caller's value, the preset's value. Values for undefined parameters are silently dropped. The words of the refusals are
the API's (recorded: areas workspaces and builds).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import re2

from coder.base.json_types import Json
from coder.domain.foundation.search import FieldRefusal

_INVALID = "Invalid parameter value according to 'validation' block"


class Definition(Protocol):
    """Parameter definition recorded by an import (a row of the store matches)."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def form_type(self) -> str: ...
    @property
    def mutable(self) -> bool: ...
    @property
    def default_value(self) -> str: ...
    @property
    def options(self) -> Sequence[Mapping[str, Json]]: ...
    @property
    def validation_regex(self) -> str: ...
    @property
    def validation_error(self) -> str: ...
    @property
    def validation_min(self) -> int | None: ...
    @property
    def validation_max(self) -> int | None: ...
    @property
    def validation_monotonic(self) -> str: ...
    @property
    def required(self) -> bool: ...
    @property
    def ephemeral(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Resolution:
    """Values by name, and the reasons for refusal (empty when valid)."""

    values: dict[str, str]
    refusals: list[FieldRefusal] = field(default_factory=list)


def resolve_parameters(
    definitions: Iterable[Definition],
    *,
    previous: Mapping[str, str],
    given: Mapping[str, str],
    preset: Mapping[str, str],
    first_build: bool,
) -> Resolution:
    """Resolve the parameters of a start build."""
    values: dict[str, str] = {}
    refusals: list[FieldRefusal] = []
    for definition in definitions:
        name = definition.name
        value = _choose(definition, previous, given, preset)
        if value is None:
            refusals.append(FieldRefusal(name, "Required parameter not provided; parameter value is null"))
            continue
        values[name] = value
        before = previous.get(name)
        reason = explain_value(definition, value)
        if reason is None and not first_build and before is not None:
            reason = _explain_change(definition, before, value)
        if reason is not None:
            refusals.append(FieldRefusal(name, reason))
    return Resolution(values, refusals)


def keep_parameters(definitions: Iterable[Definition], previous: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a stop or delete build: the last build's values, and defaults for newer parameters.

    Ephemeral values are left out, since they were for that build alone. Values are not validated: stopping must always
    be possible.
    """
    return {
        definition.name: previous.get(definition.name, definition.default_value)
        for definition in definitions
        if not definition.ephemeral
    }


def explain_value(definition: Definition, value: str) -> str | None:
    """Return why a value is invalid for a parameter; None when it is valid."""
    kind = definition.type
    if kind == "list(string)":
        items = _string_list(value)
        if items is None:
            return f'{_INVALID}; value "{value}" is not valid list of strings'
        return _explain_options(definition, items if definition.form_type == "multi-select" else [value])
    if kind == "bool" and value not in {"true", "false"}:
        return f'{_INVALID}; boolean value can be either "true" or "false"'
    if definition.options:
        return _explain_options(definition, [value])
    if kind == "number":
        return _explain_number(definition, value)
    return _explain_regex(definition, value) if kind == "string" else None


def _choose(
    definition: Definition, previous: Mapping[str, str], given: Mapping[str, str], preset: Mapping[str, str]
) -> str | None:
    name = definition.name
    for source in (preset, given):
        if name in source:
            return source[name]
    if name in previous and not definition.ephemeral:
        return previous[name]
    return None if definition.required else definition.default_value


def _explain_options(definition: Definition, values: list[str]) -> str | None:
    allowed = {option.get("value") for option in definition.options}
    for value in values:
        if allowed and value not in allowed:
            return f'Value must be a valid option; the value "{value}" must be defined as one of options'
    return None


def _explain_number(definition: Definition, text: str) -> str | None:
    number = _number(text)
    if number is None:
        return f'{_INVALID}; value "{text}" is not a number'
    low, high = definition.validation_min, definition.validation_max
    if low is not None and number < low:
        return f"{_INVALID}; {_custom(definition, text) or f'value {text} is less than the minimum {low}'}"
    if high is not None and number > high:
        return f"{_INVALID}; {_custom(definition, text) or f'value {text} is more than the maximum {high}'}"
    return None


def _explain_regex(definition: Definition, value: str) -> str | None:
    pattern = definition.validation_regex
    if not pattern:
        return None
    try:
        # RE2, as Terraform's provider uses: linear time for any pattern of a template's author.
        matches = re2.search(pattern, value) is not None
    except re2.error:
        return f'{_INVALID}; the pattern "{pattern}" is not a regular expression'
    if matches:
        return None
    message = _custom(definition, value) or "the value does not match"
    return f'{_INVALID}; {message} (value "{value}" does not match "{pattern}")'


def _explain_change(definition: Definition, before: str, value: str) -> str | None:
    name = definition.name
    if not definition.mutable and value != before:
        return (
            f'Immutable parameter changed; Parameter "{name}" is not mutable, '
            "so it can't be updated after creating a workspace."
        )
    old, new = _number(before), _number(value)
    if old is None or new is None:
        return None
    if definition.validation_monotonic == "increasing" and new < old:
        word = "greater"
    elif definition.validation_monotonic == "decreasing" and new > old:
        word = "lower"
    else:
        return None
    return (
        f"Parameter \"{name}\" monotonicity; parameter value '{value}' must be equal or {word} "
        f"than previous value: {before}"
    )


def _custom(definition: Definition, value: str) -> str:
    text = definition.validation_error
    for key, replacement in (
        ("{min}", definition.validation_min),
        ("{max}", definition.validation_max),
        ("{value}", value),
    ):
        text = text.replace(key, str(replacement))
    return text


def _number(text: str) -> int | None:
    try:
        return int(text) if text.strip() == text and "_" not in text else None
    except ValueError:
        return None


def _string_list(text: str) -> list[str] | None:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return items if isinstance(items, list) and all(isinstance(item, str) for item in items) else None
