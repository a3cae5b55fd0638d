"""Where the streams of the agent's HTTP API arrive: what serves them is loaded when the first one comes.

Its routes reach into most of what an agent can do, and many agents are never asked for any of it. Like the SSH service
(`coder/agent/ssh/acceptor.py`) it is paid for by the first connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState
from coder.base.threads import in_thread_or_here

if TYPE_CHECKING:
    from coder.agent.network.http_api import HttpApi


class HttpDoor:
    """Accepts streams at any time."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._api: HttpApi | None = None
        self._loading = trio.Lock()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection, to its end. Never raises for what the peer did."""
        api = await self._loaded()
        await api.serve(stream)

    async def _loaded(self) -> HttpApi:
        async with self._loading:
            if self._api is None:
                await in_thread_or_here(import_module, "coder.agent.network.http_api")
                from coder.agent.network import http_api

                self._api = http_api.HttpApi(self._state)
            return self._api
