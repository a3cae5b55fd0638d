"""Shared workspaces: access after leaving, with sharing disabled, and valid entries of access lists."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import trio

from coder.coderd.http.server.declarations import route_of
from coder.coderd.services.access.authentication import user_subject
from coder.coderd.services.access.workspace_access import load_workspace, readers
from coder.coderd.store.people import users as user_store
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from tests.kit.api.api_description import application
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import build, new_workspace, workspace_world

DEFAULT = "/api/v2/organizations/default"


async def _visible_workspaces(world: World, token: str) -> int:
    return int((await world.get("/api/v2/workspaces", token=token)).json()["count"])


async def _acl(world: World, workspace_id: str) -> tuple[Any, Any]:
    row = await world.ctx.db.read(system_workspaces.get_workspace, UUID(workspace_id))
    assert row is not None
    return row.user_acl, row.group_acl


async def test_leaving_member_loses_shares() -> None:
    async with workspace_world() as (world, _):
        bob, token = await world.member("bob")
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        group = (await world.post(f"{DEFAULT}/groups", {"name": "ops"})).json()["id"]
        await world.patch(f"/api/v2/groups/{group}", {"add_users": [bob]})
        template = f"/api/v2/templates/{workspace['template_id']}"
        assert (await world.patch(f"{template}/acl", {"user_perms": {bob: "admin"}})).status_code == 200
        roles = {"user_roles": {bob: "use"}, "group_roles": {group: "use"}}
        assert (await world.patch(f"{path}/acl", roles)).status_code == 204
        assert await _visible_workspaces(world, token) == 1
        assert (await world.delete(f"{DEFAULT}/members/{bob}")).status_code == 204
        assert await _acl(world, workspace["id"]) == ({}, {group: "use"})
        assert (await world.get(f"{template}/acl")).json()["users"] == []
        # A user outside of the organization is in a list again: a list alone grants no access.
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 204
        assert await _visible_workspaces(world, token) == 0
        assert (await world.get(path, token=token)).status_code == 404
        assert (await world.post(f"{DEFAULT}/members/{bob}")).status_code in {200, 201}
        assert await _visible_workspaces(world, token) == 1


async def test_list_shows_readable_workspaces() -> None:
    """A role may deny the caller's own or shared workspaces, and a former member has lost all in the organization."""
    async with workspace_world() as (world, _):
        bob, token = await world.member("bob")
        admin, world.token = world.token, token
        own = await new_workspace(world, "own")
        world.token = admin
        shared = await new_workspace(world, "shared")
        shares = await world.patch(f"/api/v2/workspaces/{shared['id']}/acl", {"user_roles": {bob: "use"}})
        assert shares.status_code == 204
        denial = {"negate": True, "resource_type": "workspace", "action": "read"}
        none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
        role = {"name": "blind", "display_name": "", "organization_permissions": [denial], **none}
        assert (await world.post(f"{DEFAULT}/members/roles", role)).status_code == 200

        async def opened() -> int:
            answers = [await world.get(f"/api/v2/workspaces/{item['id']}", token=token) for item in (own, shared)]
            return [answer.status_code for answer in answers].count(200)

        assert (await opened(), await _visible_workspaces(world, token)) == (2, 2)
        member = f"{DEFAULT}/members/{bob}"
        assert (await world.put(f"{member}/roles", {"roles": ["blind"]})).status_code == 200
        assert (await opened(), await _visible_workspaces(world, token)) == (0, 0)
        assert (await world.put(f"{member}/roles", {"roles": []})).status_code == 200
        assert (await opened(), await _visible_workspaces(world, token)) == (2, 2)
        assert (await world.delete(member)).status_code == 204
        assert (await opened(), await _visible_workspaces(world, token)) == (0, 0)


async def test_list_shows_readable_dormant_workspaces() -> None:
    """A dormant workspace is a resource of its own, which a role grants or denies separately."""
    async with workspace_world() as (world, _):
        bob, token = await world.member("bob")
        carl, other = await world.member("carl")
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 204
        none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
        for user, name, permission in (
            (bob, "awake", {"negate": True, "resource_type": "workspace_dormant", "action": "read"}),
            (carl, "looker", {"negate": False, "resource_type": "workspace", "action": "read"}),
        ):
            role = {"name": name, "display_name": "", "organization_permissions": [permission], **none}
            assert (await world.post(f"{DEFAULT}/members/roles", role)).status_code == 200
            given = await world.put(f"{DEFAULT}/members/{user}/roles", {"roles": [name]})
            assert given.status_code == 200, given.text
        for dormant in (False, True):
            assert (await world.put(f"{path}/dormant", {"dormant": dormant})).status_code in {200, 304}
            query = {"q": "dormant:true"} if dormant else {}
            for who in (token, other):
                listed = (await world.get("/api/v2/workspaces", params=query, token=who)).json()["count"]
                opened = (await world.get(path, token=who)).status_code
                assert (listed, opened) == ((0, 404) if dormant else (1, 200)), (who == token, dormant)
            assert (await world.get("/api/v2/workspaces", params=query)).json()["count"] == 1


async def test_disabled_sharing_revokes_shares() -> None:
    async with workspace_world() as (world, _):
        bob, token = await world.member("bob")
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "admin"}})).status_code == 204
        ctx = world.ctx
        for off in (False, True):
            ctx.config = replace(ctx.config, disable_workspace_sharing=off)
            assert await _visible_workspaces(world, token) == (0 if off else 1)
            assert (await world.get(path, token=token)).status_code == (404 if off else 200)
            # Workspaces that a WireGuard client of the user may reach.
            subject = await user_subject(ctx, UUID(bob))
            assert subject is not None
            places = await ctx.db.read(search_store.list_readable_agents, readers(subject))
            assert len(places) == (0 if off else 1)
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 403
        ctx.config = replace(ctx.config, disable_workspace_sharing=False)
        # Disabling sharing in an organization removes all shares and refuses new ones.
        setting = f"{DEFAULT}/settings/workspace-sharing"
        assert (await world.patch(setting, {"sharing_disabled": True})).status_code == 200
        assert await _visible_workspaces(world, token) == 0
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 403
        # From here on, only workspaces of service accounts.
        await world.patch(setting, {"shareable_workspace_owners": "service_accounts"})
        refused = await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})
        assert refused.status_code == 403 and "service accounts" in refused.json()["message"]
        assert await _acl(world, workspace["id"]) == ({}, {})
        await ctx.db.run(lambda tx: user_store.update_user(tx, UUID(world.user_id), is_service_account=True))
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 204
        assert await _visible_workspaces(world, token) == 1


async def test_access_list_ids_are_normalized() -> None:
    async with workspace_world() as (world, _):
        bob, _ = await world.member("bob")
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        template = f"/api/v2/templates/{workspace['template_id']}"
        odd = f"urn:uuid:{bob.upper()}"
        own = await world.patch(f"{path}/acl", {"user_roles": {world.user_id.upper(): "use"}})
        assert own.json()["message"] == "You cannot change your own workspace sharing role."
        assert (await world.patch(f"{path}/acl", {"user_roles": {odd: "use"}})).status_code == 204
        assert await _acl(world, workspace["id"]) == ({bob: "use"}, {})
        assert (await world.patch(f"{template}/acl", {"user_perms": {odd: "use"}})).status_code == 200
        assert [user["id"] for user in (await world.get(f"{template}/acl")).json()["users"]] == [bob]
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob.upper(): ""}})).status_code == 204
        assert await _acl(world, workspace["id"]) == ({}, {})

        async def store(acl: dict[str, str]) -> None:
            await world.ctx.db.run(
                lambda tx: workspace_store.update_workspace(tx, UUID(workspace["id"]), user_acl=acl, group_acl=acl)
            )

        # As an older release may have stored them.
        await store({"unknown": "use", bob.upper(): "use", world.organization_id.upper(): "use", odd: "admin"})
        view = (await world.get(f"{path}/acl")).json()
        assert [user["id"] for user in view["users"]] == [bob]
        assert [group["id"] for group in view["group"]] == [world.organization_id]
        (listed,) = (await world.get("/api/v2/workspaces")).json()["workspaces"]
        assert {actor["id"] for actor in listed["shared_with"]} == {bob, world.organization_id}
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        assert (await load_workspace(world.ctx, subject, UUID(workspace["id"]))).shared_with


async def test_concurrent_shares_both_apply() -> None:
    """Sharing and disabling sharing concurrently: the second one wins."""
    async with workspace_world() as (world, _):
        bob, _ = await world.member("bob")
        group = (await world.post(f"{DEFAULT}/groups", {"name": "ops"})).json()["id"]
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}/acl"
        off = f"{DEFAULT}/settings/workspace-sharing"

        async def at_once(*changes: Awaitable[Any]) -> list[int]:
            statuses: list[int] = []

            async def send(change: Awaitable[Any]) -> None:
                statuses.append((await change).status_code)

            async with trio.open_nursery() as nursery:
                for change in changes:
                    nursery.start_soon(send, change)
            return statuses

        for role in ("use", "admin", "use"):
            both = ({"user_roles": {bob: role}}, {"group_roles": {group: role}})
            assert await at_once(*(world.patch(path, body) for body in both)) == [204, 204]
            assert await _acl(world, workspace["id"]) == ({bob: role}, {group: role})
        for _number in range(3):
            assert (await world.patch(off, {"sharing_disabled": False})).status_code == 200
            share = world.patch(path, {"user_roles": {bob: "use"}})
            statuses = await at_once(share, world.patch(off, {"sharing_disabled": True}))
            assert set(statuses) <= {200, 204, 403}
            assert await _acl(world, workspace["id"]) == ({}, {})


_OF_A_WORKSPACE = re.compile(r"<id:(?:workspace|build|agent)>|/workspace/<name>")


def _doors() -> Iterator[tuple[str, str]]:
    """Return (method, rule) of each route that names a workspace, a build or an agent; WebSockets as plain GET."""
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is not None and not said.websocket and _OF_A_WORKSPACE.search(rule.rule):
            yield from ((method, rule.rule) for method in said.methods)


async def _status(world: World, token: str, method: str, rule: str, places: dict[str, str]) -> int:
    path = re.sub(r"<(?:\w+:)?(\w+)>", lambda result: places[result[1]], rule)
    url, headers = f"{world.url}{path}?include_deleted=true", {"Coder-Session-Token": token}
    async with world.client.stream(method, url, headers=headers, json=None if method == "GET" else {}) as answer:
        return answer.status_code


async def test_sharing_ends_with_the_workspace() -> None:
    """After deletion, every route that a guest could use is refused. The owner keeps read access."""
    async with workspace_world() as (world, _):
        guest, token = await world.member("guest")
        owner = (await world.get("/api/v2/users/me")).json()["username"]
        workspace = await new_workspace(world, "w")
        (agent,) = [item for part in workspace["latest_build"]["resources"] for item in part.get("agents") or ()]
        places = {
            "workspace": workspace["id"],
            "build": workspace["latest_build"]["id"],
            "agent": agent["id"],
            "user": owner,
            "name": "w",
            "number": "1",
            "container": workspace["id"],
            "preview": workspace["id"],
        }
        by_agent = {"agent": agent["name"]}
        roles = {"user_roles": {guest: "admin"}, "group_roles": {world.organization_id: "admin"}}
        assert (await world.patch(f"/api/v2/workspaces/{workspace['id']}/acl", roles)).status_code == 204
        doors = [
            (method, rule, {**places, **(by_agent if "<agent>" in rule else {})}) for method, rule in sorted(_doors())
        ]
        reads = [door for door in doors if door[0] == "GET"]
        let_in = [door for door in reads if await _status(world, token, *door) < 400]
        assert len(let_in) > 15, let_in
        owned = [door for door in let_in if "agent" not in door[1]]
        await build(world, workspace["id"], "delete")
        # A request without a version (an empty body, a missing query) may be refused before the permission check.
        result = {(method, rule): await _status(world, token, method, rule, where) for method, rule, where in doors}
        opened = {door: status for door, status in result.items() if status not in {400, 404}}
        told = {rule: result["GET", rule] for _, rule, _ in let_in if result["GET", rule] != 404}
        assert (opened, told) == ({}, {})
        kept = {rule: await _status(world, world.token, method, rule, where) for method, rule, where in owned}
        assert kept["/api/v2/workspaces/<id:workspace>"] == kept["/api/v2/workspacebuilds/<id:build>/logs"] == 200
        by_name = "/api/v2/users/<user>/workspace/<name>/builds/<number>"  # the name may be used again
        assert {rule for rule, status in kept.items() if status == 404} == {by_name}
