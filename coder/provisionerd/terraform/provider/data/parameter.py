"""coder_parameter: a value people choose when they create a workspace.

The schema and the order in which a reading goes wrong. The rules about single values are in
`domain/templates/parameter_rules.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from coder.domain.templates import parameter_rules as rules
from coder.provisionerd.terraform.provider.checks import is_url, one_of
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.kinds import Body, DataKind, ProviderContext
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema

PARAMETER_PREFIX = "CODER_PARAMETER_"
PREVIOUS_PREFIX = "CODER_PARAMETER_PREVIOUS_"


def variable_suffix(name: str) -> str:
    """How a parameter's name appears in variable names: names may hold anything, variables may not."""
    return hashlib.sha256(name.encode()).hexdigest()


_OPTION = Block(
    "list",
    {
        "name": Attribute(STRING, "required", description="What people see."),
        "value": Attribute(STRING, "required", description="What the template gets."),
        "description": Attribute(STRING, description="A line about it."),
        "icon": Attribute(STRING, check=is_url, description="URL of an image."),
    },
    description="One of the values to choose from.",
)

_REGEX_RIVALS = ("validation.0.min", "validation.0.max", "validation.0.monotonic")
_VALIDATION = Block(
    "list",
    {
        "min": Attribute(NUMBER, description="Smallest number."),
        "max": Attribute(NUMBER, description="Greatest number."),
        "min_disabled": Attribute(BOOL, "computed", description="Whether min was left out."),
        "max_disabled": Attribute(BOOL, "computed", description="Whether max was left out."),
        "monotonic": Attribute(STRING, description="Numbers that may only grow (increasing) or shrink (decreasing)."),
        "regex": Attribute(STRING, conflicts=_REGEX_RIVALS, description="RE2 expression a text must match."),
        "error": Attribute(STRING, description="What to say about a wrong value."),
    },
    max_items=1,
    description="Which values are accepted.",
)

_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "optional+computed"),
        "name": Attribute(STRING, "required", description="Name, unique in the template."),
        "display_name": Attribute(STRING, description="What people see instead of the name."),
        "description": Attribute(STRING, description="Markdown about it."),
        "type": Attribute(STRING, default="string", check=one_of(*rules.TYPES), description="Kind of value."),
        "form_type": Attribute(STRING, default="", check=one_of(*rules.FORM_TYPES), description="Kind of input."),
        "styling": Attribute(STRING, default="{}", description="JSON for the form."),
        "mutable": Attribute(BOOL, default=False, description="Whether it may change later."),
        "ephemeral": Attribute(BOOL, default=False, description="Counts for one build only."),
        "default": Attribute(STRING, description="Value when nobody chooses."),
        "icon": Attribute(STRING, check=is_url, description="URL of an image."),
        "order": Attribute(NUMBER, description="Position in the form; lower comes first."),
        "value": Attribute(STRING, "computed", description="The chosen value."),
        "optional": Attribute(BOOL, "computed", description="Whether there is a default."),
        "option": _OPTION,
        "validation": _VALIDATION,
    },
    description="A value to choose when a workspace is created.",
    unset_blocks={"validation": []},
)


def _read(context: ProviderContext, config: Body, state: Body) -> Iterator[Diagnostic]:
    has_default = config["default"] is not None
    state.update(id=context.new_id(), optional=has_default)
    for given, validation in zip(config["validation"] or [], state["validation"], strict=True):
        validation["min_disabled"] = given["min"] is None
        validation["max_disabled"] = given["max"] is None
    if state["ephemeral"] and not state["mutable"]:
        yield error("parameter can't be immutable and ephemeral")
        return
    if state["ephemeral"] and not has_default:
        yield error("ephemeral parameter requires the default property")
        return
    suffix = variable_suffix(state["name"])
    chosen = context.environment.get(PARAMETER_PREFIX + suffix)
    value = (config["default"] or "") if chosen is None else chosen
    path: rules.Path = ("default",) if chosen is None and has_default else ()

    form_type, complaint = rules.choose_form_type(state["type"], bool(state["option"]), state["form_type"])
    state["form_type"] = form_type
    if complaint:
        yield _as_diagnostic(complaint)
        return
    found = list(rules.check_options(state))
    if not found and (state["validation"] or value != ""):
        previous = context.environment.get(PREVIOUS_PREFIX + suffix)
        found += rules.check_value(state, value, previous, path)
    yield from map(_as_diagnostic, found)
    state["value"] = value


def _as_diagnostic(complaint: rules.Complaint) -> Diagnostic:
    return error(complaint.summary, complaint.detail, complaint.path)


parameter = DataKind(_SCHEMA, _read)
