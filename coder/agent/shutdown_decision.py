"""Reason why an agent shuts down: one value, set by the first request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from coder.agent.upgrade.upgrader import NewProgram


@dataclass(frozen=True, slots=True)
class Stop:
    """The machine or its user ends the agent: stop scripts run, nothing stays."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A user claimed this prebuilt workspace: nothing of the previous agent stays, no stop script runs."""


@dataclass(frozen=True, slots=True)
class ProgramUpgrade:
    """Another program takes over everything."""

    program: NewProgram


ShutdownReason = Stop | Claimed | ProgramUpgrade


class ShutdownDecision:
    """Decision on how the agent ends. Stop and Claimed are final. An upgrade yields to either until `finalize` is
    called."""

    def __init__(self) -> None:
        self._reason: ShutdownReason | None = None
        self._chosen = trio.Event()
        self._sealed = False
        self._preparation = trio.CancelScope()
        self._search = trio.CancelScope()

    def choose(self, reason: ShutdownReason) -> bool:
        """Request an end. Returns True when the agent ends for this reason, False when another was decided before."""
        if self._reason is not None and (
            self._sealed or not isinstance(self._reason, ProgramUpgrade) or isinstance(reason, ProgramUpgrade)
        ):
            return False
        overtaken, self._reason = self._reason is not None, reason
        if overtaken:
            self._preparation.cancel()
        if not isinstance(reason, ProgramUpgrade):
            self._search.cancel()
        self._chosen.set()
        return True

    async def wait(self) -> ShutdownReason:
        """Wait for a decision and return it."""
        await self._chosen.wait()
        assert self._reason is not None  # noqa: S101 - the event says so
        return self._reason

    @property
    def upgrade_preparation(self) -> trio.CancelScope:
        """Cancel scope of the preparation of an upgrade; another reason that overtakes the upgrade cancels it."""
        return self._preparation

    @property
    def upgrade_search(self) -> trio.CancelScope:
        """Cancel scope of the search for an upgrade; every other reason cancels it."""
        return self._search

    def finalize(self) -> ShutdownReason:
        """Make the decision final and return it."""
        assert self._reason is not None  # noqa: S101 - called after `wait`
        self._sealed = True
        return self._reason
