"""Validation of build requests, before the workspace is loaded."""

from __future__ import annotations

import pytest

from coder.api.base.refusals import Invalid, InvalidFields
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.coderd.services.workspaces.builds.build_input import MAX_VALUES, parameter_values


def parameter(name: str, value: str) -> WorkspaceBuildParameter:
    return WorkspaceBuildParameter(name=name, value=value)


def test_last_value_of_name_wins() -> None:
    assert parameter_values([parameter("a", "1"), parameter("b", ""), parameter("a", "2")]) == {"a": "2", "b": ""}
    assert parameter_values(None) == {}


def test_unshowable_values_rejected() -> None:
    """A body may be large because of a template admin's state; any user may send values."""
    half = "x" * (MAX_VALUES // 2 - 1)
    parameter_values([parameter("a", half), parameter("b", half)])
    with pytest.raises(Invalid, match="too large"):
        parameter_values([parameter("a", half), parameter("b", half + "x")])
    with pytest.raises(InvalidFields):
        parameter_values([parameter("a", "\x00")])
