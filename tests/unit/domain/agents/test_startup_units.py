"""Startup units with dependencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.agents.startup_units import MAX_NAME, MAX_UNITS, StartupUnits, UnitError, UnitStatus


def test_unit_starts_after_dependencies_complete() -> None:
    units = StartupUnits()
    units.add_dependency("app", "db")
    units.add_dependency("app", "repo")
    units.add_dependency("app", "db")
    assert [dependency.depends_on for dependency in units.dependencies("app")] == ["db", "repo"]
    assert units.status("db") is UnitStatus.NOT_REGISTERED and units.names() == ["app"]
    for name in ("db", "repo"):
        assert not units.start("app")
        assert units.start(name) and not units.start("app")
        units.complete(name)
    assert units.start("app") and units.start("app")
    assert units.status("app") is UnitStatus.STARTED
    units.complete("app")
    units.complete("app")
    assert units.start("app") and units.status("app") is UnitStatus.COMPLETED


def test_refused_dependencies() -> None:
    units = StartupUnits()
    units.add_dependency("a", "b")
    units.add_dependency("b", "c")
    with pytest.raises(UnitError, match="'a' depends on 'b' depends on 'c'"):
        units.add_dependency("c", "a")
    with pytest.raises(UnitError, match="cannot depend on 'd'"):
        units.add_dependency("d", "d")
    with pytest.raises(UnitError, match="has not started"):
        units.complete("c")
    units.start("c")
    with pytest.raises(UnitError, match="has started"):
        units.add_dependency("c", "x")
    for name in ("", "x" * (MAX_NAME + 1), "a\nb"):
        with pytest.raises(UnitError, match="printable"):
            units.start(name)


def test_number_of_units_is_limited() -> None:
    units = StartupUnits()
    for number in range(MAX_UNITS):
        units.start(str(number))
    with pytest.raises(UnitError, match="already"):
        units.start("more")
    assert units.start("0")


NAMES = st.sampled_from("abcdef")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=30))
def test_accepted_dependencies_can_all_complete(wishes: list[tuple[str, str]]) -> None:
    """Accepted dependencies have no cycle: there is always a unit that may start."""
    units = StartupUnits()
    for unit, depends_on in wishes:
        try:
            units.add_dependency(unit, depends_on)
        except UnitError:
            continue
    left = set("abcdef")
    while left:
        ready = {name for name in left if units.start(name)}
        assert ready
        for name in ready:
            units.complete(name)
        left -= ready
