"""What the server has of this agent's sub-agents and what is known of them here, compared: neither has one alone.

One that has gone there, or has another token, is no good to its container, and the agent inside would dial with it for
ever. One that only the server has is nobody's: what made it ended before its answer came, or its container has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import trio

from coder.agent.devcontainers.commands import CommandError
from coder.agent.devcontainers.entries import Devcontainer, presets
from coder.agent.devcontainers.sub_agents import SubAgent, SubAgentCalls
from coder.agent.state import AgentState
from coder.base.log import get_logger

log = get_logger("agent.devcontainers")

INTERVAL = 60.0
"""Ours: seconds between two looks; a new connection and a doubt are looked into at once."""


class InStep:
    """Of one agent process."""

    def __init__(
        self,
        state: AgentState,
        calls: SubAgentCalls,
        known: Callable[[], Collection[Devcontainer]],
        renew: Callable[[Devcontainer, SubAgent | None], None],
    ) -> None:
        """`renew` gives a dev container's agent another token, or takes it away for another to be made."""
        self._state, self._calls, self._known, self._renew = state, calls, known, renew

    async def run(self) -> None:
        while True:
            with trio.move_on_after(INTERVAL):
                await self._calls.wait_asked()
            if not self._calls.is_doubtful and not any(one.agent is not None for one in self._known()):
                continue
            try:
                await self.compare()
            except CommandError as error:
                log.warn("the sub-agents at the server could not be looked at", error=error)
            except Exception as error:  # a defect of ours, which must not end the agent
                log.error("comparing the sub-agents failed", error=error)

    async def compare(self) -> None:
        """Raises CommandError."""
        async with self._calls.making:
            since = trio.current_time()
            there = {found.id: found for found in await self._calls.listed()}
            self._look_for_ours(list(self._known()), there.values())
            if self._calls.is_doubtful:
                manifest = self._state.manifest
                ours = presets(manifest) if manifest is not None else set()
                ours |= {one.agent.id for one in self._known() if one.agent is not None}
                for ident in there.keys() - ours:
                    await self._calls.delete(ident)
                    log.info("a sub-agent that nobody knows was removed", name=there[ident].name)
                self._calls.settle(since)

    def _look_for_ours(self, known: Iterable[Devcontainer], there: Iterable[SubAgent]) -> None:
        at_server = {found.id: found.token for found in there}
        for one in known:
            if one.agent is None or at_server.get(one.agent.id) == one.agent.token:
                continue
            token = at_server.get(one.agent.id)
            log.warn("the agent of a dev container is let in no longer", name=one.name, gone=token is None)
            self._renew(one, None if token is None else replace(one.agent, token=token))
