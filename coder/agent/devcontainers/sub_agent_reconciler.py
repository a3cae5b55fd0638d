"""Reconciliation of the server's sub-agents with the dev containers known here.

A sub-agent that the server has deleted, or whose token has changed, is useless to its container, and the agent inside
would redial with it forever. A sub-agent known only to the server is an orphan: its creator ended before the reply
arrived, or its container was removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import trio

from coder.agent.devcontainers.commands import CommandError
from coder.agent.devcontainers.entries import Devcontainer, preset_agents
from coder.agent.devcontainers.sub_agents import SubAgent, SubAgentClient
from coder.agent.state import AgentState
from coder.base.log import get_logger

log = get_logger("agent.devcontainers")

INTERVAL = 60.0
"""Seconds (ours) between two reconciliations; a new connection or stale state triggers one immediately."""


class SubAgentReconciler:
    """Reconciler of one agent process."""

    def __init__(
        self,
        state: AgentState,
        calls: SubAgentClient,
        known: Callable[[], Collection[Devcontainer]],
        renew: Callable[[Devcontainer, SubAgent | None], None],
    ) -> None:
        """`renew` gives a dev container's sub-agent another token, or removes it so that another is created."""
        self._state, self._calls, self._known, self._renew = state, calls, known, renew

    async def run(self) -> None:
        while True:
            with trio.move_on_after(INTERVAL):
                await self._calls.wait_triggered()
            if not self._calls.is_stale and not any(devcontainer.agent is not None for devcontainer in self._known()):
                continue
            try:
                await self.reconcile()
            except CommandError as error:
                log.warn("listing the server's sub-agents failed", error=error)
            except Exception as error:  # a defect of ours, which must not end the agent
                log.error("reconciling the sub-agents failed", error=error)

    async def reconcile(self) -> None:
        """Reconcile once. Raises CommandError."""
        async with self._calls.creating:
            since = trio.current_time()
            at_server = {sub_agent.id: sub_agent for sub_agent in await self._calls.list_all()}
            self._renew_stale(list(self._known()), at_server.values())
            if self._calls.is_stale:
                manifest = self._state.manifest
                ours = preset_agents(manifest) if manifest is not None else set()
                ours |= {devcontainer.agent.id for devcontainer in self._known() if devcontainer.agent is not None}
                for ident in at_server.keys() - ours:
                    await self._calls.delete(ident)
                    log.info("an orphaned sub-agent was deleted", name=at_server[ident].name)
                self._calls.mark_reconciled(since)

    def _renew_stale(self, known: Iterable[Devcontainer], at_server: Iterable[SubAgent]) -> None:
        tokens = {sub_agent.id: sub_agent.token for sub_agent in at_server}
        for devcontainer in known:
            if devcontainer.agent is None or tokens.get(devcontainer.agent.id) == devcontainer.agent.token:
                continue
            token = tokens.get(devcontainer.agent.id)
            log.warn("the server rejects the agent of a dev container", name=devcontainer.name, gone=token is None)
            self._renew(devcontainer, None if token is None else replace(devcontainer.agent, token=token))
