"""A stream of all builds of all workspaces the caller may read, for programs that watch a deployment.

Upstream's experiment `workspace-build-updates`. The stream has no snapshot: the first message is the first change after
the stream began.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base.refusals import Forbidden
from coder.api.workspaces.builds import WorkspaceBuildUpdate
from coder.base.log import get_logger
from coder.coderd.services.access.authorization import may
from coder.coderd.services.access.workspace_access import workspace_resource
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces.workspaces import WorkspaceView
from coder.domain.access.policy import Subject, Target

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EXPERIMENT = "workspace-build-updates"
_EXPERIMENT_OFF = (
    "Workspace Build Updates Channel functionality requires enabling the 'workspace-build-updates' experiment."
)

_log = get_logger("build_updates")


@dataclass(frozen=True, slots=True)
class _ReadableUpdate:
    resource: Target
    "Workspace that a watcher must be allowed to read."
    update: WorkspaceBuildUpdate


def require_experiment(ctx: Context) -> None:
    """Raise Forbidden unless the server was started with `--experiments workspace-build-updates` (or `*`)."""
    if not {EXPERIMENT, "*"} & set(ctx.config.experiments):
        raise Forbidden(_EXPERIMENT_OFF)


class BuildUpdates:
    """Updates of builds, read once for each change, however many watch."""

    LIMIT = 1000
    "Pending updates of one watcher. A slower watcher has missed some, and its stream ends."

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watchers: set[trio.MemorySendChannel[_ReadableUpdate]] = set()
        self._ready = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Follow the changes of workspaces, until cancelled."""
        nursery.start_soon(self._follow)

    async def wait_ready(self) -> None:
        """Return once no update can be missed."""
        await self._ready.wait()
        await self._ctx.services.api.workspace_changes.wait_ready()

    @contextmanager
    def watch(self) -> Iterator[trio.MemoryReceiveChannel[_ReadableUpdate]]:
        """Open a channel of all updates from now on; it closes after a missed update, and when the server stops."""
        send, receive = trio.open_memory_channel[_ReadableUpdate](self.LIMIT)
        self._watchers.add(send)
        try:
            with send, receive:
                yield receive
        finally:
            self._watchers.discard(send)

    async def _follow(self) -> None:
        with self._ctx.services.api.workspace_changes.watch(everything=True) as watch:
            self._ready.set()
            while True:
                change = await watch.next()
                if change.kind == "resync":
                    self._close_all()
                elif change.kind == "state" and change.workspace_id is not None and self._watchers:
                    await self._broadcast(change.workspace_id)

    async def _broadcast(self, workspace_id: UUID) -> None:
        try:
            view = await self._ctx.db.read(system_workspaces.get_view, workspace_id)
        except Exception as error:
            _log.warn("a build's update could not be read; streams of builds end", workspace=workspace_id, error=error)
            self._close_all()
            return
        if view is not None:
            self._send(_ReadableUpdate(workspace_resource(view.workspace), _update(view)))

    def _send(self, update: _ReadableUpdate) -> None:
        for watcher in list(self._watchers):
            try:
                watcher.send_nowait(update)
            except trio.WouldBlock:
                self._close(watcher)

    def _close_all(self) -> None:
        for watcher in list(self._watchers):
            self._close(watcher)

    def _close(self, watcher: trio.MemorySendChannel[_ReadableUpdate]) -> None:
        self._watchers.discard(watcher)
        watcher.close()


async def watch_builds(ctx: Context, subject: Subject) -> AsyncIterator[WorkspaceBuildUpdate | None]:
    """Yield None once no update can be missed, then every update the user may read.

    Ends when an update was missed (the database was away, or too many came at once), and when the server stops. Raises
    Forbidden.
    """
    require_experiment(ctx)
    updates = ctx.services.api.build_updates
    await updates.wait_ready()
    sent: dict[UUID, WorkspaceBuildUpdate] = {}
    with updates.watch() as receive:
        yield None
        async for item in receive:
            update = item.update
            # Editing a workspace changes no build.
            if may(subject, "read", item.resource) and sent.get(update.workspace_id) != update:
                sent[update.workspace_id] = update
                yield update
                if (update.transition, update.job_status) == ("delete", "succeeded"):
                    del sent[update.workspace_id]  # a stream may outlive many workspaces


def _update(view: WorkspaceView) -> WorkspaceBuildUpdate:
    latest = view.latest
    return WorkspaceBuildUpdate(
        workspace_id=view.workspace.id,
        workspace_name=view.workspace.name,
        build_id=latest.build.id,
        transition=latest.build.transition,
        job_status=latest.job.status,
        build_number=latest.build.build_number,
    )
