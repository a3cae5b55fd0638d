"""coder_parameter: a value that users choose when they create a workspace.

This module has the schema and the order of the errors. The rules about single values are in
`domain/templates/parameter_rules.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import cast

from coder.domain.templates import parameter_rules as rules
from coder.provisionerd.terraform.provider.checks import is_url, one_of
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.kinds import Body, DataKind, ProviderContext
from coder.provisionerd.terraform.provider.readers import checked_blocks, checked_text
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema

PARAMETER_PREFIX = "CODER_PARAMETER_"
PREVIOUS_PREFIX = "CODER_PARAMETER_PREVIOUS_"


def variable_suffix(name: str) -> str:
    """Return the suffix of a parameter's variable names: parameter names may contain any character, variable names may
    not."""
    return hashlib.sha256(name.encode()).hexdigest()


_OPTION = Block(
    "list",
    {
        "name": Attribute(STRING, "required", description="Text that users see."),
        "value": Attribute(STRING, "required", description="Value that the template receives."),
        "description": Attribute(STRING, description="One-line description."),
        "icon": Attribute(STRING, check=is_url, description="URL of an image."),
    },
    description="A value to choose from.",
)

_REGEX_CONFLICTS = ("validation.0.min", "validation.0.max", "validation.0.monotonic")
_VALIDATION = Block(
    "list",
    {
        "min": Attribute(NUMBER, description="Smallest number."),
        "max": Attribute(NUMBER, description="Greatest number."),
        "min_disabled": Attribute(BOOL, "computed", description="Whether min was left out."),
        "max_disabled": Attribute(BOOL, "computed", description="Whether max was left out."),
        "monotonic": Attribute(STRING, description="Numbers that may only grow (increasing) or shrink (decreasing)."),
        "regex": Attribute(STRING, conflicts=_REGEX_CONFLICTS, description="RE2 expression a text must match."),
        "error": Attribute(STRING, description="Error message for a rejected value."),
    },
    max_items=1,
    description="Rules for accepted values.",
)

_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "optional+computed"),
        "name": Attribute(STRING, "required", description="Name, unique in the template."),
        "display_name": Attribute(STRING, description="Name that users see."),
        "description": Attribute(STRING, description="Description in Markdown."),
        "type": Attribute(STRING, default="string", check=one_of(*rules.TYPES), description="Kind of value."),
        "form_type": Attribute(STRING, default="", check=one_of(*rules.FORM_TYPES), description="Kind of input."),
        "styling": Attribute(STRING, default="{}", description="JSON for the form."),
        "mutable": Attribute(BOOL, default=False, description="Whether it may change later."),
        "ephemeral": Attribute(BOOL, default=False, description="Counts for one build only."),
        "default": Attribute(STRING, description="Default value."),
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
    for configured, validation in zip(
        checked_blocks(config["validation"]), checked_blocks(state["validation"]), strict=True
    ):
        validation["min_disabled"] = configured["min"] is None
        validation["max_disabled"] = configured["max"] is None
    if state["ephemeral"] and not state["mutable"]:
        yield error("parameter can't be immutable and ephemeral")
        return
    if state["ephemeral"] and not has_default:
        yield error("ephemeral parameter requires the default property")
        return
    suffix = variable_suffix(checked_text(state["name"]))
    build_value = context.environment.get(PARAMETER_PREFIX + suffix)
    value = checked_text(config["default"] or "") if build_value is None else build_value
    path: rules.Path = ("default",) if build_value is None and has_default else ()

    kind, requested = checked_text(state["type"]), checked_text(state["form_type"])
    form_type, complaint = rules.choose_form_type(kind, bool(state["option"]), requested)
    state["form_type"] = form_type
    if complaint:
        yield _as_diagnostic(complaint)
        return
    body: rules.Body = {
        "type": kind,
        "form_type": form_type,
        "option": [
            {"name": checked_text(option["name"]), "value": checked_text(option["value"])}
            for option in checked_blocks(state["option"])
        ],
        "validation": cast("list[rules.Validation]", checked_blocks(state["validation"])),  # the schema has these types
    }
    complaints = list(rules.check_options(body))
    if not complaints and (state["validation"] or value != ""):
        previous = context.environment.get(PREVIOUS_PREFIX + suffix)
        complaints += rules.check_value(body, value, previous, path)
    yield from map(_as_diagnostic, complaints)
    state["value"] = value


def _as_diagnostic(complaint: rules.Complaint) -> Diagnostic:
    return error(complaint.summary, complaint.detail, complaint.path)


parameter = DataKind(_SCHEMA, _read)
