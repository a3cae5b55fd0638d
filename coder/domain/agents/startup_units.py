"""Startup units: named scripts of a workspace with dependencies and a status.

A unit exists from its first mention. A unit may start when all its dependencies have completed; cycles are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 128
MAX_UNITS = 1000
"""Ours: more names than any template has scripts; a bound for a runaway script."""


class UnitStatus(StrEnum):
    NOT_REGISTERED = ""
    """Status of a unit that only dependencies mention."""
    PENDING = "pending"
    STARTED = "started"
    COMPLETED = "completed"


class UnitError(ValueError):
    """A request that the units refuse; the text is for the script's author."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A dependency of a unit."""

    depends_on: str
    current: UnitStatus
    required: UnitStatus = UnitStatus.COMPLETED

    @property
    def satisfied(self) -> bool:
        return self.current is self.required


class StartupUnits:
    """All units of a workspace."""

    def __init__(self) -> None:
        self._status: dict[str, UnitStatus] = {}
        self._dependencies: dict[str, list[str]] = {}

    def snapshot(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Return the status and the dependencies of each unit, for the next agent process."""
        return {name: str(status) for name, status in self._status.items()}, dict(self._dependencies)

    def resume(self, status: Mapping[str, str], dependencies: Mapping[str, Sequence[str]]) -> None:
        """Restore the state that `snapshot` returned."""
        self._status = {name: UnitStatus(text) for name, text in status.items()}
        self._dependencies = {name: list(names) for name, names in dependencies.items()}

    def add_dependency(self, unit: str, depends_on: str) -> None:
        """Add a dependency. Raises UnitError for an invalid name, a cycle, or a unit that has started."""
        self._check(depends_on)
        if self._status.get(unit) in {UnitStatus.STARTED, UnitStatus.COMPLETED}:
            raise UnitError(f"unit {unit!r} has started; declare its dependencies before it starts")
        if path := self._path(depends_on, unit):
            raise UnitError(f"unit {unit!r} cannot depend on {depends_on!r}: {' depends on '.join(map(repr, path))}")
        self._register(unit)
        dependencies = self._dependencies.setdefault(unit, [])
        if depends_on not in dependencies:
            dependencies.append(depends_on)

    def start(self, unit: str) -> bool:
        """Start a unit; return False while a dependency is incomplete. A unit that has started is left unchanged."""
        self._register(unit)
        if not self.is_ready(unit):
            return False
        if self._status[unit] is UnitStatus.PENDING:
            self._status[unit] = UnitStatus.STARTED
        return True

    def complete(self, unit: str) -> None:
        """Complete a unit. Raises UnitError if it has not started."""
        self._check(unit)
        if self._status.get(unit) not in {UnitStatus.STARTED, UnitStatus.COMPLETED}:
            raise UnitError(f"unit {unit!r} has not started, so it cannot be complete")
        self._status[unit] = UnitStatus.COMPLETED

    def status(self, unit: str) -> UnitStatus:
        return self._status.get(unit, UnitStatus.NOT_REGISTERED)

    def is_ready(self, unit: str) -> bool:
        """Return whether all dependencies are complete."""
        return all(dependency.satisfied for dependency in self.dependencies(unit))

    def dependencies(self, unit: str) -> list[Dependency]:
        return [Dependency(name, self.status(name)) for name in self._dependencies.get(unit, ())]

    def names(self) -> list[str]:
        """Return the registered units in order of registration."""
        return list(self._status)

    def _register(self, unit: str) -> None:
        self._check(unit)
        if unit not in self._status and len(self._status) >= MAX_UNITS:
            raise UnitError(f"there are {MAX_UNITS} units already")
        self._status.setdefault(unit, UnitStatus.PENDING)

    def _check(self, unit: str) -> None:
        if not unit or len(unit) > MAX_NAME or not unit.isprintable():
            raise UnitError(f"the name of a unit has 1 to {MAX_NAME} printable characters")

    def _path(self, start: str, end: str) -> list[str]:
        """Return a path of dependencies between two units; [] when there is none."""
        paths = [[start]]
        seen = {start}
        while paths:
            path = paths.pop()
            if path[-1] == end:
                return path
            for name in self._dependencies.get(path[-1], ()):
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
        return []
