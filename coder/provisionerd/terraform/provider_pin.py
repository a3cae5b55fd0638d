"""Templates written for version 0.x or 1.x of the coder provider.

The provisioner serves one version, whatever a template pins. Most old templates work with it; for those that use what
2.0 removed, terraform says "Unsupported attribute", which does not mention the provider.
"""

from __future__ import annotations

import re

from coder.provisionerd.terraform.provider.catalog import PROVIDER_VERSION
from coder.provisionerd.terraform.template import ReadTemplate, constant

SCHEMA_ERRORS = frozenset(
    {
        "Unsupported attribute",
        "Unsupported argument",
        "Unsupported block type",
        "Invalid data source",
        "Invalid resource type",
    }
)
"""Terraform's summaries of what a provider's schema does not have."""
_SOURCES = frozenset({"coder/coder", "registry.terraform.io/coder/coder", "registry.opentofu.org/coder/coder"})
_CONDITION = re.compile(r"(?:(=|!=|>=|<=|>|<|~>)\s*)?v?(\d{1,6}(?:\.\d{1,6}){0,2})(?:-[0-9A-Za-z.-]+)?")
_NEWEST_MINOR = 99
"Minors of 2.x that a constraint is tried with, besides the versions that it names; 2.19 is the newest today."


def explain_pin(template: ReadTemplate) -> str:
    """Return a sentence for a template whose constraint allows no version 2.x of the provider; "" for any other."""
    pin = _pin(template)
    named = [_padded(match[2]) for part in pin.split(",") if (match := _CONDITION.fullmatch(part.strip()))]
    candidates = [(2, minor, 0) for minor in range(_NEWEST_MINOR)] + [version for version in named if version[0] >= 2]
    if not pin or any(allows(pin, version) for version in candidates):
        return ""
    return (
        f'The template pins version "{pin}" of the coder provider but this provisioner serves {PROVIDER_VERSION}, '
        "which has no such name any more: remove the version, and replace what 2.0 removed, as the owner's attributes "
        "of data.coder_workspace by data.coder_workspace_owner."
    )


def _pin(template: ReadTemplate) -> str:
    for _, block in template.blocks("terraform"):
        for inner in block.body.blocks:
            if inner.type != "required_providers":
                continue
            for expression in inner.body.attributes.values():
                value = constant(expression)
                if isinstance(value, dict) and str(value.get("source", "")).lower() in _SOURCES:
                    return str(value.get("version") or "")
    return ""


def allows(constraint: str, version: tuple[int, int, int]) -> bool:
    """Return whether a version fulfils a constraint of Terraform's form, as `>= 0.12, < 2.0`. One of another form
    allows every version: terraform reports it."""
    conditions = [_CONDITION.fullmatch(part.strip()) for part in constraint.split(",")]
    return not all(conditions) or all(_fulfils(match[1] or "=", match[2], version) for match in conditions if match)


def _padded(text: str) -> tuple[int, int, int]:
    major, minor, patch, *_ = (*map(int, text.split(".")), 0, 0)
    return major, minor, patch


def _fulfils(operator: str, text: str, version: tuple[int, int, int]) -> bool:
    numbers, given = [int(number) for number in text.split(".")], _padded(text)
    match operator:
        case "=":
            return version == given
        case "!=":
            return version != given
        case ">":
            return version > given
        case ">=":
            return version >= given
        case "<":
            return version < given
        case "<=":
            return version <= given
    # `~>` lets the last number grow: ~> 1.2 is 1.2 to 1.x, ~> 1.2.3 is 1.2.3 to 1.2.x
    fixed = max(1, len(numbers) - 1)
    return version >= given and list(version[:fixed]) == numbers[:fixed]
