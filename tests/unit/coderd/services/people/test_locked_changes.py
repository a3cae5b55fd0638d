"""Organizations, memberships, roles and names that change between a request's first read and its write.

The state at the write counts: a request must not restore what was just removed, nor add to a deleted object.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from coder.base.clock import SystemClock
from coder.coderd.services.people.members import leave_organization
from coder.coderd.services.people.organization_settings import group_sync_key, role_sync_key
from coder.coderd.store.people import custom_roles as role_store
from coder.coderd.store.people import organizations as store
from coder.coderd.store.people import system_organizations
from coder.coderd.store.people import users as user_store
from coder.coderd.store.site import site_settings as site_store
from tests.kit.provisioners.scripted_provisioner import new_template, new_version
from tests.kit.server.race_conditions import filled, overtaken
from tests.kit.server.server_in_process import World, running_coderd

ROLE = {
    "name": "helper",
    "display_name": "Helper",
    "site_permissions": [],
    "user_permissions": [],
    "organization_permissions": [],
    "organization_member_permissions": [],
}


async def _member_with_role(world: World, role: str) -> str:
    """Return a session of a user with one role in the organization, who may not name users outside of it."""
    user_id, token = await world.member("manager")
    path = f"/api/v2/organizations/default/members/{user_id}/roles"
    assert (await world.put(path, {"roles": [role]})).status_code == 200
    return token


async def test_removed_default_role_stays_removed() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}"
        helper, helpers_token = await world.member("helper")
        may = (("organization", "read"), ("organization", "update"), ("assign_org_role", "assign"))
        permissions = [{"negate": False, "resource_type": kind, "action": action} for kind, action in may]
        spec = {**ROLE, "name": "settings", "organization_permissions": permissions}
        assert (await world.post(f"{path}/members/roles", spec)).status_code == 200
        assert (await world.put(f"{path}/members/{helper}/roles", {"roles": ["settings"]})).status_code == 200
        expected = {"default_org_member_roles": ["organization-template-admin"]}
        assert (await world.patch(path, expected)).status_code == 200

        async def request() -> httpx.Response:
            return await world.patch(path, {**expected, "description": "mine"}, token=helpers_token)

        assert (await request()).status_code == 200, "while it is unchanged"

        async def take_back(tx: Any) -> None:
            await store.update_organization(tx, UUID(world.organization_id), default_member_roles=[])

        answer = await overtaken(world, take_back, request)
        assert answer.status_code == 400 and "not authorized to assign role" in answer.text
        assert (await world.get(path)).json()["default_org_member_roles"] == []


SYNCS = {
    "groups": ("/api/v2/organizations/{organization}/settings/idpsync/groups", group_sync_key, "{group}"),
    "roles": ("/api/v2/organizations/{organization}/settings/idpsync/roles", role_sync_key, "organization-admin"),
    "organization": ("/api/v2/settings/idpsync/organization", lambda _: "idp_sync_organization", "{organization}"),
}


@pytest.mark.parametrize("sync", list(SYNCS))
async def test_removed_mapping_stays_removed(sync: str) -> None:
    async with running_coderd(first_user=True) as world:
        group = (await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "few"})).json()
        values = {"organization": world.organization_id, "group": group["id"]}
        path, key, gets = SYNCS[sync]
        path, gets = path.format(**values), gets.format(**values)
        assert (await world.patch(path, {"field": "words", "mapping": {"a": [gets], "b": [gets]}})).status_code == 200
        name = key(UUID(world.organization_id))

        async def request() -> httpx.Response:
            change = {"add": [{"Given": "c", "Gets": gets}], "remove": []}
            return await world.patch(f"{path}/mapping", change)

        async def take_out(tx: Any) -> None:
            await site_store.lock_config(tx, name)
            stored = json.loads(await site_store.get_config(tx, name) or "{}")
            del stored["mapping"]["b"]
            await site_store.put_config(tx, name, json.dumps(stored))

        assert (await overtaken(world, take_out, request)).status_code == 200
        assert sorted((await world.get(path)).json()["mapping"]) == ["a", "c"]


@pytest.mark.parametrize("given", ["member", "default"])
async def test_deleted_role_is_not_assigned(given: str) -> None:
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}"
        assert (await world.post(f"{path}/members/roles", ROLE)).status_code == 200
        bob, _ = await world.member("bob")

        async def request() -> httpx.Response:
            if given == "default":
                return await world.patch(path, {"default_org_member_roles": ["helper"]})
            return await world.put(f"{path}/members/{bob}/roles", {"roles": ["helper"]})

        async def delete(tx: Any) -> None:
            await role_store.delete_role(tx, UUID(world.organization_id), "helper")

        assert (await overtaken(world, delete, request)).status_code == 400
        assert (await world.post(f"{path}/members/roles", ROLE)).status_code == 200
        assert "helper" not in (await world.get(path)).json()["default_org_member_roles"]
        view = (await world.get(f"{path}/members")).json()
        assert [item["roles"] for item in view if item["user_id"] == bob] == [[]]


async def test_deleted_role_leaves_defaults() -> None:
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}"
        assert (await world.post(f"{path}/members/roles", ROLE)).status_code == 200
        assert (await world.patch(path, {"default_org_member_roles": ["helper"]})).status_code == 200
        assert (await world.delete(f"{path}/members/roles/helper")).status_code == 204
        assert (await world.get(path)).json()["default_org_member_roles"] == []


GIVEN = {
    "group": ("organization-user-admin", "/api/v2/groups/{group}", {"add_users": ["{bob}"]}),
    "template": ("organization-template-admin", "/api/v2/templates/{template}/acl", {"user_perms": {"{bob}": "admin"}}),
}


@pytest.mark.parametrize("given", list(GIVEN))
async def test_removed_member_gets_no_access(given: str) -> None:
    async with running_coderd(first_user=True) as world:
        bob, _ = await world.member("bob")
        group = (await world.post(f"/api/v2/organizations/{world.organization_id}/groups", {"name": "few"})).json()
        template = await new_template(world)
        role, path, body = GIVEN[given]
        values = {"bob": bob, "group": group["id"], "template": template["id"]}
        token = await _member_with_role(world, role)

        async def request() -> httpx.Response:
            return await world.patch(path.format(**values), filled(body, values), token=token)

        async def leave(tx: Any) -> None:
            await leave_organization(tx, UUID(world.organization_id), UUID(bob))

        assert (await overtaken(world, leave, request)).status_code == 400
        members = (await world.get(f"/api/v2/groups/{group['id']}")).json()["members"]
        assert members == []
        assert (await world.get(f"/api/v2/templates/{template['id']}/acl")).json()["users"] == []


PUT_IN = {
    "group": ("/groups", {"name": "late"}),
    "member": ("/members/{bob}", None),
    "key": ("/provisionerkeys", {"name": "late", "tags": {}}),
    "template": ("/templates", {"name": "late", "template_version_id": "{version}"}),
    "user": (
        "/api/v2/users",
        {
            "username": "late",
            "email": "late@example.com",
            "password": "SomeSecurePassword!1",
            "organization_ids": ["{organization}"],
        },
    ),
}


@pytest.mark.parametrize("thing", list(PUT_IN))
async def test_deleted_organization_accepts_nothing(thing: str) -> None:
    async with running_coderd(first_user=True) as world:
        created = await world.post("/api/v2/organizations", {"name": "short"})
        bob, _ = await world.member("bob")
        default, world.organization_id = world.organization_id, created.json()["id"]
        version = await new_version(world)
        world.organization_id = default
        place, body = PUT_IN[thing]
        values = {"bob": bob, "version": version["id"], "organization": created.json()["id"]}
        path = place.format(**values)
        path = path if path.startswith("/api/") else f"/api/v2/organizations/{created.json()['id']}{path}"

        async def request() -> httpx.Response:
            return await world.post(path, filled(body, values))

        async def delete(tx: Any) -> None:
            await system_organizations.get_organization(tx, UUID(created.json()["id"]), lock=True)
            await store.update_organization(tx, UUID(created.json()["id"]), deleted=True)

        assert (await overtaken(world, delete, request)).status_code == 404


async def test_disabled_sharing_stays_disabled() -> None:
    """An empty request changes nothing."""
    async with running_coderd(first_user=True) as world:
        path = f"/api/v2/organizations/{world.organization_id}/settings/workspace-sharing"

        async def request() -> httpx.Response:
            return await world.patch(path, {})

        async def switch_off(tx: Any) -> None:
            await store.update_organization(tx, UUID(world.organization_id), workspace_sharing="none")

        await overtaken(world, switch_off, request)
        assert (await world.get(path)).json()["sharing_disabled"] is True


async def test_concurrently_taken_name_conflicts() -> None:
    async with running_coderd(first_user=True) as world:
        bob, _ = await world.member("bob")
        carol, _ = await world.member("carol")

        async def request() -> httpx.Response:
            return await world.put(f"/api/v2/users/{bob}/profile", {"username": "robert", "name": ""})

        async def rename(tx: Any) -> None:
            await user_store.update_user(tx, UUID(carol), username="robert", updated_at=SystemClock().now())

        answer = await overtaken(world, rename, request)
        assert (answer.status_code, answer.json()["validations"][0]["field"]) == (409, "username"), answer.text


async def test_user_cannot_restore_changed_name() -> None:
    async with running_coderd(first_user=True) as world:
        bob, token = await world.member("bob")
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 200  # records the user's activity

        async def request() -> httpx.Response:
            return await world.put("/api/v2/users/me/profile", {"username": "bob", "name": "Bob"}, token=token)

        async def rename(tx: Any) -> None:
            await user_store.update_user(tx, UUID(bob), username="robert", updated_at=SystemClock().now())

        assert (await overtaken(world, rename, request)).status_code == 404
        assert (await world.get(f"/api/v2/users/{bob}")).json()["username"] == "robert"
