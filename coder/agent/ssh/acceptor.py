"""Acceptor of SSH streams that imports the SSH server, and opens its asyncio loop, at the first connection.

The SSH library takes as long to import as the rest of the start, and a fifth of an idle agent's memory; asyncio and its
bridge are another 3 MiB. Most agents are idle most of the time, and many are reached by a web terminal or an
application only. The first connection pays half a second of processor time on a slow machine, once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState
from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here

if TYPE_CHECKING:
    from trio_asyncio import TrioEventLoop

    from coder.agent.ssh.server import SshService

log = get_logger("agent")


class SshAcceptor:
    """Acceptor of streams; serves them inside `open`."""

    def __init__(self, state: AgentState, *, max_timeout: float) -> None:
        self._state = state
        self._max_timeout = max_timeout
        self._service: SshService | None = None
        self._loading = trio.Lock()
        self._wanted = trio.Event()
        """Set by the first connection, and by the end."""
        self._opened = trio.Event()
        self._closed = trio.Event()
        self._loop: TrioEventLoop | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep an asyncio loop for the sessions from the first connection on. All calls of `serve` end before it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_loop)
            try:
                yield
            finally:
                self._closed.set()
                self._wanted.set()

    async def _keep_loop(self) -> None:
        # A cancellation from outside reaches the sessions first: they end inside their loop.
        with trio.CancelScope(shield=True):
            await self._wanted.wait()
            if self._closed.is_set():
                return
            import trio_asyncio

            async with trio_asyncio.open_loop() as loop:
                loop.set_exception_handler(_note_stray_failure)
                self._loop = loop
                self._opened.set()
                await self._closed.wait()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end. Never raises for a peer's misbehaviour."""
        with self._state.activity.of("SSH connections"):
            service = await self._loaded()
            from trio_asyncio import current_loop

            current_loop.set(self._loop)  # for this task and its children, which other nurseries started
            await service.serve(stream)

    async def _loaded(self) -> SshService:
        async with self._loading:
            if self._service is None:
                await in_thread_or_here(import_module, "coder.agent.ssh.server")
                from coder.agent.ssh.server import SshService

                self._wanted.set()
                await self._opened.wait()
                self._service = SshService(self._state, max_timeout=self._max_timeout)
            return self._service

    def terminate_all(self) -> None:
        """Terminate the programs of all sessions."""
        if self._service is not None:
            self._service.runner.terminate_all()


def _note_stray_failure(_loop: object, context: dict[str, object]) -> None:
    """Log an exception that an SSH session left unawaited. Otherwise trio-asyncio would end the agent and every other
    session."""
    error = context.get("exception")
    log.debug(
        "an SSH task failed after its session closed",
        said=str(context.get("message")),
        error=error if isinstance(error, BaseException) else "",
    )
