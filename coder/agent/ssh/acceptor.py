"""Acceptor of SSH streams that imports the SSH server at the first connection.

The SSH library takes as long to import as the rest of the start, and a fifth of an idle agent's memory. Most agents are
idle most of the time, and many are reached by a web terminal or an application only. The first connection pays half a
second of processor time on a slow machine, once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState
from coder.base.threads import in_thread_or_here

if TYPE_CHECKING:
    from coder.agent.ssh.server import SshService


class SshAcceptor:
    """Acceptor of streams, inside a trio-asyncio loop."""

    def __init__(self, state: AgentState, *, max_timeout: float) -> None:
        self._state = state
        self._max_timeout = max_timeout
        self._service: SshService | None = None
        self._loading = trio.Lock()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end. Never raises for a peer's misbehaviour."""
        with self._state.activity.of("SSH connections"):
            service = await self._loaded()
            await service.serve(stream)

    async def _loaded(self) -> SshService:
        async with self._loading:
            if self._service is None:
                await in_thread_or_here(import_module, "coder.agent.ssh.server")
                from coder.agent.ssh.server import SshService

                self._service = SshService(self._state, max_timeout=self._max_timeout)
            return self._service

    def terminate_all(self) -> None:
        """Terminate the programs of all sessions."""
        if self._service is not None:
            self._service.runner.terminate_all()
