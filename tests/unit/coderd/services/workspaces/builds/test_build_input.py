"""What a request for a build may hold, before anybody looks at the workspace."""

from __future__ import annotations

import pytest

from coder.api.base.refusals import Invalid, InvalidFields
from coder.api.templates.parameters import WorkspaceBuildParameter
from coder.coderd.services.workspaces.builds.build_input import MAX_VALUES, parameter_values


def given(name: str, value: str) -> WorkspaceBuildParameter:
    return WorkspaceBuildParameter(name=name, value=value)


def test_of_several_values_the_last_counts() -> None:
    assert parameter_values([given("a", "1"), given("b", ""), given("a", "2")]) == {"a": "2", "b": ""}
    assert parameter_values(None) == {}


def test_values_no_form_could_show_are_refused() -> None:
    """A body may be large for the sake of a state that template managers give; everybody may give values."""
    half = "x" * (MAX_VALUES // 2 - 1)
    parameter_values([given("a", half), given("b", half)])
    with pytest.raises(Invalid, match="too large"):
        parameter_values([given("a", half), given("b", half + "x")])
    with pytest.raises(InvalidFields):
        parameter_values([given("a", "\x00")])
