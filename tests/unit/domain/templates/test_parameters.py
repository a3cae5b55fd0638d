from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from coder.domain.templates.parameters import keep_parameters, resolve_parameters


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str = "string"
    form_type: str = "input"
    mutable: bool = True
    default_value: str = ""
    options: Sequence[Mapping[str, Any]] = ()
    validation_regex: str = ""
    validation_error: str = ""
    validation_min: int | None = None
    validation_max: int | None = None
    validation_monotonic: str = ""
    required: bool = False
    ephemeral: bool = False


REGION = Parameter("region", mutable=False, default_value="eu", options=({"value": "eu"}, {"value": "us"}))
CPU = Parameter(
    "cpu", "number", default_value="2", validation_min=1, validation_max=8, validation_monotonic="increasing"
)
PROJECT = Parameter("project", required=True, validation_regex="^[a-z]*$", validation_error="only lower-case letters")
DEBUG = Parameter("debug", "bool", default_value="false", ephemeral=True)
TOOLS = Parameter("tools", "list(string)", default_value='["git"]')
ALL = [REGION, CPU, PROJECT, DEBUG, TOOLS]


def resolve(given: dict[str, str], previous: dict[str, str] | None = None, preset: dict[str, str] | None = None) -> Any:
    return resolve_parameters(
        ALL, previous=previous or {}, given=given, preset=preset or {}, first_build=previous is None
    )


def test_defaults_given_preset_and_unknown() -> None:
    result = resolve({"project": "a", "zzz": "1"}, preset={"cpu": "8"})
    assert result.refusals == []
    assert result.values == {"region": "eu", "cpu": "8", "project": "a", "debug": "false", "tools": '["git"]'}


@pytest.mark.parametrize(
    ("given", "field", "detail"),
    [
        ({}, "project", "Required parameter not provided; parameter value is null"),
        (
            {"project": "a", "region": "mars"},
            "region",
            'Value must be a valid option; the value "mars" must be defined as one of options',
        ),
        (
            {"project": "a", "cpu": "99"},
            "cpu",
            "Invalid parameter value according to 'validation' block; value 99 is more than the maximum 8",
        ),
        (
            {"project": "a", "cpu": "many"},
            "cpu",
            "Invalid parameter value according to 'validation' block; value \"many\" is not a number",
        ),
        (
            {"project": "ABC"},
            "project",
            "Invalid parameter value according to 'validation' block; only lower-case letters "
            '(value "ABC" does not match "^[a-z]*$")',
        ),
    ],
)
def test_recorded_refusals(given: dict[str, str], field: str, detail: str) -> None:
    (refusal,) = resolve(given).refusals
    assert (refusal.field, refusal.detail) == (field, detail)


def test_changes_against_the_previous_build() -> None:
    before = {"region": "eu", "cpu": "4", "project": "a", "debug": "true", "tools": "[]"}
    result = resolve({}, before)
    assert result.refusals == []
    assert result.values == {**before, "debug": "false"}  # ephemeral falls back
    (refusal,) = resolve({"cpu": "2"}, before).refusals
    assert refusal.detail == (
        "Parameter \"cpu\" monotonicity; parameter value '2' must be equal or greater than previous value: 4"
    )
    (refusal,) = resolve({"region": "us"}, before).refusals
    assert "is not mutable" in refusal.detail


def test_stopping_validates_nothing() -> None:
    assert keep_parameters([CPU, PROJECT], {"cpu": "99"}) == {"cpu": "99", "project": ""}
