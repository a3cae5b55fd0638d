"""Shared workspaces: who sees them after leaving, with sharing turned off, and what access lists may hold."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any
from uuid import UUID

import trio

from coder.coderd.services.access.authentication import user_subject
from coder.coderd.services.access.workspace_access import load_workspace, readers
from coder.coderd.store.people import users as user_store
from coder.coderd.store.workspaces import workspace_search as search_store
from coder.coderd.store.workspaces import workspaces as workspace_store
from tests.kit.coderd import World
from tests.kit.workspaces import new_workspace, workspace_world

DEFAULT = "/api/v2/organizations/default"


async def _seen(world: World, token: str) -> int:
    return int((await world.get("/api/v2/workspaces", token=token)).json()["count"])


async def _acl(world: World, workspace_id: str) -> tuple[Any, Any]:
    row = await world.ctx.db.read(workspace_store.get_workspace, UUID(workspace_id))
    assert row is not None
    return row.user_acl, row.group_acl


async def test_who_leaves_loses_what_was_shared() -> None:
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
        assert await _seen(world, token) == 1
        assert (await world.delete(f"{DEFAULT}/members/{bob}")).status_code == 204
        assert await _acl(world, workspace["id"]) == ({}, {group: "use"})
        assert (await world.get(f"{template}/acl")).json()["users"] == []
        # Somebody outside stands in a list again: a list alone lets nobody in.
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 204
        assert await _seen(world, token) == 0
        assert (await world.get(path, token=token)).status_code == 404
        assert (await world.post(f"{DEFAULT}/members/{bob}")).status_code in {200, 201}
        assert await _seen(world, token) == 1


async def test_sharing_off_is_off_for_what_was_shared_before() -> None:
    async with workspace_world() as (world, _):
        bob, token = await world.member("bob")
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "admin"}})).status_code == 204
        ctx = world.ctx
        for off in (False, True):
            ctx.config = replace(ctx.config, disable_workspace_sharing=off)
            assert await _seen(world, token) == (0 if off else 1)
            assert (await world.get(path, token=token)).status_code == (404 if off else 200)
            # What a WireGuard client of theirs may reach.
            subject = await user_subject(ctx, UUID(bob))
            assert subject is not None
            places = await ctx.db.read(search_store.list_readable_agents, readers(subject))
            assert len(places) == (0 if off else 1)
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 403
        ctx.config = replace(ctx.config, disable_workspace_sharing=False)
        # An organization that turns it off takes everything back, and nothing can be shared any more.
        setting = f"{DEFAULT}/settings/workspace-sharing"
        assert (await world.patch(setting, {"sharing_disabled": True})).status_code == 200
        assert await _seen(world, token) == 0
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 403
        # Only those of service accounts, from here on.
        await world.patch(setting, {"shareable_workspace_owners": "service_accounts"})
        refused = await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})
        assert refused.status_code == 403 and "service accounts" in refused.json()["message"]
        assert await _acl(world, workspace["id"]) == ({}, {})
        await ctx.db.run(lambda tx: user_store.update_user(tx, UUID(world.user_id), is_service_account=True))
        assert (await world.patch(f"{path}/acl", {"user_roles": {bob: "use"}})).status_code == 204
        assert await _seen(world, token) == 1


async def test_ids_in_access_lists_are_kept_in_one_spelling() -> None:
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
        await store({"nobody": "use", bob.upper(): "use", world.organization_id.upper(): "use", odd: "admin"})
        shown = (await world.get(f"{path}/acl")).json()
        assert [user["id"] for user in shown["users"]] == [bob]
        assert [group["id"] for group in shown["group"]] == [world.organization_id]
        (listed,) = (await world.get("/api/v2/workspaces")).json()["workspaces"]
        assert {actor["id"] for actor in listed["shared_with"]} == {bob, world.organization_id}
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        assert (await load_workspace(world.ctx, subject, UUID(workspace["id"]))).shared_with


async def test_of_two_who_share_at_once_both_are_heard() -> None:
    """And of sharing and switching it off, whichever comes second wins."""
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
