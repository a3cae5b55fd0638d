"""Parameter values of a build: from earlier builds, the request, a preset and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coder.base.json_types import JsonObject
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import FormParameter, Rendered, render, rule_body
from coder.domain.rendering.presets import refused
from coder.domain.rendering.sources import Files
from coder.domain.templates import parameter_rules as rules


@dataclass(frozen=True, slots=True)
class GivenValues:
    """Values by parameter name."""

    build: Mapping[str, str] = field(default_factory=dict)
    previous: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, str] = field(default_factory=dict)
    first_build: bool = False


def build_values(files: Files, request: RenderRequest, given: GivenValues) -> tuple[dict[str, str], JsonObject | None]:
    """Return (values to store, None), or ({}, the refusal)."""
    chosen = {**given.build, **given.preset}
    # An ephemeral value counts for one build only, so those of earlier builds are not carried over.
    ephemeral = {
        parameter["name"]
        for parameter in render(files, replace(request, inputs=chosen)).parameters
        if parameter["ephemeral"]
    }
    carried = {name: value for name, value in given.previous.items() if name not in ephemeral}
    rendered = render(files, replace(request, inputs={**carried, **chosen}))
    problems = [problem for parameter in rendered.parameters for problem in _problems(parameter, given)]
    refusal = refused("Unable to validate parameters", problems)
    return ({}, refusal) if refusal else (_values(rendered), None)


def _values(rendered: Rendered) -> dict[str, str]:
    return {
        parameter["name"]: parameter["value"]["value"]
        for parameter in rendered.parameters
        if parameter["value"]["valid"]
    }


def _problems(parameter: FormParameter, given: GivenValues) -> list[JsonObject]:
    name, value = parameter["name"], parameter["value"]
    results: list[JsonObject] = [
        {"field": name, "detail": f"{item['summary']}; {item['detail']}"}
        for item in parameter["diagnostics"]
        if item["severity"] == "error"
    ]
    previous = None if given.first_build else given.previous.get(name)
    if previous is None or results or not value["valid"]:
        return results
    if not parameter["mutable"] and value["value"] != previous:
        detail = f'Parameter "{name}" is not mutable, so it can\'t be updated after creating a workspace.'
        return [{"field": name, "detail": f"Immutable parameter changed; {detail}"}]
    for validation in parameter["validations"]:
        body = rule_body(validation)
        if body["monotonic"]:
            reason = rules.validation_problem(body, parameter["type"], value["value"], previous)
            if reason:
                return [{"field": name, "detail": f'Parameter "{name}" monotonicity; {reason}'}]
    return []
