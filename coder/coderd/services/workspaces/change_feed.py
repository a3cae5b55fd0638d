"""Distributing workspace changes to watchers: one LISTEN per process, any number of watchers.

A watcher subscribes to a workspace, to everything of an owner, to an agent, or to all, and gets the changes in order.
Equal changes that it has not read yet are merged, so a slow reader gets each of them once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import trio

from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.workspaces.change_feed import AGENT_ONLY, CHANNEL, Change, parse_change

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

PING_EVERY = 15.0
"""Seconds after which a stream without changes yields None: proxies close silent connections."""
_Key: TypeAlias = tuple[str, UUID | None]
_ALL: _Key = ("*", None)
_MAX_PENDING = 1000
# After more pending changes than this a watcher reads everything again.


class Watch:
    """Queue of changes of one watcher."""

    __slots__ = ("_changed", "_pending", "_seen")

    def __init__(self) -> None:
        self._pending: deque[Change] = deque()
        self._seen: set[Change] = set()
        self._changed = trio.Event()

    def put(self, change: Change) -> None:
        if change in self._seen:
            return
        if len(self._pending) >= _MAX_PENDING:
            self._pending.clear()
            self._seen.clear()
            change = Change("resync")
        self._pending.append(change)
        self._seen.add(change)
        self._changed.set()

    async def next(self) -> Change:
        """Wait for the next change. After `resync` anything may have changed."""
        while not self._pending:
            self._changed = trio.Event()
            await self._changed.wait()
        change = self._pending.popleft()
        self._seen.discard(change)
        return change

    async def next_within(self, seconds: float) -> Change | None:
        """Return the next change, or None after `seconds`. A change wakes every watcher when the server stops."""
        with trio.move_on_after(seconds):
            return await self.next()
        return None

    def drain(self) -> list[Change]:
        """Remove and return all pending changes."""
        pending = list(self._pending)
        self._pending.clear()
        self._seen.clear()
        return pending


class WorkspaceChangeFeed:
    """Distributor of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watchers: dict[_Key, set[Watch]] = {}
        self._watched_agents: set[str] = set()
        "Agents with watchers, as notices name them."
        self._versions: dict[UUID, int] = {}
        self._counter = count(1)
        self._resyncs = 0
        self._listening = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for changes of workspaces, until cancelled."""
        nursery.start_soon(self._listen)
        nursery.start_soon(self._wake_on_stop)

    async def wait_ready(self) -> None:
        """Wait until no change can be missed. Call it before reading the watched rows."""
        await self._listening.wait()

    def version(self, workspace_id: UUID) -> tuple[int, int]:
        """Return a value that differs after every change to a watched workspace, and after a time without a watcher."""
        return self._resyncs, self._versions.get(workspace_id, 0)

    @contextmanager
    def watch(
        self,
        *,
        workspace_id: UUID | None = None,
        owner_id: UUID | None = None,
        agent_id: UUID | None = None,
        everything: bool = False,
    ) -> Iterator[Watch]:
        """Subscribe to changes of any of the given ids, for the length of the block.

        Metadata and logs of agents are delivered only to watchers of that agent.
        """
        watch = Watch()
        ids = (("workspace", workspace_id), ("owner", owner_id), ("agent", agent_id))
        keys: list[_Key] = [key for key in ids if key[1] is not None]
        if everything:
            keys.append(_ALL)
        if workspace_id is not None and ("workspace", workspace_id) not in self._watchers:
            self._versions[workspace_id] = next(self._counter)  # it may have changed without a watcher
        for key in keys:
            self._watchers.setdefault(key, set()).add(watch)
        if agent_id is not None:
            self._watched_agents.add(str(agent_id))
        try:
            yield watch
        finally:
            for key in keys:
                self._forget(key, watch)

    def _forget(self, key: _Key, watch: Watch) -> None:
        watchers = self._watchers[key]
        watchers.discard(watch)
        if not watchers:
            del self._watchers[key]
            kind, ident = key
            if kind == "workspace" and ident is not None:
                self._versions.pop(ident, None)
            elif kind == "agent":
                self._watched_agents.discard(str(ident))

    async def _listen(self) -> None:
        async with self._ctx.db.listen(CHANNEL) as notices:
            self._listening.set()
            async for _channel, payload in notices:
                if payload == RESYNC:
                    self._notify_all(Change("resync"))
                    continue
                if not self._may_concern_anyone(payload):
                    continue
                try:
                    change = parse_change(payload)
                except ValueError:
                    continue  # a foreign notice on our channel
                self._dispatch(change)

    def _may_concern_anyone(self, payload: str) -> bool:
        """Return whether a notice is worth parsing: most are about logs of agents that no stream watches."""
        if not self._watchers:
            return False
        words = payload.split(" ")
        return words[0] not in AGENT_ONLY or words[-1] in self._watched_agents

    async def _wake_on_stop(self) -> None:
        """Wake all watchers when the server stops, so that their streams end."""
        await self._ctx.stopping.wait()
        self._notify_all(Change("resync"))

    def _dispatch(self, change: Change) -> None:
        keys: list[_Key] = [("agent", change.agent_id)]
        if change.kind not in AGENT_ONLY:
            keys += [("workspace", change.workspace_id), ("owner", change.owner_id), _ALL]
            if ("workspace", change.workspace_id) in self._watchers and change.workspace_id is not None:
                self._versions[change.workspace_id] = next(self._counter)
        watchers: set[Watch] = set()
        for key in keys:
            watchers |= self._watchers.get(key, set())
        for watch in watchers:
            watch.put(change)

    def _notify_all(self, change: Change) -> None:
        self._resyncs += 1
        for watch in set().union(*self._watchers.values()):
            watch.put(change)
