"""Requests held against the table of field rules (`coder/api/field_rules.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coder.api.field_rules import faults
from coder.coderd.services.foundation.errors import InvalidFields
from coder.domain.foundation.field_rules import Rules, first_fault


def check_request(body: msgspec.Struct, present: Mapping[str, Any] | None = None) -> None:
    """Raises InvalidFields with everything that is wrong; `present` values are never refused."""
    found = faults(body, present)
    if found:
        raise InvalidFields(*found)


def check_fields(*fields: tuple[str, Any, Rules]) -> None:
    """The same for values that came by another way than a request: (name, value, rules). Raises InvalidFields."""
    found = [fault for name, value, rules in fields if (fault := first_fault(name, value, rules)) is not None]
    if found:
        raise InvalidFields(*found)
