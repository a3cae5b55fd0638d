"""Memberships and roles of OIDC users, which the identity provider assigns: no user changes them by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coder.coderd.store.people import users as user_store
from tests.kit.server.server_in_process import World, running_coderd

ORGANIZATION_SYNC = "/api/v2/settings/idpsync/organization"
ROLE_SYNC = "/api/v2/organizations/o2/settings/idpsync/roles"
MEMBERSHIP = "Organization sync is enabled for OIDC users"
ROLES = "Cannot modify roles for OIDC users when role sync is enabled."


async def _set_sync(world: World, organizations: bool, roles: bool) -> None:
    body: dict[str, Any] = {"field": "orgs" * organizations, "mapping": {}, "organization_assign_default": True}
    assert (await world.patch(ORGANIZATION_SYNC, body)).status_code == 200
    assert (await world.patch(ROLE_SYNC, {"field": "roles" * roles, "mapping": {}})).status_code == 200


async def _set_login_type(world: World, user_id: str, login_type: str) -> None:
    await world.ctx.db.run(lambda tx: user_store.update_user(tx, UUID(user_id), login_type=login_type))


async def _results(world: World, user: str) -> dict[str, tuple[int, str]]:
    """Return status and message of each change."""
    members, site = f"/api/v2/organizations/o2/members/{user}", f"/api/v2/users/{user}/roles"
    results = {}
    for name, method, path, body in (
        ("site roles", "PUT", site, {"roles": ["auditor"]}),
        ("no site roles", "PUT", site, {"roles": []}),
        ("member roles", "PUT", f"{members}/roles", {"roles": ["organization-auditor"]}),
        ("no member roles", "PUT", f"{members}/roles", {"roles": []}),
        ("remove", "DELETE", members, None),
        ("add", "POST", members, None),
    ):
        answer = await world.request(method, path, json=body)
        message = answer.json()["message"] if answer.status_code == 400 else ""
        results[name] = (answer.status_code, message)
    return results


def _refused(results: dict[str, tuple[int, str]], text: str) -> set[str]:
    return {name for name, (status, message) in results.items() if status == 400 and message.startswith(text)}


async def test_synced_memberships_and_roles_stay() -> None:
    async with running_coderd(first_user=True, oidc_user_role_field="site_roles") as world:
        o2 = (await world.post("/api/v2/organizations", {"name": "o2"})).json()["id"]
        organizations = [world.organization_id, o2]
        user, _ = await world.member("alice", organizations=organizations)
        site, member = {"site roles", "no site roles"}, {"member roles", "no member roles"}
        for login_type in ("oidc", "password"):
            await _set_login_type(world, user, login_type)
            owned = login_type == "oidc"
            for by_organizations, by_roles in ((True, True), (False, True), (False, False)):
                await _set_sync(world, by_organizations, by_roles)
                results = await _results(world, user)
                memberships = _refused(results, MEMBERSHIP)
                assert memberships == ({"remove", "add"} if owned and by_organizations else set()), results
                expected = (site | (member if by_roles else set())) if owned else set()
                assert _refused(results, ROLES) == expected, results
                others = results.keys() - memberships - expected
                assert {results[name][0] for name in others} <= {200, 204}, results


async def test_site_roles_without_claims_change() -> None:
    async with running_coderd(first_user=True) as world:
        user, _ = await world.member("alice")
        await _set_login_type(world, user, "oidc")
        answer = await world.put(f"/api/v2/users/{user}/roles", {"roles": ["auditor"]})
        assert answer.status_code == 200, answer.text


async def test_server_setting_owns_memberships() -> None:
    """`--oidc-organization-field` applies until an administrator configures organization sync."""
    async with running_coderd(first_user=True, oidc_organization_field="orgs") as world:
        user, _ = await world.member("alice")
        await _set_login_type(world, user, "oidc")
        path = f"/api/v2/organizations/default/members/{user}"
        refused = await world.delete(path)
        assert refused.json()["message"].startswith(MEMBERSHIP), refused.text
        await world.patch(ORGANIZATION_SYNC, {"field": "", "mapping": {}, "organization_assign_default": True})
        assert (await world.delete(path)).status_code == 204
