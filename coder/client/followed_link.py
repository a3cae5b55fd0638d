"""Link to a workspace that survives restarts of the workspace.

A restart replaces the agent: the new build has an agent with another id and address. A plain link would wait for the
old one for ever. After a failed connection, and every `POLL_INTERVAL` seconds, the followed link asks the server for a
successor, and opens a link to it. Streams of the old agent end; new ones wait for the new agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, Protocol, TypeVar

import trio

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
from coder.net.errors import HttpError

POLL_INTERVAL = 30.0
"Seconds between two checks; a failed connection checks at once."
RETRY_INTERVAL = 3.0
"Seconds after a new agent could not be reached."
_FINAL = {401, 403, 404, 410}
"Statuses that end the command: the agent or the permission is gone."
FAILURES = (OSError, CoderError, trio.BrokenResourceError, trio.ClosedResourceError)
"Exceptions of a failed connection to the agent."


class Link(Protocol):
    """Part of WorkspaceLink and SharedLink."""

    async def wait_reachable(self) -> None: ...
    async def connect(self, port: int) -> trio.abc.HalfCloseableStream: ...


L = TypeVar("L", bound=Link)
L_contra = TypeVar("L_contra", bound=Link, contravariant=True)
OpenLink = Callable[[ReadyAgent], AbstractAsyncContextManager[L]]


class Use(Protocol[L_contra]):
    """Task that uses one link until it is cancelled with the link."""

    async def __call__(self, target: ReadyAgent, link: L_contra, /, *, task_status: trio.TaskStatus[None]) -> None: ...


class FollowedLink(Generic[L]):
    """Open link; use `open_followed_link`."""

    def __init__(self, prepare: Preparation, target: ReadyAgent, open_link: OpenLink[L], uses: list[Use[L]]) -> None:
        self._prepare, self._target, self._open_link, self._uses = prepare, target, open_link, uses
        self._link: L | None = None
        self._changed = trio.Condition()
        self._check = trio.Event()
        self._checks = 0

    async def connect(self, port: int) -> trio.abc.HalfCloseableStream:
        """Open a TCP stream to a port of the present agent. Raise one of FAILURES."""
        link = await self._present_link()
        try:
            stream = await link.connect(port)
        except FAILURES:
            if not await self._is_replaced(link):
                raise
            stream = await (await self._present_link()).connect(port)
        return stream

    async def _present_link(self) -> L:
        async with self._changed:
            while self._link is None:
                await self._changed.wait()
            return self._link

    async def _is_replaced(self, link: L) -> bool:
        """Ask the server. Return whether another link replaces `link`."""
        async with self._changed:
            seen = self._checks
            self._check.set()
            while self._link is link and self._checks == seen:
                await self._changed.wait()
            return self._link is not link

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the link open, until cancelled. Raise CoderError if the first cannot be opened."""
        with single_failure():
            await self._use_link(task_status)
        while True:
            try:
                with single_failure():
                    self._target = await self._prepare.wait_connected(self._target)
                    await self._use_link(trio.TASK_STATUS_IGNORED)
            except FAILURES as error:
                successor = await self._prepare.successor(self._target)
                if successor is None and isinstance(error, HttpError) and error.status in _FINAL:
                    raise
                print_to_stderr(f"The new agent of the workspace is not reachable yet: {error}")
                await trio.sleep(RETRY_INTERVAL)
                self._target = successor or self._target

    async def _use_link(self, task_status: trio.TaskStatus[None]) -> None:
        """Open a link to the present target. Return when the agent is replaced, with the new target set."""
        async with self._open_link(self._target) as link:
            await link.wait_reachable()
            async with trio.open_nursery() as nursery:
                for use in self._uses:
                    await nursery.start(use, self._target, link)
                await self._set(link)
                task_status.started()
                self._target = await self._successor()
                await self._set(None)
                nursery.cancel_scope.cancel()

    async def _successor(self) -> ReadyAgent:
        """Return the agent that replaces the present one, as soon as there is one."""
        while True:
            with trio.move_on_after(POLL_INTERVAL):
                await self._check.wait()
            self._check = trio.Event()
            successor = await self._prepare.successor(self._target)
            if successor is not None:
                return successor
            async with self._changed:
                self._checks += 1
                self._changed.notify_all()

    async def _set(self, link: L | None) -> None:
        async with self._changed:
            self._link = link
            self._changed.notify_all()


@asynccontextmanager
async def open_followed_link(
    prepare: Preparation, target: ReadyAgent, open_link: OpenLink[L], uses: list[Use[L]]
) -> AsyncIterator[FollowedLink[L]]:
    """Open a link that follows `target`. `uses` run with each link. Raise CoderError if the first cannot be opened."""
    link = FollowedLink(prepare, target, open_link, uses)
    with single_failure():
        async with trio.open_nursery() as nursery:
            await nursery.start(link.run)
            yield link
            nursery.cancel_scope.cancel()
