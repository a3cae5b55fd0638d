"""Extraction of parameters, presets and external logins of a template, from the data sources of a plan or state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coder.base.json_types import as_object, as_text
from coder.provisionerd.terraform.extract.document import Block, ExtractError, ResourceInstance
from coder.rpc.proto import provisioner_pb2 as pb

_FORM_TYPES = {
    "": pb.ParameterFormType.DEFAULT,
    "error": pb.ParameterFormType.FORM_ERROR,
    "radio": pb.ParameterFormType.RADIO,
    "dropdown": pb.ParameterFormType.DROPDOWN,
    "input": pb.ParameterFormType.INPUT,
    "textarea": pb.ParameterFormType.TEXTAREA,
    "slider": pb.ParameterFormType.SLIDER,
    "checkbox": pb.ParameterFormType.CHECKBOX,
    "switch": pb.ParameterFormType.SWITCH,
    "tag-select": pb.ParameterFormType.TAGSELECT,
    "multi-select": pb.ParameterFormType.MULTISELECT,
}

Warn = Callable[[str, dict[str, str]], None]


def _data(resources: list[ResourceInstance], *kinds: str) -> list[ResourceInstance]:
    return [data_source for data_source in resources if data_source.mode == "data" and data_source.type in kinds]


def collect_parameters(resources: list[ResourceInstance]) -> list[pb.RichParameter]:
    """Return the parameters. Raises ExtractError for a duplicate name."""
    parameters = [_parameter(data_source) for data_source in _data(resources, "coder_parameter")]
    _check_unique("coder_parameter", [data_source.name for data_source in parameters])
    return parameters


def _check_unique(kind: str, names: list[str]) -> None:
    repeated = (name for index, name in enumerate(names) if name in names[:index])
    twice = [f'"{name}"' for name in dict.fromkeys(repeated)]
    if not twice:
        return
    listed = twice[0] if len(twice) == 1 else f"{', '.join(twice[:-1])} and {twice[-1]}"
    verb = "appears" if len(twice) == 1 else "appear"
    raise ExtractError(f"{kind} names must be unique but {listed} {verb} multiple times")


def _parameter(resource: ResourceInstance) -> pb.RichParameter:
    parameter = pb.RichParameter(
        name=resource.text("name"),
        display_name=resource.text("display_name"),
        description=resource.text("description"),
        type=resource.text("type"),
        form_type=_FORM_TYPES.get(resource.text("form_type"), pb.ParameterFormType.FORM_ERROR),
        mutable=resource.flag("mutable"),
        ephemeral=resource.flag("ephemeral"),
        default_value=resource.text("default"),
        icon=resource.text("icon"),
        required=not resource.flag("optional"),
        order=resource.number("order"),
        options=[_option(option) for option in resource.blocks("option")],
    )
    for validation in resource.blocks("validation")[:1]:
        parameter.validation_regex = validation.text("regex")
        parameter.validation_error = validation.text("error")
        parameter.validation_monotonic = validation.text("monotonic")
        low, high = (_bound(validation, name) for name in ("min", "max"))
        if low is not None:
            parameter.validation_min = low
        if high is not None:
            parameter.validation_max = high
    return parameter


def _bound(validation: Block, name: str) -> int | None:
    value = validation.values.get(name)
    disabled = validation.values.get(f"{name}_disabled")
    if disabled is None:
        # Older providers without the flags used 0 for "no bound", so only another number counts.
        return validation.number(name) if value else None
    return None if disabled or value is None else validation.number(name)


def _option(option: Block) -> pb.RichParameterOption:
    return pb.RichParameterOption(
        name=option.text("name"),
        value=option.text("value"),
        description=option.text("description"),
        icon=option.text("icon"),
    )


def collect_presets(
    resources: list[ResourceInstance], parameters: Iterable[pb.RichParameter], warn: Warn
) -> list[pb.Preset]:
    """Return the presets. Raises ExtractError for a duplicate name and for more than one default."""
    known = {parameter.name for parameter in parameters}
    presets = [_preset(data_source, known, warn) for data_source in _data(resources, "coder_workspace_preset")]
    _check_unique("coder_workspace_preset", [preset.name for preset in presets])
    defaults = sum(preset.default for preset in presets)
    if defaults > 1:
        raise ExtractError(f"a maximum of 1 coder_workspace_preset can be marked as default, but {defaults} are set")
    return presets


def _preset(resource: ResourceInstance, known: set[str], warn: Warn) -> pb.Preset:
    values = as_object(resource.values.get("parameters"))
    prebuilds = resource.blocks("prebuilds")
    if len(prebuilds) != 1:
        warn("coder_workspace_preset must have exactly one prebuild block", {})
    unknown = sorted(name for name in values if name not in known)
    if unknown:
        warn(
            "coder_workspace_preset defines preset values for at least one parameter that is not defined by the "
            "template",
            {"parameters": ", ".join(unknown)},
        )
    return pb.Preset(
        name=resource.text("name"),
        description=resource.text("description"),
        icon=resource.text("icon"),
        default=resource.flag("default"),
        parameters=[pb.PresetParameter(name=name, value=as_text(values[name])) for name in sorted(values)],
        prebuild=_prebuild(prebuilds[0] if prebuilds else Block({})),
    )


def _prebuild(block: Block) -> pb.Prebuild:
    prebuild = pb.Prebuild(instances=block.number("instances"))
    for policy in block.blocks("expiration_policy")[:1]:
        prebuild.expiration_policy.ttl = policy.number("ttl")
    for scheduling in block.blocks("scheduling")[:1]:
        prebuild.scheduling.timezone = scheduling.text("timezone")
        for schedule in scheduling.blocks("schedule"):
            prebuild.scheduling.schedule.add(cron=schedule.text("cron"), instances=schedule.number("instances"))
    return prebuild


def collect_external_auth(resources: list[ResourceInstance]) -> list[pb.ExternalAuthProviderResource]:
    """Return each provider id once; its last mention decides whether it is optional."""
    resource: dict[str, pb.ExternalAuthProviderResource] = {}
    for data_source in _data(resources, "coder_external_auth", "coder_git_auth"):
        identifier = data_source.text("id")
        resource[identifier] = pb.ExternalAuthProviderResource(id=identifier, optional=data_source.flag("optional"))
    return list(resource.values())
