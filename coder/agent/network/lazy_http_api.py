"""Lazily loaded HTTP API of the agent: its modules are imported at the first connection.

The routes import most of the agent's features, and many agents never serve a request. The first connection pays, as in
the SSH service (`coder/agent/ssh/acceptor.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import trio

from coder.agent.state import AgentState
from coder.base.threads import in_thread_or_here

if TYPE_CHECKING:
    from coder.agent.network.http_api import HttpApi


class LazyHttpApi:
    """Acceptor of streams that loads the HTTP API on first use."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._api: HttpApi | None = None
        self._loading = trio.Lock()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end. Never raises for a peer's misbehaviour."""
        api = await self._loaded()
        await api.serve(stream)

    async def _loaded(self) -> HttpApi:
        async with self._loading:
            if self._api is None:
                await in_thread_or_here(import_module, "coder.agent.network.http_api")
                from coder.agent.network import http_api

                self._api = http_api.HttpApi(self._state)
            return self._api
