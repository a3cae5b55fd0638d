"""Daemons whose key or user lost permission after admission get no job and are disconnected."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from coder.coderd.rpc_endpoints import provisioners as links
from coder.coderd.services.provisioning import daemon_admission
from coder.coderd.store.provisioning import provisioners as store
from coder.domain.provisioning.jobs import REVOKED_ERROR
from coder.rpc.errors import RpcError
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, new_version
from tests.kit.server.server_in_process import World, running_coderd

KEYS = "/api/v2/organizations/default/provisionerkeys"
Revoke = Callable[[], Awaitable[None]]


async def _by_key(world: World) -> tuple[dict[str, Any], Revoke]:
    secret = (await world.post(KEYS, {"name": "k1", "tags": {}})).json()["key"]

    async def revoke() -> None:
        assert (await world.delete(f"{KEYS}/k1")).status_code == 204

    return {"token": "", "headers": {"Coder-Provisioner-Daemon-Key": secret}}, revoke


async def _by_role(world: World) -> tuple[dict[str, Any], Revoke]:
    user, token = await world.member("author", ["template-admin"])

    async def revoke() -> None:
        assert (await world.put(f"/api/v2/users/{user}/roles", {"roles": []})).status_code == 200

    return {"token": token}, revoke


async def _by_role_here(world: World) -> tuple[dict[str, Any], Revoke]:
    user, token = await world.member("author")
    roles = f"/api/v2/organizations/{world.organization_id}/members/{user}/roles"
    assert (await world.put(roles, {"roles": ["organization-admin"]})).status_code == 200

    async def revoke() -> None:
        assert (await world.put(roles, {"roles": []})).status_code == 200

    return {"token": token}, revoke


async def _as_member(world: World) -> tuple[dict[str, Any], Revoke]:
    user, token = await world.member("bob")

    async def revoke() -> None:
        path = f"/api/v2/organizations/{world.organization_id}/members/{user}"
        assert (await world.delete(path)).status_code in {200, 204}

    return {"token": token, "tags": {"scope": "user"}}, revoke


RIGHTS = {"key": _by_key, "role": _by_role, "role here": _by_role_here, "membership": _as_member}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "PAUSE", 0.01)


@pytest.mark.parametrize("right", RIGHTS)
async def test_lost_permission_disconnects(right: str) -> None:
    async with running_coderd(first_user=True) as world:
        query, revoke = await RIGHTS[right](world)
        async with connected_daemon(world, **query) as daemon:
            await revoke()
            with trio.fail_after(60):
                await daemon.session.wait_closed()


@pytest.mark.parametrize("right", RIGHTS)
async def test_lost_permission_prevents_acquire(right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_leave_when_shut_out", _unaware)
    async with running_coderd(first_user=True) as world:
        query, revoke = await RIGHTS[right](world)
        async with connected_daemon(world, **query) as daemon, daemon.acquiring() as waiting:
            await revoke()
            version = await new_version(world, tags=query.get("tags", {}))
            for stream in (waiting, None):
                with trio.fail_after(60), pytest.raises(RpcError, match="no longer allowed"):
                    await (stream.receive() if stream else daemon.acquire())
            job = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
            assert job["status"] == "pending", "an allowed daemon takes it later"


async def test_user_changes_ignored_for_key_daemons(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[UUID] = []
    has_key = store.has_key

    async def noted(tx: Any, key_id: UUID) -> bool:
        looked.append(key_id)
        return await has_key(tx, key_id)

    monkeypatch.setattr(store, "has_key", noted)
    async with running_coderd(first_user=True) as world:
        query, revoke = await _by_key(world)
        rights = world.ctx.services.rights_changes
        async with connected_daemon(world, **query) as daemon:
            await eventually(lambda: _has(looked))
            for roles in (["auditor"], []):
                changed = rights.next_change()
                user = await world.member()
                assert (await world.put(f"/api/v2/users/{user[0]}/roles", {"roles": roles})).status_code == 200
                await changed.wait()
            await trio.testing.wait_all_tasks_blocked(0.05)
            before = len(looked)
            assert before <= 2, "at the door, and as it began to listen"
            await revoke()
            with trio.fail_after(60):
                await daemon.session.wait_closed()
        assert len(looked) > before, "the key's end does"


async def _has(items: list[Any]) -> bool:
    return bool(items)


async def _unaware(*_args: Any) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("right", RIGHTS)
async def test_permission_lost_before_listening(right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_coderd(first_user=True) as world:
        query, revoke = await RIGHTS[right](world)
        serve = links._serve

        async def late(*args: Any) -> None:
            await revoke()
            await serve(*args)

        monkeypatch.setattr(links, "_serve", late)
        async with connected_daemon(world, **query) as daemon:
            with trio.fail_after(60):
                await daemon.session.wait_closed()


async def test_missed_notice_is_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "CHECK_INTERVAL", 0.05)
    async with running_coderd(first_user=True) as world:
        query, _ = await _by_key(world)
        async with connected_daemon(world, **query) as daemon:

            async def delete_silently(tx: Any) -> None:
                (key,) = await store.list_keys(tx, UUID(world.organization_id))
                with monkeypatch.context() as silent:
                    silent.setattr(store, "notify", _ignore)
                    await store.delete_key(tx, key.id)

            await world.ctx.db.run(delete_silently)
            with trio.fail_after(60):
                await daemon.session.wait_closed()


async def _ignore(*_args: Any) -> None:
    pass


async def test_lost_permission_fails_running_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "REVOKED_GRACE", 0.05)
    async with running_coderd(first_user=True) as world:
        query, revoke = await _by_role(world)
        version = await new_version(world)
        async with connected_daemon(world, **query) as daemon:
            await daemon.acquire()
            await revoke()
            with trio.fail_after(60):
                await daemon.session.wait_closed()
        job = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert (job["status"], job["error"]) == ("failed", REVOKED_ERROR)


async def test_permission_lost_during_acquire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_leave_when_shut_out", _unaware)
    async with running_coderd(first_user=True) as world:
        query, revoke = await _by_role(world)
        version = await new_version(world)
        take = daemon_admission.require_admission
        asked = 0

        async def overtaken(*args: Any) -> None:
            nonlocal asked
            await take(*args)
            asked += 1
            if asked == 1:
                await revoke()

        monkeypatch.setattr(daemon_admission, "require_admission", overtaken)
        async with connected_daemon(world, **query) as daemon:
            with trio.fail_after(60), pytest.raises(RpcError):
                await daemon.acquire()
        job = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()["job"]
        assert job["status"] == "failed"
        assert "no longer allowed" in job["error"]


async def test_other_daemons_stay_connected() -> None:
    """Another user's loss of permission triggers a check, and no other daemon is disconnected."""
    async with running_coderd(first_user=True) as world, contextlib.AsyncExitStack() as links_of:
        stay: list[FakeDaemon] = []
        for number, right in enumerate(("role", "membership")):
            query, _ = await RIGHTS[right](world)
            stay.append(await links_of.enter_async_context(connected_daemon(world, **query, name=f"d{number}")))
        query, revoke = await _by_key(world)
        async with connected_daemon(world, **query) as daemon:
            await revoke()
            with trio.fail_after(60):
                await daemon.session.wait_closed()
        version = await new_version(world)
        with trio.fail_after(60):
            job = await stay[0].acquire()
        assert job.template_import.metadata.template_version_id == version["id"]
        assert not stay[1].session.is_closed
