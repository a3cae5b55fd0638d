"""Every object that a request touches is asked about, not only the one that its path names.

Each case is a call of a site owner with a key that has the scope of the route and lacks the right to a second object.
The same call succeeds with a key that has that right, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import update

from coder.coderd.services.access.authentication import authenticate
from coder.coderd.services.templates.dynamic_parameters import read_owner
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.tables.people import api_keys
from coder.domain.access.credentials import Credentials
from tests.conformance.world import Populated, populated
from tests.kit.server.workspaces import settled


@dataclass(frozen=True, slots=True)
class Case:
    """A call whose second object needs `second` of the key."""

    name: str
    scopes: tuple[str, ...]
    "What the key has in both calls."
    second: tuple[str, ...]
    method: str
    path: str
    body: Callable[[Populated], Any] = lambda _world: None
    refusals: tuple[int, ...] = (403, 404)


def _organization(world: Populated) -> dict[str, Any]:
    return {"name": world.fresh_name("org")}


def _user(world: Populated) -> dict[str, Any]:
    name = world.fresh_name("u")
    organizations = [str(world.world.organization_id)]
    return {
        "username": name,
        "email": f"{name}@example.com",
        "password": "SomeSecurePassword!",
        "organization_ids": organizations,
    }


def _template(world: Populated) -> dict[str, Any]:
    return {"name": world.fresh_name("t"), "template_version_id": world.things["site", "free_version"]}


CASES = (
    *(
        Case(
            f"organization without {missing}",
            tuple(
                {"organization:create", "organization_member:create", "assign_org_role:assign", "group:create"}
                - {missing}
            ),
            (missing,),
            "POST",
            "/api/v2/organizations",
            _organization,
        )
        for missing in ("organization_member:create", "assign_org_role:assign", "group:create")
    ),
    Case(
        "user without memberships",
        ("user:create", "organization:read"),
        ("organization_member:create",),
        "POST",
        "/api/v2/users",
        _user,
    ),
    Case(
        "user of a hidden organization",
        ("user:create", "organization_member:create"),
        ("organization:read",),
        "POST",
        "/api/v2/users",
        _user,
    ),
    Case(
        "template of a version",
        ("template:create", "organization:read"),
        ("template:read", "template:update"),
        "POST",
        "/api/v2/organizations/default/templates",
        _template,
    ),
    Case(
        "template of a readable version",
        ("template:create", "template:read", "organization:read"),
        ("template:update",),
        "POST",
        "/api/v2/organizations/default/templates",
        _template,
    ),
    Case(
        "roles that are only taken",
        ("assign_role:assign", "user:read"),
        ("assign_role:unassign",),
        "PUT",
        "/api/v2/users/{user}/roles",
        lambda _world: {"roles": []},
    ),
    Case(
        "consents of the own user",
        ("oauth2_app:read", "user:read"),
        ("oauth2_app_code_token:read",),
        "GET",
        "/api/v2/oauth2-provider/apps?user_id={me}",
    ),
    Case(
        "favorite of a dormant workspace",
        ("workspace:update", "workspace_dormant:read"),
        ("workspace_dormant:update",),
        "PUT",
        "/api/v2/workspaces/{dormant}/favorite",
    ),
)


@asynccontextmanager
async def _world() -> AsyncIterator[Populated]:
    async with populated(experiments=("oauth2",)) as world:
        yield world


async def _key(world: Populated, scopes: Sequence[str], allow_list: Sequence[str] = ("*:*",)) -> str:
    """Create a key with any scopes, also those that the API offers only in bundles."""
    body = {"allow_list": list(allow_list), "token_name": world.fresh_name("key")}
    created = await world.world.post("/api/v2/users/me/keys/tokens", body)
    assert created.status_code == 201, created.text
    key = str(created.json()["key"])
    await world.world.ctx.db.run(_set_scopes, key.partition("-")[0], list(scopes))
    return key


async def _set_scopes(tx: Tx, key_id: str, scopes: list[str]) -> None:
    await tx.execute(update(api_keys).where(api_keys.c.id == key_id).values(scopes=scopes))


async def _prepare(world: Populated) -> dict[str, str]:
    """Create the objects of the paths, and return them by name."""
    server = world.world
    world.drop("site")
    await world.thing("site", "free_version")
    user = await world.thing("victim", "user_id")
    await server.put(f"/api/v2/users/{user}/roles", {"roles": ["auditor"]})
    workspace = await world.thing("site", "workspace")
    await settled(server, workspace)
    await server.put(f"/api/v2/workspaces/{workspace}/dormant", {"dormant": True})
    me = (await server.get("/api/v2/users/me")).json()["id"]
    return {"{user}": user, "{dormant}": workspace, "{me}": me}


async def _call(world: Populated, case: Case, scopes: Sequence[str]) -> httpx.Response:
    things = await _prepare(world)
    path = case.path
    for name, value in things.items():
        path = path.replace(name, value)
    return await world.world.request(case.method, path, json=case.body(world), token=await _key(world, scopes))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_second_object_is_asked(case: Case) -> None:
    async with _world() as world:
        refused = await _call(world, case, case.scopes)
        allowed = await _call(world, case, case.scopes + case.second)
    assert refused.status_code in case.refusals, refused.text
    assert allowed.status_code < 300, allowed.text


# ---- lists, and objects without an id in the path, for keys that list single objects


async def _listed_members(world: Populated) -> None:
    user = await world.thing("victim", "user_id")
    listed = ["organization:*", f"organization_member:{user}"]
    key = await _key(world, ("organization:read", "organization_member:read", "user:read"), [*listed, "user:*"])
    for path in ("members", "paginated-members"):
        answer = (await world.world.get(f"/api/v2/organizations/default/{path}", token=key)).json()
        rows = answer["members"] if isinstance(answer, dict) else answer
        assert [row["user_id"] for row in rows] == [user], path
    other = await world.world.get("/api/v2/organizations/default/members/me", token=key)
    assert other.status_code == 404, other.text


async def _listed_daemons(world: Populated) -> None:
    path = "/api/v2/organizations/default/provisionerdaemons"
    (daemon,) = (await world.world.get(path)).json()
    scopes = ("organization:read", "provisioner_daemon:read", "provisioner_jobs:read", "provisioner_jobs:update")
    for identity, expected in ((daemon["id"], 1), (str(uuid4()), 0)):
        listed = ["organization:*", "provisioner_jobs:*", f"provisioner_daemon:{identity}"]
        key = await _key(world, scopes, listed)
        for place in (path, f"{path}/health"):
            assert len((await world.world.get(place, token=key)).json()) == expected, place


async def _listed_notifications(world: Populated) -> None:
    root = "/api/v2/notifications/inbox"
    scopes = ("inbox_notification:read", "inbox_notification:update")
    calls = (("GET", root), ("PUT", f"{root}/mark-all-as-read"), ("PUT", f"{root}/{uuid4()}/read-status"))
    for listed, statuses in ((f"inbox_notification:{uuid4()}", [404] * 3), ("inbox_notification:*", [200, 204, 500])):
        key = await _key(world, scopes, [listed])
        answers = [await world.world.request(*call, json={"is_read": True}, token=key) for call in calls]
        assert [answer.status_code for answer in answers] == statuses


async def _counted_contents(world: Populated) -> None:
    created = (await world.world.post("/api/v2/organizations", _organization(world))).json()["id"]
    group = await world.world.post(f"/api/v2/organizations/{created}/groups", {"name": "some"})
    assert group.status_code == 201, group.text
    for listed, is_told in (("organization:*", False), ("*:*", True)):
        key = await _key(world, ("coder:all",), [listed])
        refused = await world.world.delete(f"/api/v2/organizations/{created}", token=key)
        assert refused.status_code == 400, refused.text
        assert ("1 groups" in refused.text) is is_told, refused.text


async def _listed_group_members(world: Populated) -> None:
    group, user = await world.thing("site", "group"), await world.thing("victim", "user_id")
    for listed, status in (([], 400), ([f"organization_member:{user}"], 200)):
        key = await _key(world, ("coder:all",), [f"group:{group}", "organization:*", *listed])
        response = await world.world.patch(f"/api/v2/groups/{group}", {"add_users": [user]}, token=key)
        assert response.status_code == status, response.text


async def _listed_members_of_groups(world: Populated) -> None:
    """Also of a group that the caller belongs to: the own row is no exception."""
    group, user = await world.thing("site", "group"), await world.thing("victim", "user_id")
    me = (await world.world.get("/api/v2/users/me")).json()["id"]
    filled = await world.world.patch(f"/api/v2/groups/{group}", {"add_users": [user, me]})
    assert filled.status_code == 200, filled.text
    listed = ["group:*", "organization:*", "organization_member:*", "user:*"]
    for shown, page in ((user, []), (me, [me])):
        key = await _key(world, ("coder:all",), [*listed, f"group_member:{shown}"])
        view = (await world.world.get(f"/api/v2/groups/{group}", token=key)).json()
        assert [member["id"] for member in view["members"]] == [shown]
        members = (await world.world.get(f"/api/v2/groups/{group}/members", token=key)).json()["users"]
        assert [member["id"] for member in members] == page


async def _listed_owners(world: Populated) -> None:
    """A form reads the data of an owner: address, groups, roles."""
    ctx, organization_id = world.world.ctx, UUID(str(world.world.organization_id))
    user = UUID(await world.thing("victim", "user_id"))
    for listed, is_shown in (([], False), ([f"organization_member:{user}"], True)):
        key = await _key(world, ("coder:all",), ["template:*", *listed])
        caller = await authenticate(ctx, Credentials.of({"coder-session-token": key}, {}, "127.0.0.1"))
        owner = await read_owner(ctx, caller.subject, organization_id, user)
        assert (owner is not None) is is_shown


LISTS = (
    _listed_group_members,
    _listed_members_of_groups,
    _listed_owners,
    _listed_members,
    _listed_daemons,
    _listed_notifications,
    _counted_contents,
)


@pytest.mark.parametrize("check", LISTS)
async def test_allow_list_narrows_lists(check: Any) -> None:
    async with _world() as world:
        await check(world)
