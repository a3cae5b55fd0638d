"""Concurrent changes of the same users, memberships, groups, roles or keys take their locks in one order.

PostgreSQL aborts one of two deadlocked transactions after a second, and the server retries it. Here it does not retry,
so that an aborted request or transaction fails the test. Each case stops a transaction between two of its steps and
runs a request meanwhile; both must succeed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.login import provider_sync
from coder.coderd.services.login.oauth_exchange import TokenGrant
from coder.coderd.services.login.provider_accounts import Attempt
from coder.coderd.services.login.provider_login import sign_in
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.engine import database
from coder.coderd.store.login import oauth2 as oauth2_store
from coder.coderd.store.people import groups as group_store
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import system_organizations, system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.templates import system_templates
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.login.identity import Person
from coder.domain.login.oauth2 import split_secret
from tests.kit.server.race_conditions import Pause, meeting
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import new_workspace, workspace_world
from tests.unit.coderd.services.login.test_oauth2_provider import client
from tests.unit.coderd.services.people.test_locked_changes import ROLE

Request = Callable[[], Awaitable[httpx.Response]]
Step = Callable[[Any], Awaitable[Any]]


@pytest.fixture(autouse=True)
def tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_RETRYABLE", frozenset())


async def _meet(world: World, first: Step, second: Step, request: Request) -> httpx.Response:
    async def work(tx: Any, pause: Pause) -> None:
        await first(tx)
        await pause(tx)
        await second(tx)

    with trio.fail_after(60):
        return await meeting(world, work, request)


@contextmanager
def _stopped(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, pause: Pause) -> Iterator[None]:
    """Pause before the first call of a function of the store."""
    original, is_first = getattr(module, name), True

    async def paused(tx: Any, *args: Any, **rest: Any) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            await pause(tx)
        return await original(tx, *args, **rest)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, paused)
        yield


async def test_roles_and_groups() -> None:
    """Role changes lock users, then memberships. Adding to a group locks in the same order."""
    async with running_coderd(first_user=True) as world:
        user_id, _ = await world.member("alice")
        organization = UUID(world.organization_id)
        group = (await world.post("/api/v2/organizations/default/groups", {"name": "few"})).json()["id"]

        async def first(tx: Any) -> None:
            await system_users.get_user(tx, UUID(user_id), lock=True)

        async def second(tx: Any) -> None:
            assert await system_organizations.get_member(tx, organization, UUID(user_id), lock=True)

        async def request() -> httpx.Response:
            return await world.patch(f"/api/v2/groups/{group}", {"add_users": [user_id]})

        answer = await _meet(world, first, second, request)
        assert answer.status_code == 200, answer.text
        assert [item["id"] for item in answer.json()["members"]] == [user_id]


async def test_membership_added_during_login() -> None:
    async with running_coderd(first_user=True) as world:
        elsewhere = (await world.post("/api/v2/organizations", {"name": "elsewhere"})).json()["id"]
        user_id, _ = await world.member("alice")

        async def first(tx: Any) -> None:
            await system_users.get_user(tx, UUID(user_id), lock=True)

        async def second(tx: Any) -> None:
            await store.insert_member(tx, UUID(elsewhere), UUID(user_id), world.ctx.clock.now())

        async def request() -> httpx.Response:
            return await world.post(f"/api/v2/organizations/{elsewhere}/members/{user_id}")

        answer = await _meet(world, first, second, request)
        assert answer.status_code == 400 and "already" in answer.text
        members = (await world.get(f"/api/v2/organizations/{elsewhere}/members")).json()
        assert user_id in {item["user_id"] for item in members}
        assert (await world.delete(f"/api/v2/organizations/{elsewhere}/members/{user_id}")).status_code in {200, 204}
        assert (await request()).status_code == 200


async def test_role_deleted_during_member_change() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}/members"
        created = await world.post(f"{path}/roles", ROLE)
        assert created.status_code == 200, created.text
        both = sorted([UUID((await world.member(name))[0]) for name in ("alice", "bob")])
        for user_id in reversed(both):  # an UPDATE of both would lock the larger id first
            given = await world.put(f"{path}/{user_id}/roles", {"roles": ["helper"]})
            assert given.status_code == 200, given.text
        organization = UUID(world.organization_id)

        async def first(tx: Any) -> None:
            await system_organizations.get_member(tx, organization, both[0], lock=True)

        async def second(tx: Any) -> None:
            await system_organizations.get_member(tx, organization, both[1], lock=True)

        answer = await _meet(world, first, second, lambda: world.delete(f"{path}/roles/helper"))
        assert answer.status_code in {200, 204}, answer.text
        listed = (await world.get(path)).json()
        assert not any(item["roles"] for item in listed if UUID(item["user_id"]) in both)


async def test_group_deleted_during_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider's claims name the group, so the login locks it before its memberships."""
    async with running_coderd(first_user=True, oidc_group_field="groups") as world:
        user_id, _ = await world.member("alice")
        for name in ("few", "many"):
            created = await world.post("/api/v2/organizations/default/groups", {"name": name})
            added = await world.patch(f"/api/v2/groups/{created.json()['id']}", {"add_users": [user_id]})
            assert added.status_code == 200, added.text
        group = (await world.get("/api/v2/organizations/default/groups/few")).json()["id"]
        claims = {"groups": ["few", "many"]}

        async def work(tx: Any, pause: Pause) -> None:
            with _stopped(monkeypatch, group_store, "add_members", pause):
                await provider_sync.apply(world.ctx, tx, UUID(user_id), claims, world.ctx.clock.now())

        with trio.fail_after(60):
            answer = await meeting(world, work, lambda: world.delete(f"/api/v2/groups/{group}"))
        assert answer.status_code in {200, 204}, answer.text
        left = (await world.get("/api/v2/organizations/default/groups/many")).json()
        assert [item["id"] for item in left["members"]] == [user_id]


async def test_member_removed_during_template_change() -> None:
    """Changing a template goes on to its workspaces. Removing a member updates the access lists of both."""
    async with workspace_world() as (world, _):
        workspace, template = await new_workspace(world), world.extra["template"]["id"]
        user_id, _ = await world.member("alice")
        for path, field in ((f"workspaces/{workspace['id']}", "user_roles"), (f"templates/{template}", "user_perms")):
            shared = await world.patch(f"/api/v2/{path}/acl", {field: {user_id: "use"}})
            assert shared.status_code in {200, 204}, shared.text

        async def first(tx: Any) -> None:
            await system_templates.get_template(tx, UUID(template), lock=True)

        async def second(tx: Any) -> None:
            await system_workspaces.get_workspace(tx, UUID(workspace["id"]), lock=True)

        path = f"/api/v2/organizations/default/members/{user_id}"
        answer = await _meet(world, first, second, lambda: world.delete(path))
        assert answer.status_code in {200, 204}, answer.text
        assert not (await world.get(f"/api/v2/workspaces/{workspace['id']}/acl")).json()["users"]


async def _removed(world: World, name: str) -> tuple[UUID, Request]:
    user_id, _ = await world.member(name)
    return UUID(user_id), lambda: world.delete(f"/api/v2/organizations/default/members/{user_id}")


async def _signs_in(world: World, name: str) -> tuple[UUID, Request]:
    """Log in a user whose provider names no organization of this site."""
    attempt = Attempt(
        "oidc", Person(f"i||{name}", f"{name}@x.y", name, ""), TokenGrant(Secret("a"), Secret(""), None, {}), {}, True
    )

    async def request() -> httpx.Response:
        return await world.get("/api/v2/users/me", token=await sign_in(world.ctx, attempt))

    user_id = UUID((await request()).json()["id"])
    expected = {"field": "organizations", "mapping": {}, "organization_assign_default": False}
    changed = await world.patch("/api/v2/settings/idpsync/organization", expected)
    assert changed.status_code == 200, changed.text
    return user_id, request


_LEAVES = (_removed, _signs_in)
_LOCKS: dict[str, Callable[[Any, UUID], Awaitable[object]]] = {
    "a build": lambda tx, workspace: system_workspaces.get_workspace(tx, workspace, lock=True),
    "a version": lambda tx, template: system_templates.get_template(tx, template, lock=True),
}
"Locks taken before a write of a row that references a user."


@pytest.mark.parametrize("leaves", _LEAVES)
@pytest.mark.parametrize("written", _LOCKS)
async def test_member_removed_during_shared_write(
    leaves: Callable[[World, str], Awaitable[tuple[UUID, Request]]], written: str
) -> None:
    """A write to a shared object locks it and references the user. Removing a member locks the user first, and allows
    the reference.
    """
    async with workspace_world() as (world, _):
        workspace, template = await new_workspace(world), world.extra["template"]["id"]
        user_id, request = await leaves(world, "alice")
        path, role, shared = {
            "a build": (f"workspaces/{workspace['id']}", "user_roles", workspace["id"]),
            "a version": (f"templates/{template}", "user_perms", template),
        }[written]
        given = await world.patch(f"/api/v2/{path}/acl", {role: {str(user_id): "admin"}})
        assert given.status_code in {200, 204}, given.text

        async def first(tx: Any) -> None:
            assert await _LOCKS[written](tx, UUID(shared))

        async def second(tx: Any) -> None:
            await user_store.hold_users(tx, [user_id])  # as the foreign key does

        answer = await _meet(world, first, second, request)
        assert answer.status_code in {200, 204}, answer.text
        left = (await world.get(f"/api/v2/{path}/acl")).json()["users"]
        assert str(user_id) not in {item["id"] for item in left}


async def test_key_used_during_revocation() -> None:
    """The first use of a key also updates its user."""
    async with running_coderd(first_user=True) as world:
        user_id, _ = await world.member("alice")
        unused = await world.login("alice@b.c", "SomeSecure123!")

        async def first(tx: Any) -> None:
            await system_users.get_user(tx, UUID(user_id), lock=True)

        async def second(tx: Any) -> None:
            await key_store.delete_keys_of(tx, UUID(user_id))

        answer = await _meet(world, first, second, lambda: world.get("/api/v2/users/me", token=unused))
        assert answer.status_code in {200, 401}, answer.text
        assert (await world.get("/api/v2/users/me", token=unused)).status_code == 401


async def test_access_token_deleted_during_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client() as it:
        tokens = (await it.exchange(await it.code())).json()
        prefix, secret = split_secret(tokens["refresh_token"]) or ("", "")
        key = tokens["access_token"].partition("-")[0]
        renewed: list[object] = []

        async def work(tx: Any, pause: Pause) -> None:
            with _stopped(monkeypatch, key_store, "delete_key", pause):
                app_id, hashed = UUID(it.app_id), hash_secret(secret)
                renewed.append(await oauth2_store.renew_token(tx, prefix, hashed, app_id))

        async def request() -> httpx.Response:
            return await it.world.delete(f"/api/v2/users/me/keys/{key}", token=it.user_token)

        with trio.fail_after(60):
            answer = await meeting(it.world, work, request)
        assert answer.status_code == 204, answer.text
        assert renewed == [None], "the token has ended"
        assert (await it.ask(grant_type="refresh_token", refresh_token=tokens["refresh_token"])).status_code == 400
