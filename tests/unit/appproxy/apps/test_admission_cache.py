"""Kept admissions: for owners only, and until anything changes that they depend on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.apps.authorizer import AppAdmission
from coder.coderd.services.apps import admission_cache, app_access
from coder.coderd.services.apps.local_authorizer import LocalAppAuthorizer
from coder.coderd.store.workspaces.change_feed import Kind, notify_change
from coder.domain.access.credentials import Credentials
from coder.domain.apps.app_addresses import AppRequest
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.scripted_agent import AgentWorld, workspace_world
from tests.kit.server.server_in_process import World

REQUEST = AppRequest("subdomain", "/", "admin", "dev", "main", "all", "")


@dataclass
class Scene:
    """A server with an application that every user may open, and a count of the queries for it."""

    agent: AgentWorld
    authorizer: LocalAppAuthorizer
    queries: list[AppRequest] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.agent.world

    async def admit(self, token: str, request: AppRequest = REQUEST, address: str = "192.0.2.1") -> AppAdmission:
        return await self.authorizer.admit(request, Credentials(token, False, address), "")

    async def asks(self, token: str, **rest: Any) -> bool:
        """Return whether an admission queried the database."""
        before = len(self.queries)
        await self.admit(token, **rest)
        return len(self.queries) > before

    async def until_kept(self) -> None:
        """Admit the owner until an admission is kept: notices of the start may still arrive."""
        with trio.fail_after(60):
            while await self.asks(self.world.token):
                await trio.sleep(0.01)

    async def until_asked(self) -> None:
        with trio.fail_after(60):
            while not await self.asks(self.world.token):
                await trio.sleep(0.01)


@asynccontextmanager
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    apps = [
        pb.App(
            slug="all", display_name="All", url="http://localhost:8080", sharing_level=pb.AUTHENTICATED, subdomain=True
        )
    ]
    monkeypatch.setattr(app_access, "status_of", lambda *_: "connected")
    load = app_access._load
    async with workspace_world(agent_fields={"apps": apps}, wildcard_access_url="*.apps.test") as agent:
        result = Scene(agent, LocalAppAuthorizer(agent.world.ctx))

        async def counted(tx: Any, request: AppRequest, now: Any) -> Any:
            result.queries.append(request)
            return await load(tx, request, now)

        monkeypatch.setattr(app_access, "_load", counted)
        yield result


async def test_admissions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as s:
        await _only_the_same_question_is_kept(s)
        await _changes_end_it(s)
        await _others_are_never_kept(s)
        await _time_ends_it(s, monkeypatch)
        await _ended_sessions_are_not_admitted(s)


async def _only_the_same_question_is_kept(s: Scene) -> None:
    await s.until_kept()
    first, second = await s.admit(s.world.token), await s.admit(s.world.token)
    assert first == second and first.ticket.user_id == second.ticket.user_id != UUID(int=0)
    assert await s.asks(s.world.token, address="192.0.2.2")
    other = AppRequest("subdomain", "/", "admin", "dev", "", "all", "")
    assert await s.asks(s.world.token, request=other)
    with pytest.raises(AppRefusedError):
        await s.admit(s.world.token, AppRequest("subdomain", "/", "admin", "dev", "main", "none", ""))


async def _changes_end_it(s: Scene) -> None:
    workspace, world = s.agent.workspace, s.world
    path = f"/api/v2/workspaces/{workspace['id']}"
    owner = {"owner_id": UUID(workspace["owner_id"]), "workspace_id": UUID(workspace["id"])}
    steps: list[Callable[[], Awaitable[Any]]] = [
        lambda: world.put(f"{path}/autostart", {"schedule": "CRON_TZ=UTC 0 9 * * 1-5"}),
        lambda: world.post("/api/v2/users/me/keys/tokens", {}),
        lambda: world.ctx.db.run(notify_change, "connection", **owner),
        lambda: world.ctx.db.run(notify_change, "state", **owner),
    ]
    for step in steps:
        await s.until_kept()
        await step()
        await s.until_asked()
    harmless: list[tuple[Kind, UUID]] = [("state", UUID(int=1)), ("stats", owner["workspace_id"])]
    for kind, workspace_id in harmless:
        await s.until_kept()
        cache = world.ctx.services.edge.app_admissions
        kept = dict(cache._kept)
        assert len(kept) >= 1
        async with world.ctx.db.listen("workspace_changes") as notices:
            await world.ctx.db.run(notify_change, kind, owner_id=owner["owner_id"], workspace_id=workspace_id)
            with trio.fail_after(60):
                async for _, payload in notices:
                    if payload.startswith(kind):
                        break
        assert kept.keys() <= cache._kept.keys()


async def _others_are_never_kept(s: Scene) -> None:
    """Check that a share can be revoked with effect from the next request on."""
    _, token = await s.world.member("bob")
    assert [await s.asks(token) for _ in range(4)] == [True] * 4


async def _time_ends_it(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(admission_cache, "ADMISSION_LIFETIME", 0.0)
        s.world.ctx.services.edge.app_admissions._kept.clear()
        assert [await s.asks(s.world.token) for _ in range(4)] == [True] * 4
    await s.until_kept()


async def _ended_sessions_are_not_admitted(s: Scene) -> None:
    await s.admit(s.world.token)
    token = s.world.token
    assert (await s.world.post("/api/v2/users/logout", token=token)).status_code == 200
    with pytest.raises(AppRefusedError):
        await s.admit(token)


async def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_cache, "MAX_ENTRIES", 3)
    async with scene(monkeypatch) as s:
        await s.until_kept()
        for number in range(20):
            await s.admit(s.world.token, address=f"198.51.100.{number}")
        assert len(s.world.ctx.services.edge.app_admissions._kept) <= 3
