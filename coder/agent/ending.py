"""How the life of an agent ends: one value, decided by whoever comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.agent.upgrade.upgrader import NewProgram


@dataclass(frozen=True, slots=True)
class Stop:
    """The machine or its user wants the agent to end: stop scripts run, nothing stays."""


@dataclass(frozen=True, slots=True)
class Given:
    """The workspace was made ahead and has got an owner: nothing of the agent before stays, no stop script runs."""


@dataclass(frozen=True, slots=True)
class ProgramUpgrade:
    """Another program goes on with everything."""

    program: NewProgram


Ending = Stop | Given | ProgramUpgrade


class LifeEnd:
    """Stop and Given are final. An upgrade is a convenience: until `seal` it yields to either of them."""

    def __init__(self) -> None:
        self._how: Ending | None = None
        self._chosen = trio.Event()
        self._sealed = False
        self._preparing = trio.CancelScope()
        self._looking = trio.CancelScope()

    def choose(self, how: Ending) -> bool:
        """True when the agent ends so, False when something else was decided before."""
        if self._how is not None and (
            self._sealed or not isinstance(self._how, ProgramUpgrade) or isinstance(how, ProgramUpgrade)
        ):
            return False
        overtaken, self._how = self._how is not None, how
        if overtaken:
            self._preparing.cancel()
        if not isinstance(how, ProgramUpgrade):
            self._looking.cancel()
        self._chosen.set()
        return True

    async def wait(self) -> Ending:
        """What was decided, as soon as something is."""
        await self._chosen.wait()
        assert self._how is not None  # noqa: S101 - the event says so
        return self._how

    @property
    def preparing(self) -> trio.CancelScope:
        """For what is done before an upgrade and can be given up: cancelled when another ending overtakes it."""
        return self._preparing

    @property
    def looking(self) -> trio.CancelScope:
        """For the search for an upgrade: cancelled by every other ending."""
        return self._looking

    def seal(self) -> Ending:
        """What is decided stays so from now on."""
        assert self._how is not None  # noqa: S101 - asked after `wait`
        self._sealed = True
        return self._how
