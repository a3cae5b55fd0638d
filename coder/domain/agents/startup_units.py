"""Scripts of a workspace that wait for each other: named units, what they depend on, and how far they are.

A unit exists from its first mention. It may start when everything it wants has completed; circles are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_NAME = 128
MAX_UNITS = 1000
"""Ours: more names than any template has scripts, and a bound for a script that goes wild."""


class UnitStatus(StrEnum):
    NOT_REGISTERED = ""
    "Mentioned by others only."
    PENDING = "pending"
    STARTED = "started"
    COMPLETED = "completed"


class UnitError(ValueError):
    """A request that the units refuse; its text is for the person who wrote the script."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """One thing a unit wants."""

    depends_on: str
    current: UnitStatus
    required: UnitStatus = UnitStatus.COMPLETED

    @property
    def satisfied(self) -> bool:
        return self.current is self.required


class StartupUnits:
    """All units of one workspace."""

    def __init__(self) -> None:
        self._status: dict[str, UnitStatus] = {}
        self._wanted: dict[str, list[str]] = {}

    def told(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Status of each unit, and what each wants: for the agent that goes on with them."""
        return {name: str(status) for name, status in self._status.items()}, dict(self._wanted)

    def resume(self, status: Mapping[str, str], wanted: Mapping[str, Sequence[str]]) -> None:
        """Goes on with what `told` said."""
        self._status = {name: UnitStatus(text) for name, text in status.items()}
        self._wanted = {name: list(names) for name, names in wanted.items()}

    def want(self, unit: str, depends_on: str) -> None:
        """Raises UnitError for a name that is none, a circle, or a unit that has started."""
        self._check(depends_on)
        if self._status.get(unit) in {UnitStatus.STARTED, UnitStatus.COMPLETED}:
            raise UnitError(f"unit {unit!r} has started; what it wants is said before")
        if path := self._path(depends_on, unit):
            raise UnitError(f"unit {unit!r} cannot want {depends_on!r}: {' wants '.join(map(repr, path))}")
        self._register(unit)
        wanted = self._wanted.setdefault(unit, [])
        if depends_on not in wanted:
            wanted.append(depends_on)

    def start(self, unit: str) -> bool:
        """False while something it wants is missing. A unit that has started already stays as it is."""
        self._register(unit)
        if not self.is_ready(unit):
            return False
        if self._status[unit] is UnitStatus.PENDING:
            self._status[unit] = UnitStatus.STARTED
        return True

    def complete(self, unit: str) -> None:
        """Raises UnitError for a unit that has not started."""
        self._check(unit)
        if self._status.get(unit) not in {UnitStatus.STARTED, UnitStatus.COMPLETED}:
            raise UnitError(f"unit {unit!r} has not started, so it cannot be complete")
        self._status[unit] = UnitStatus.COMPLETED

    def status(self, unit: str) -> UnitStatus:
        return self._status.get(unit, UnitStatus.NOT_REGISTERED)

    def is_ready(self, unit: str) -> bool:
        """Everything it wants is complete."""
        return all(one.satisfied for one in self.dependencies(unit))

    def dependencies(self, unit: str) -> list[Dependency]:
        return [Dependency(name, self.status(name)) for name in self._wanted.get(unit, ())]

    def names(self) -> list[str]:
        """Registered units, in the order they came."""
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
        """The units from one to another along what they want; [] when there is no such way."""
        ways = [[start]]
        seen = {start}
        while ways:
            way = ways.pop()
            if way[-1] == end:
                return way
            for name in self._wanted.get(way[-1], ()):
                if name not in seen:
                    seen.add(name)
                    ways.append([*way, name])
        return []
