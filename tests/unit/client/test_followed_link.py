"""A port forward follows its workspace's agent through restarts of the workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from coder.base.errors import CoderError
from coder.client import followed_link
from coder.client.followed_link import FollowedLink, open_followed_link
from coder.net.errors import HttpError


@dataclass
class Workspace:
    """Server and overlay: agents by number; connections to all but the present one fail."""

    present: int = 1
    is_running: bool = True
    unreachable: list[CoderError] = field(default_factory=list)
    "Errors of the next attempts to reach an agent."
    opened: list[int] = field(default_factory=list)
    used: list[int] = field(default_factory=list)

    async def wait_connected(self, target: int) -> int:
        await trio.lowlevel.checkpoint()
        return target

    async def successor(self, target: int) -> int | None:
        await trio.lowlevel.checkpoint()
        return self.present if self.is_running and self.present != target else None

    @asynccontextmanager
    async def open_link(self, target: int) -> AsyncIterator[Link]:
        async with trio.open_nursery():
            self.opened.append(target)
            yield Link(self, target)

    async def use(self, target: int, _link: Any, *, task_status: Any) -> None:
        self.used.append(target)
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self.used.remove(target)

    def restart(self) -> None:
        self.present += 1


@dataclass
class Link:
    workspace: Workspace
    target: int

    async def wait_reachable(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.workspace.unreachable:
            raise self.workspace.unreachable.pop(0)

    async def connect(self, port: int) -> Any:
        await trio.lowlevel.checkpoint()
        if not self.workspace.is_running or self.target != self.workspace.present:
            raise CoderError("no_connection", "no connection")
        return (self.target, port)


@asynccontextmanager
async def followed(workspace: Workspace) -> AsyncIterator[FollowedLink[Any]]:
    parts: Any = (workspace, workspace.present, workspace.open_link, [workspace.use])
    with trio.fail_after(60):
        async with open_followed_link(*parts) as link:
            yield link


async def test_connection_follows_restart() -> None:
    workspace = Workspace()
    async with followed(workspace) as link:
        assert await link.connect(80) == (1, 80)
        for number in (2, 3):
            workspace.restart()
            assert await link.connect(80) == (number, 80)
        assert workspace.opened == [1, 2, 3] and workspace.used == [3]
    assert workspace.used == []


async def test_parallel_connections_follow_restart() -> None:
    workspace = Workspace()
    results = []
    async with followed(workspace) as link, trio.open_nursery() as nursery:
        workspace.restart()

        async def connect() -> None:
            results.append(await link.connect(80))

        for _ in range(5):
            nursery.start_soon(connect)
    assert results == [(2, 80)] * 5 and workspace.opened == [1, 2]


async def test_stopped_workspace_fails_connection() -> None:
    workspace = Workspace(is_running=True)
    async with followed(workspace) as link:
        workspace.is_running = False
        for _ in range(2):
            with pytest.raises(CoderError, match="no connection"):
                await link.connect(80)
        workspace.restart()
        workspace.is_running = True
        assert await link.connect(80) == (2, 80)


async def test_restart_without_connections_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Datagrams have no failed connection."""
    monkeypatch.setattr(followed_link, "POLL_INTERVAL", 0.01)
    workspace = Workspace()
    async with followed(workspace):
        workspace.restart()
        while workspace.used != [2]:
            await trio.sleep(0.01)


async def test_unreachable_new_agent_is_retried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(followed_link, "RETRY_INTERVAL", 0.01)
    workspace = Workspace()
    async with followed(workspace) as link:
        workspace.unreachable = [CoderError("unreachable", "not yet"), HttpError(502, "bad gateway")]
        workspace.restart()
        assert await link.connect(80) == (2, 80)
    assert workspace.opened == [1, 2, 2, 2]
    assert "not reachable yet: not yet" in capsys.readouterr().err


async def test_unreachable_first_agent_is_an_error() -> None:
    with pytest.raises(CoderError, match="not yet"):
        async with followed(Workspace(unreachable=[CoderError("unreachable", "not yet")])):
            pytest.fail("no link was opened")


async def test_lost_permission_ends_command() -> None:
    workspace = Workspace()
    with pytest.raises(HttpError, match="not found"):
        async with followed(workspace) as link:
            workspace.unreachable = [HttpError(404, "not found")]
            workspace.restart()
            await link.connect(80)
