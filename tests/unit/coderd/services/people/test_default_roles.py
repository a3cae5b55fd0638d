"""Adding a member assigns the organization's default roles: required permissions, for every way into an
organization.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

USUAL = ["organization-workspace-access"]
SYNC = "/api/v2/settings/idpsync/organization"
DEFAULTS: dict[str, tuple[list[str], dict[str, int]]] = {
    # default roles of an organization, and the status for each caller that adds a member
    "usual": (USUAL, {}),
    "none": ([], {}),
    "agents": ([*USUAL, "agents-access"], {}),
    "admin": ([*USUAL, "organization-admin"], {"user-admin": 400}),  # the others are members and have it
    "auditor": (["organization-auditor"], {"user-admin": 400, "organization-user-admin": 400, "adder": 403}),
    "own": (["own"], {"user-admin": 400, "organization-user-admin": 400, "adder": 403}),
    "denial": (
        [*USUAL, "organization-workspace-creation-ban"],
        {"user-admin": 400, "organization-user-admin": 400, "adder": 403},
    ),
}


def _role(name: str, *grants: str) -> dict[str, Any]:
    pairs = [grant.split(":") for grant in grants]
    permissions = [{"negate": False, "resource_type": kind, "action": action} for kind, action in pairs]
    none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
    return {"name": name, "display_name": "", "organization_permissions": permissions, **none}


@asynccontextmanager
async def staffed() -> AsyncIterator[tuple[World, str, dict[str, str]]]:
    """Yield a server with a second organization, and tokens of callers who may add members there."""
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{(await world.post('/api/v2/organizations', {'name': 'o2'})).json()['id']}"
        reads = ("organization:read", "organization_member:read")
        for expected in (_role("adder", *reads, "organization_member:create"), _role("own", "template:delete")):
            assert (await world.post(f"{base}/members/roles", expected)).status_code == 200
        tokens, home = (
            {"owner": world.token},
            (await world.post("/api/v2/organizations", {"name": "home"})).json()["id"],
        )
        _, tokens["user-admin"] = await world.member("site-users", ["user-admin"], [home])
        for role in ("organization-admin", "organization-user-admin", "adder"):
            sees_users = ["auditor"] if role == "adder" else []
            user_id, tokens[role] = await world.member(f"the-{role}", sees_users, [base.rsplit("/", 1)[1]])
            assert (await world.put(f"{base}/members/{user_id}/roles", {"roles": [role]})).status_code == 200
        yield world, base, tokens


async def _set_defaults(world: World, base: str, roles: list[str]) -> None:
    answer = await world.patch(base, {"default_org_member_roles": roles})
    assert answer.status_code == 200, answer.text


async def test_add_member_requires_default_roles() -> None:
    wrong = []
    async with staffed() as (world, base, tokens):
        puppet, _ = await world.member("puppet")
        for name, (roles, refused) in DEFAULTS.items():
            await _set_defaults(world, base, roles)
            for caller, token in tokens.items():
                expected = refused.get(caller, 200)
                for user in ("puppet", puppet, *(["me"] if caller == "user-admin" else [])):
                    answer = await world.post(f"{base}/members/{user}", token=token)
                    if answer.status_code != expected:
                        wrong.append(f"{name}: {caller} adds {user}: {answer.status_code} {answer.text[:120]}")
                    if answer.is_success:
                        who = "site-users" if user == "me" else user
                        assert (await world.delete(f"{base}/members/{who}")).status_code == 204
    assert not wrong, "\n".join(wrong)


async def test_new_user_requires_default_roles() -> None:
    wrong, count = [], 0
    async with staffed() as (world, base, tokens):
        theirs = base.rsplit("/", 1)[1]
        for name, (roles, refused) in DEFAULTS.items():
            await _set_defaults(world, base, roles)
            for caller in ("owner", "user-admin"):
                for organizations in ([theirs], [world.organization_id, theirs]):
                    count += 1
                    body = {"email": f"n{count}@b.c", "username": f"n{count}", "password": FIRST_USER["password"]}
                    body["organization_ids"] = organizations
                    answer = await world.post("/api/v2/users", body, token=tokens[caller])
                    if answer.status_code != (400 if caller in refused else 201):
                        wrong.append(f"{name}: {caller}: {answer.status_code} {answer.text[:120]}")
                    is_there = (await world.get(f"/api/v2/users/n{count}")).is_success
                    assert is_there == answer.is_success, "a refused user is not left without organizations"
    assert not wrong, "\n".join(wrong)


def _mapping_change(word: str, organization: str) -> dict[str, Any]:
    return {"add": [{"Given": word, "Gets": organization}], "remove": []}


async def test_organization_sync_requires_default_roles() -> None:
    wrong = []
    async with staffed() as (world, base, tokens):
        rich, poor = base.rsplit("/", 1)[1], (await world.post("/api/v2/organizations", {"name": "o3"})).json()["id"]
        stored = {"field": "groups", "mapping": {"x": [rich], "y": [poor]}, "organization_assign_default": False}
        changes: tuple[tuple[str, dict[str, Any], int], ...] = (
            ("", {**stored, "mapping": {"x": [rich], "z": [rich]}}, 400),
            ("", {**stored, "mapping": {"y": [poor, rich]}, "field": ""}, 400),
            ("", {**stored, "field": "other"}, 400),
            ("/config", {"field": "other", "organization_assign_default": False}, 400),
            ("/mapping", _mapping_change("z", rich), 400),
            ("/mapping", _mapping_change("y", rich.upper()), 400),
            ("", stored, 200),
            ("", {**stored, "mapping": {"x": [rich], "y": [poor], "z": [poor]}}, 200),
            ("", {**stored, "mapping": {"y": [poor]}}, 200),
            ("", {**stored, "organization_assign_default": True}, 200),
            ("/mapping", {"add": [], "remove": [{"Given": "x", "Gets": rich}]}, 200),
            ("/mapping", _mapping_change("z", poor), 200),
            ("/config", {"field": "", "organization_assign_default": False}, 200),
        )
        await _set_defaults(world, base, [*USUAL, "organization-admin"])
        for more, body, expected in changes:
            for caller in ("user-admin", "owner"):
                assert (await world.patch(SYNC, stored)).status_code == 200
                answer = await world.patch(f"{SYNC}{more}", body, token=tokens[caller])
                if answer.status_code != (200 if caller == "owner" else expected):
                    wrong.append(f"{caller} {more} {body}: {answer.status_code} {answer.text[:120]}")
        await _set_defaults(world, base, USUAL)
        await _set_defaults(world, "/api/v2/organizations/default", [*USUAL, "organization-admin"])
        for body, expected in (
            ({**stored, "field": "other"}, 200),
            ({**stored, "organization_assign_default": True}, 400),
        ):
            assert (await world.patch(SYNC, stored)).status_code == 200
            answer = await world.patch(SYNC, body, token=tokens["user-admin"])
            if answer.status_code != expected:
                wrong.append(f"default organization, {body}: {answer.status_code} {answer.text[:120]}")
        after_off = {**stored, "field": "", "organization_assign_default": True}
        assert (await world.patch(SYNC, after_off)).status_code == 200
        turned_on = await world.patch(SYNC, {**after_off, "field": "groups"}, token=tokens["user-admin"])
        assert turned_on.status_code == 400, "a first field makes every user a member"
    assert not wrong, "\n".join(wrong)


async def test_removing_roles_requires_unassign() -> None:
    async with staffed() as (world, base, _tokens):
        reads = ("organization:read", "organization_member:read", "organization:update")
        for role in (_role("giver", *reads, "assign_org_role:assign"), _role("both", *reads, "assign_org_role:*")):
            assert (await world.post(f"{base}/members/roles", role)).status_code == 200
        theirs = base.rsplit("/", 1)[1]
        puppet, _ = await world.member("puppet", organizations=[theirs])
        for caller, taken in (("giver", 403), ("both", 200)):
            user_id, token = await world.member(f"a-{caller}", organizations=[theirs])
            assert (await world.put(f"{base}/members/{user_id}/roles", {"roles": [caller]})).status_code == 200
            for roles, expected in ((["agents-access"], 200), ([], taken)):
                answer = await world.put(f"{base}/members/{puppet}/roles", {"roles": roles}, token=token)
                assert answer.status_code == expected, f"{caller} {roles}: {answer.text}"
            for defaults, expected in (([*USUAL, "agents-access"], 200), (USUAL, taken)):
                answer = await world.patch(base, {"default_org_member_roles": defaults}, token=token)
                assert answer.status_code == expected, f"{caller} {defaults}: {answer.text}"
