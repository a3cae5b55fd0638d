"""Connections end with the key that opened them; new keys have no more rights than the key that created them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import trio

from coder.base.clock import FakeClock
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.rpc_endpoints.provisioners import connect_built_in
from coder.coderd.services.access import session_revocation
from coder.coderd.services.access.session_revocation import OpenSession
from coder.coderd.services.provisioning import daemon_registration
from coder.coderd.store.access import keys as key_store
from coder.net.dial import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket
from tests.kit.provisioners.scripted_provisioner import connected_daemon
from tests.kit.server.server_in_process import World, running_coderd

INBOX = "/api/v2/notifications/inbox/watch"
COORDINATE = "/api/v2/tailnet?version=2.0"
PATIENCE = 60.0


@asynccontextmanager
async def _open(world: World, token: str, path: str = INBOX) -> AsyncIterator[WebSocketStream]:
    stream = await connect_websocket(DialPolicy(world.url, token=Secret(token)), path)
    try:
        yield stream
    finally:
        await trio.aclose_forcefully(stream)


async def _ended(stream: WebSocketStream) -> int | None:
    """Return the close code after the other end has closed."""
    with trio.fail_after(PATIENCE):
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    return stream.close_code


async def _delete_key(world: World, user_id: str, token: str) -> None:
    path = f"/api/v2/users/{user_id}/keys/{token.split('-', maxsplit=1)[0]}"
    assert (await world.delete(path)).status_code == 204


async def _expire_key(world: World, user_id: str, token: str) -> None:
    path = f"/api/v2/users/{user_id}/keys/{token.split('-', maxsplit=1)[0]}/expire"
    assert (await world.put(path)).status_code == 204


async def _log_out(world: World, user_id: str, token: str) -> None:
    assert (await world.post("/api/v2/users/logout", token=token)).status_code == 200


async def _suspend(world: World, user_id: str, token: str) -> None:
    assert (await world.put(f"/api/v2/users/{user_id}/status/suspend")).status_code == 200


async def _delete_user(world: World, user_id: str, token: str) -> None:
    assert (await world.delete(f"/api/v2/users/{user_id}")).status_code == 200


async def _change_password(world: World, user_id: str, token: str) -> None:
    body = {"password": "AnotherGoodOne1!"}
    assert (await world.put(f"/api/v2/users/{user_id}/password", body)).status_code == 204


ENDS = [_delete_key, _expire_key, _log_out, _suspend, _delete_user, _change_password]


async def test_connections_end_with_session() -> None:
    async with running_coderd(first_user=True) as world, _open(world, world.token) as other:
        for end in ENDS:
            user_id, token = await world.member()
            async with _open(world, token) as inbox, _open(world, token, COORDINATE) as tailnet:
                await end(world, user_id, token)
                assert await _ended(inbox) == 1008, end.__name__
                assert await _ended(tailnet) == 1008, end.__name__
        await _stays(other)


async def _stays(stream: WebSocketStream) -> None:
    with trio.move_on_after(0.05) as scope:
        while await stream.receive_some():
            pass  # a follower is notified of the suspended user
    assert scope.cancelled_caught, "another user's connection stays"


async def _lose_site_role(world: World, user_id: str, group: str) -> None:
    assert (await world.put(f"/api/v2/users/{user_id}/roles", {"roles": []})).status_code == 200


async def _lose_organization_role(world: World, user_id: str, group: str) -> None:
    path = f"/api/v2/organizations/default/members/{user_id}/roles"
    assert (await world.put(path, {"roles": ["helper"]})).status_code == 200


async def _lose_permission(world: World, user_id: str, group: str) -> None:
    assert (await world.put("/api/v2/organizations/default/members/roles", _helper())).status_code == 200


async def _leave_group(world: World, user_id: str, group: str) -> None:
    assert (await world.patch(f"/api/v2/groups/{group}", {"remove_users": [user_id]})).status_code == 200


async def _leave_organization(world: World, user_id: str, group: str) -> None:
    assert (await world.delete(f"/api/v2/organizations/default/members/{user_id}")).status_code in {200, 204}


LOSSES = [_lose_site_role, _lose_organization_role, _lose_permission, _leave_group, _leave_organization]


def _helper(*permissions: str) -> dict[str, Any]:
    named = [{"negate": False, "resource_type": "template", "action": action} for action in permissions]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    return {"name": "helper", "display_name": "", "organization_permissions": named, **none}


async def _with_rights(world: World) -> tuple[str, str, str]:
    """Return (user id, session, group of the user), with one of each object that grants rights."""
    user_id, token = await world.member(roles=["template-admin"])
    organization = f"/api/v2/organizations/{world.organization_id}"
    await world.post(f"{organization}/members/roles", _helper("read"))
    await world.put(f"{organization}/members/roles", _helper("read"))
    roles = {"roles": ["helper", "organization-template-admin"]}
    assert (await world.put(f"{organization}/members/{user_id}/roles", roles)).status_code == 200
    group = (await world.post(f"{organization}/groups", {"name": f"g{user_id[:8]}"})).json()["id"]
    assert (await world.patch(f"/api/v2/groups/{group}", {"add_users": [user_id]})).status_code == 200
    return user_id, token, group


async def test_streams_end_with_changed_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_revocation, "PAUSE", 0.0)
    async with running_coderd(first_user=True) as world, _open(world, world.token) as other:
        for lose in LOSSES:
            user_id, token, group = await _with_rights(world)
            async with _open(world, token) as inbox, _open(world, token, COORDINATE) as tailnet:
                await lose(world, user_id, group)
                assert await _ended(inbox) == 1008, lose.__name__
                await _stays(tailnet)  # rechecks itself, and has lost no right
            async with _open(world, token) as again:
                await _stays(again)
        await _stays(other)


async def test_streams_end_with_default_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_revocation, "PAUSE", 0.0)
    async with running_coderd(first_user=True) as world:
        _, token = await world.member()
        async with _open(world, token) as inbox:
            fewer: dict[str, Any] = {"default_org_member_roles": []}
            assert (await world.patch("/api/v2/organizations/default", fewer)).status_code == 200
            assert await _ended(inbox) == 1008


async def test_event_stream_ends_with_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.kit.server.workspaces import new_workspace, workspace_world

    monkeypatch.setattr(session_revocation, "PAUSE", 0.0)
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        user_id, token, group = await _with_rights(world)
        path = f"/api/v2/workspaces/{workspace['id']}/watch"
        async with world.client.stream("GET", path, headers={"Coder-Session-Token": token}) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "event: ping"
            await _lose_site_role(world, user_id, group)
            with trio.fail_after(PATIENCE):
                async for _ in lines:
                    pass


async def test_rights_read_once_and_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_revocation, "PAUSE", 0.0)
    async with running_coderd(first_user=True) as world:
        user_id, token, group = await _with_rights(world)
        async with _open(world, token) as item, _open(world, token) as two, _open(world, world.token) as other:
            reads, broken, read = 0, True, world.ctx.db.read

            async def counted(fn: Any, *args: Any, **rest: Any) -> Any:
                nonlocal reads, broken
                if fn is key_store.find_rights:
                    if broken:
                        broken = False
                        raise OSError
                    reads += 1
                return await read(fn, *args, **rest)

            monkeypatch.setattr(world.ctx.db, "read", counted)
            await _leave_group(world, user_id, group)
            assert (await _ended(item), await _ended(two)) == (1008, 1008)
            await _stays(other)
            assert not broken and reads >= 1
            reads = 0
            await world.ctx.services.sessions.check_rights()
            assert reads == 1


async def test_event_stream_ends_with_session() -> None:
    from tests.kit.server.workspaces import new_workspace, workspace_world

    async with workspace_world() as (world, _):
        workspace = await new_workspace(world)
        created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "watch"})
        token = created.json()["key"]
        path = f"/api/v2/workspaces/{workspace['id']}/watch"
        async with world.client.stream("GET", path, headers={"Coder-Session-Token": token}) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "event: ping"
            await _delete_key(world, world.user_id, token)
            with trio.fail_after(PATIENCE):
                async for _ in lines:
                    pass


async def test_daemon_disconnects_with_session() -> None:
    async with running_coderd(first_user=True) as world:
        created = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "daemon"})
        token = created.json()["key"]
        async with connected_daemon(world, token=token) as daemon:
            await _delete_key(world, world.user_id, token)
            with trio.fail_after(PATIENCE):
                await daemon.session.wait_closed()


async def test_expired_session_ends_unless_slid() -> None:
    clock = FakeClock()
    async with running_coderd(first_user=True, clock=clock) as world:
        for nothing in (-1, -(10**9)):
            assert (await world.post("/api/v2/users/me/keys/tokens", {"lifetime": nothing})).status_code == 400
        created = await world.post("/api/v2/users/me/keys/tokens", {"lifetime": 3600 * 10**9, "token_name": "short"})
        short = created.json()["key"]
        sessions = world.ctx.services.sessions
        async with _open(world, short) as brief, _open(world, world.token) as sliding:
            clock.advance(timedelta(hours=20).total_seconds())
            assert (await world.get("/api/v2/users/me")).status_code == 200, "used, so it slides"
            clock.advance(timedelta(hours=10).total_seconds())
            await sessions.check_expired()
            assert await _ended(brief) == 1008
            await _stays(sliding)


async def test_failed_read_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(session_revocation, "RETRY", 0.01)
    async with running_coderd(first_user=True, clock=clock) as world:
        sessions = world.ctx.services.sessions
        check, failures = sessions.look, 0

        async def look(session: OpenSession) -> None:
            nonlocal failures
            if failures < 2:
                failures += 1
                raise OSError("the database is away")
            await check(session)

        user_id, token = await world.member()
        async with _open(world, token) as watched, _open(world, world.token) as other:
            await _stays(watched)  # both initial checks are done
            monkeypatch.setattr(sessions, "look", look)
            await _delete_key(world, user_id, token)
            assert await _ended(watched) == 1008
            assert failures == 2
            failures = 0
            clock.advance(timedelta(days=40).total_seconds())
            await sessions.check_expired()
            await sessions.check_expired()
            assert failures == 2, "the check of expired sessions survives it, too"
            await sessions.check_expired()
            assert await _ended(other) == 1008


async def test_built_in_daemon_retries_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("the database is away")

    async with running_coderd(first_user=True) as world:
        monkeypatch.setattr(daemon_registration, "register", fail)
        with pytest.raises(CoderError, match="database is away"):
            async with connect_built_in(world.ctx, "host-0", ["echo"]):
                pass


async def test_limited_key_creates_no_wider() -> None:
    async with running_coderd(first_user=True) as world:
        alice, session = await world.member("alice")

        async def make(token: str, **body: object) -> tuple[int, str]:
            answer = await world.post(f"/api/v2/users/{alice}/keys/tokens", body, token=token)
            return answer.status_code, answer.json().get("key", "")

        scopes = ["api_key:*", "user:read", "workspace:read"]
        status, limited = await make(session, scopes=scopes)
        assert status == 201
        assert (await make(limited, scopes=["workspace:read"]))[0] == 201
        assert (await make(limited, scopes=["workspace:*"]))[0] == 403
        assert (await make(limited, scopes=["template:read"]))[0] == 403
        assert (await make(limited))[0] == 403, "no scopes means all of them"
        assert (await world.post(f"/api/v2/users/{alice}/keys", token=limited)).status_code == 403
        item, other = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
        own = [f"workspace:{item}", f"user:{alice}", "api_key:*"]
        status, listed = await make(session, scopes=scopes, allow_list=own)
        assert status == 201
        assert (await make(listed, scopes=["workspace:read"], allow_list=[f"workspace:{item}"]))[0] == 201
        assert (await make(listed, scopes=["workspace:read"], allow_list=[f"workspace:{other}"]))[0] == 403
        assert (await make(listed, scopes=["workspace:read"]))[0] == 403
        for wrong in ("workspace", "rocket:*", "workspace:nonsense"):
            assert (await make(session, scopes=["workspace:read"], allow_list=[wrong]))[0] == 400, wrong
        view = await world.get("/api/v2/users", token=listed)
        assert [user["id"] for user in view.json()["users"]] == [alice]
