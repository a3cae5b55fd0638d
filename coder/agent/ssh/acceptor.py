"""Where SSH streams arrive: what serves them is loaded beside the agent's first steps, not before them.

Loading the SSH library costs as much as all the rest of a start. The server counts an agent as connected, and runs its
scripts, before anybody can have got here; who is that fast waits for the remainder.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState

if TYPE_CHECKING:
    from coder.agent.ssh.server import SshService


class SshAcceptor:
    """Accepts streams at any time. `open` must run once, inside a trio-asyncio loop."""

    def __init__(self, state: AgentState, *, max_timeout: float) -> None:
        self._state = state
        self._max_timeout = max_timeout
        self._service: SshService | None = None
        self._ready = trio.Event()

    async def open(self) -> None:
        """Loads the service; streams that wait are served then."""
        await trio.to_thread.run_sync(import_module, "coder.agent.ssh.server")
        from coder.agent.ssh.server import SshService

        self._service = SshService(self._state, max_timeout=self._max_timeout)
        self._ready.set()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection, to its end. Never raises for what the peer did."""
        await self._ready.wait()
        assert self._service is not None  # noqa: S101 - set before `ready`
        await self._service.serve(stream)

    def terminate_all(self) -> None:
        """Ends the programs of all sessions."""
        if self._service is not None:
            self._service.runner.terminate_all()
