"""Presets of a template, and validation of their prebuilds."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

from coder.base.json_types import JsonObject, as_text
from coder.domain.hcl import values as v
from coder.domain.rendering.module_scope import Instance, RenderRequest
from coder.domain.rendering.parameters import Rendered, diagnostic, render
from coder.domain.rendering.sources import Files
from coder.domain.templates import parameter_rules as rules


class Preset(TypedDict):
    """Preset of a template, with the field names of the client API."""

    name: str
    default: bool
    parameters: dict[str, str]
    prebuilds: dict[str, int] | None
    diagnostics: list[JsonObject]


def render_presets(files: Files, request: RenderRequest, rendered: Rendered) -> list[Preset]:
    """Render the presets in the order of their labels. Presets with prebuilds are validated: a prebuild has no user to
    correct a value."""
    presets: list[Preset] = []
    default_name = ""
    for world in rendered.world.walk():
        result = sorted(world.source.of("data", "coder_workspace_preset"), key=lambda item: item.block.labels)
        for instance in (instance for located in result for instance in world.expand(located)):
            preset = _preset(instance)
            if preset["prebuilds"] is not None:
                preset["diagnostics"] = _try_out(files, request, preset)
            if preset["default"] and default_name:
                detail = f'Only one preset can be marked as default. "{default_name}" is already marked as default'
                preset["diagnostics"].append(diagnostic("Multiple default presets", detail))
            elif preset["default"]:
                default_name = preset["name"]
            presets.append(preset)
    return presets


def _preset(instance: Instance) -> Preset:
    def value(name: str) -> v.Value:
        return instance.world.evaluate(instance.attribute(name), instance.scope)

    name, parameters = value("name"), value("parameters")
    prebuilds = next((block for block in instance.located.block.body.blocks if block.type == "prebuilds"), None)
    instances = (
        None
        if prebuilds is None
        else instance.world.evaluate(prebuilds.body.attributes.get("instances"), instance.scope)
    )
    return {
        "name": name if isinstance(name, str) else "",
        "default": value("default") is True or value("default") == "true",
        "parameters": {
            name: v.to_text(setting)
            for name, setting in (parameters if isinstance(parameters, dict) else {}).items()
            if isinstance(setting, str | int | float)
        },
        "prebuilds": None if prebuilds is None else {"instances": instances if isinstance(instances, int) else 0},
        "diagnostics": [],
    }


def _try_out(files: Files, request: RenderRequest, preset: Preset) -> list[JsonObject]:
    trial = render(files, replace(request, inputs=preset["parameters"]))
    known = {parameter["name"] for parameter in trial.parameters}
    problems: list[JsonObject] = [
        {**problem, "summary": f"Parameter {parameter['name']}: {problem['summary']}"}
        for parameter in trial.parameters
        for problem in parameter["diagnostics"]
        if problem["severity"] == "error"
    ]
    problems += [
        diagnostic("Undefined Parameter", f'Preset parameter "{name}" is not defined by the template.')
        for name in sorted(preset["parameters"])
        if name not in known
    ]
    return problems


def refused(message: str, validations: list[JsonObject]) -> JsonObject | None:
    """Return the 400 response for these validations; None when there are none."""
    if not validations:
        return None
    ordered = sorted(validations, key=lambda item: as_text(item["field"]))
    return {"status": 400, "response": {"message": message, "validations": ordered}}


def check_parameters(rendered: Rendered) -> JsonObject | None:
    """Return the refusal of a template version with these parameters: its import would run, and fail at its end."""
    problems: list[JsonObject] = [
        {"field": item["name"], "detail": excess}
        for item in rendered.parameters
        if (excess := rules.too_many_options(len(item["options"])))
    ]
    return refused("Unable to validate parameters", problems)


def check_presets(presets: list[Preset]) -> JsonObject | None:
    """Return the refusal of a template version with these presets."""
    validations: list[JsonObject] = [
        {"field": preset["name"], "detail": f"{problem['summary']}; {problem['detail']}"}
        for preset in presets
        for problem in preset["diagnostics"]
    ]
    return refused("Unable to validate presets", validations)
