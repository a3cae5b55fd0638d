"""Check requests against the table of field rules (`coder/api/field_rules/table.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coder.api.base.refusals import Invalid, InvalidFields, Refusal
from coder.api.field_rules.rules import ITSELF, Rules, first_fault
from coder.api.field_rules.table import Fault, faults


def check_request(body: msgspec.Struct, present: Mapping[str, Any] | None = None) -> None:
    """Raise Invalid with every fault of a request. Values equal to the `present` ones are never refused."""
    problems = faults(body, present)
    if problems:
        raise _refusal(problems)


def _refusal(faults: list[Fault]) -> Refusal:
    """Return the refusal in the wording of the first fault. A fault that has a message is reported alone."""
    first = faults[0]
    if not first.message:
        return InvalidFields(*((fault.field, fault.detail) for fault in faults if not fault.message))
    message = first.detail if first.message is ITSELF else first.message
    return (
        InvalidFields((first.field, first.detail), message=message) if first.listed else Invalid(message, first.detail)
    )


def check_fields(*fields: tuple[str, Any, Rules[Any]]) -> None:
    """Check values that do not come from a request: (name, value, rules). Raises InvalidFields."""
    faults = [fault for name, value, rules in fields if (fault := first_fault(name, value, rules)) is not None]
    if faults:
        raise InvalidFields(*faults)
