"""Attacks by callers who may grant rights: granting more than their own, by custom roles, IdP sync and keys.

Ids of other organizations are in `test_foreign_ids*.py`, rights that change meanwhile in `test_locked_changes.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from coder.coderd.services.access.new_keys import new_key
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.domain.access.roles import ORGANIZATION_ROLES
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import new_template
from tests.kit.server.race_conditions import filled
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import make_ready, prebuilt, settled, world_with_preset

# ---- IdP sync settings

_ADMIN = "organization-admin"
SYNC: tuple[tuple[str, dict[str, Any]], ...] = (
    # (below .../idpsync/roles, body): each assigns a role at login, or removes one
    ("", {"field": "roles", "mapping": {}}),
    ("", {"field": "roles", "mapping": None}),
    ("", {"field": "roles", "mapping": {"x": [_ADMIN]}}),
    ("", {"field": "", "mapping": {"x": [_ADMIN]}}),
    ("", {"field": "", "mapping": {_ADMIN: []}}),
    ("", {"field": "", "mapping": {_ADMIN: ["agents-access"]}}),
    ("", {"field": "", "mapping": {"x": ["agents-access", "organization-auditor"]}}),
    ("", {"field": "", "mapping": {"x": ["own"]}}),
    ("", {"field": "", "mapping": {"x": ["OWN", "yet-to-come"]}}),
    ("/config", {"field": "preferred_username"}),
    ("/config", {"field": "groups"}),
    ("/config", {"field": " "}),
    *[
        ("/mapping", {"add": [{"Given": "x", "Gets": role}], "remove": []})
        for role in (
            _ADMIN,
            "organization-user-admin",
            "organization-template-admin",
            "organization-auditor",
            "organization-workspace-creation-ban",
            "own",
            "owner",
            "yet-to-come",
        )
    ],
)
HARMLESS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {"field": "", "mapping": {}}),
    ("/config", {"field": ""}),
    ("/mapping", {"add": [], "remove": [{"Given": "nothing", "Gets": _ADMIN}]}),
)


async def test_sync_assigns_no_forbidden_role() -> None:
    wrong, asked = [], 0
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{world.organization_id}"
        assert (await world.post(f"{base}/members/roles", _role("own", ["template:delete"]))).status_code == 200
        _, site = await world.member("site", ["user-admin"])
        item, local = await world.member("local")
        roles = {"roles": ["organization-user-admin"]}
        assert (await world.put(f"{base}/members/{item}/roles", roles)).status_code == 200
        for who, token in (("user-admin", site), ("organization-user-admin", local)):
            for more, body in SYNC:
                asked += 1
                response = await world.patch(f"{base}/settings/idpsync/roles{more}", body, token=token)
                if response.status_code not in {400, 403}:
                    wrong.append(f"{who} {more} {body}: {response.status_code} {response.text}")
            for more, body in HARMLESS:
                response = await world.patch(f"{base}/settings/idpsync/roles{more}", body, token=token)
                assert response.status_code == 200, f"{who} {more} {body}: {response.text}"
        for more, body in SYNC:
            response = await world.patch(f"{base}/settings/idpsync/roles{more}", body)
            assert response.status_code == 200, f"an owner {more} {body}: {response.text}"
        for token in (site, local):  # they may not remove an owner's mappings, but may turn sync off
            for more, body in (
                ("/mapping", {"add": [], "remove": [{"Given": "x", "Gets": _ADMIN}]}),
                ("", {"field": "", "mapping": {}}),
                ("/config", {"field": "other"}),
            ):
                asked += 1
                response = await world.patch(f"{base}/settings/idpsync/roles{more}", body, token=token)
                if response.status_code != 400:
                    wrong.append(f"{more} {body}: {response.status_code} {response.text}")
            off = await world.patch(f"{base}/settings/idpsync/roles/config", {"field": ""}, token=token)
            assert off.status_code == 200, off.text
            await world.patch(f"{base}/settings/idpsync/roles/config", {"field": "roles"})
    assert asked > 40
    assert not wrong, "\n".join(wrong)


GROUPS: tuple[tuple[str, dict[str, Any]], ...] = (
    # (below .../idpsync/groups, body): each adds users to a group at login, or removes them
    ("", {"field": "groups"}),
    ("", {"mapping": {"x": ["{group}"]}}),
    ("", {"regex_filter": "a.*"}),
    ("", {"auto_create_missing_groups": True}),
    ("/config", {"field": "groups"}),
    ("/config", {"auto_create_missing_groups": True}),
    ("/config", {"regex_filter": "a.*"}),
    ("/mapping", {"add": [{"Given": "x", "Gets": "{group}"}], "remove": []}),
)


async def test_sync_requires_group_update() -> None:
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{world.organization_id}"
        group = (await world.post(f"{base}/groups", {"name": "few"})).json()["id"]
        spec = _role("settings", ["organization:read", "idpsync_settings:read", "idpsync_settings:update"])
        assert (await world.post(f"{base}/members/roles", spec)).status_code == 200
        item, token = await world.member("one")
        other, may = await world.member("other")
        for user, role in ((item, "settings"), (other, "organization-user-admin")):
            assert (await world.put(f"{base}/members/{user}/roles", {"roles": [role]})).status_code == 200
        off = {"field": "", "mapping": {}}
        for more, body in GROUPS:
            path, expected = f"{base}/settings/idpsync/groups{more}", filled(body, {"group": group})
            assert (await world.patch(path, expected, token=token)).status_code == 403, (more, body)
            assert (await world.patch(path, expected, token=may)).status_code == 200, (more, body)
            assert (await world.patch(f"{base}/settings/idpsync/groups", off, token=may)).status_code == 200
            assert (await world.patch(f"{base}/settings/idpsync/groups", off, token=token)).status_code == 200
        assert (await world.patch(f"{base}/settings/idpsync/groups", {"field": "groups"})).status_code == 200
        turned_off = await world.patch(f"{base}/settings/idpsync/groups/config", {"field": ""}, token=token)
        assert turned_off.status_code == 200, turned_off.text


async def test_sync_requires_group_create() -> None:
    """Another field or filter creates other groups than an owner has allowed."""
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{world.organization_id}"
        spec = _role("mover", ["organization:read", "idpsync_settings:read", "idpsync_settings:update", "group:update"])
        assert (await world.post(f"{base}/members/roles", spec)).status_code == 200
        user, token = await world.member("mover")
        assert (await world.put(f"{base}/members/{user}/roles", {"roles": ["mover"]})).status_code == 200
        path = f"{base}/settings/idpsync/groups/config"
        stored = {"field": "groups", "regex_filter": "a.*", "auto_create_missing_groups": True}
        for change, status in (
            ({"field": "other"}, 403),
            ({"regex_filter": ".*"}, 403),
            ({}, 200),
            ({"field": ""}, 200),
            ({"field": "other", "auto_create_missing_groups": False}, 200),
        ):
            assert (await world.patch(path, stored)).status_code == 200
            response = await world.patch(path, stored | change, token=token)
            assert response.status_code == status, f"{change}: {response.status_code} {response.text}"


# ---- custom roles


def _permissions(texts: list[str], *, negate: bool = False) -> list[dict[str, Any]]:
    pairs = [text.partition(":") for text in texts]
    return [{"negate": negate, "resource_type": kind, "action": action} for kind, _, action in pairs]


def _role(name: str, grants: list[str], denied: list[str] = [], **rest: Any) -> dict[str, Any]:  # noqa: B006
    return {
        "name": name,
        "display_name": "",
        "site_permissions": [],
        "user_permissions": [],
        "organization_permissions": _permissions(grants) + _permissions(denied, negate=True),
        "organization_member_permissions": [],
        **rest,
    }


MAKER = ["assign_org_role:*", "workspace:read", "organization_member:read", "template:read", "idpsync_settings:*"]
"Permissions of a caller who may create roles, and is denied `template:read` by another role."
TOO_MUCH: tuple[dict[str, Any], ...] = (
    *[
        _role("wide", [grant])
        for grant in (
            "workspace:*",
            "workspace:ssh",
            "workspace:application_connect",
            "workspace:delete",
            "workspace_dormant:read",
            "template:read",
            "template:update",
            "template:*",
            "*:*",
            "*:read",
            "group:update",
            "file:read",
            "user:read",
            "organization:update",
            "organization_member:delete",
            "provisioner_daemon:create",
            "audit_log:read",
            "prebuilt_workspace:update",
            "deployment_config:read",
            "system:read",
            "assign_role:assign",
            "license:create",
            "api_key:create",
            "user_secret:read",
            "crypto_key:read",
            "workspace_proxy:create",
            "task:*",
        )
    ],
    _role("wide", ["workspace:read", "workspace:ssh"]),
    _role("wide", ["workspace:READ"]),
    *[_role("wide", [grant]) for grant in ("Workspace:read", "workspace:", ":read", "workspace:read,ssh")],
    _role("wide", [], site_permissions=_permissions(["workspace:read"])),
    _role("wide", [], user_permissions=_permissions(["workspace:read"])),
    _role("wide", [], organization_member_permissions=_permissions(["workspace:ssh"])),
    _role("wide", [], organization_member_permissions=_permissions(["workspace:*"])),
    _role("wide", [], organization_member_permissions=_permissions(["workspace:read"], negate=True)),
    _role("wide", ["workspace:ssh"], ["workspace:ssh"]),
    *[
        _role(name, ["workspace:read"])
        for name in (
            _ADMIN,
            "owner",
            "member",
            "organization-member",
            "",
            "a b",
            "a--b",
            "-",
            "a:b",
            "a\x00b",
            "x" * 65,
            "../x",
        )
    ],
)
"""Roles such a caller may not create, nor change an own role into."""


async def test_custom_role_within_own_permissions() -> None:
    wrong, asked = [], 0
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{world.organization_id}/members"
        for role in (_role("maker", MAKER), _role("ban", [], ["template:read"])):
            assert (await world.post(f"{base}/roles", role)).status_code == 200
        item, token = await world.member("maker")
        other, _ = await world.member("other")
        assert (await world.put(f"{base}/{item}/roles", {"roles": ["maker", "ban"]})).status_code == 200
        for body in TOO_MUCH:
            for method in ("POST", "PUT"):
                asked += 1
                named = {**body, "name": "maker"} if method == "PUT" and body["name"] == "wide" else body
                response = await world.request(method, f"{base}/roles", json=named, token=token)
                if response.status_code not in {400, 403, 404}:
                    wrong.append(f"{method} {body}: {response.status_code} {response.text[:150]}")
        for method, path, sent in (
            ("PUT", f"{base}/roles", _role("ban", [])),
            ("PUT", f"{base}/roles", _role("ban", ["workspace:read"])),
            ("PUT", f"{base}/roles", _role("ban", [], ["template:update"])),
            ("DELETE", f"{base}/roles/ban", None),
            ("PUT", f"{base}/{item}/roles", {"roles": ["maker"]}),
            *[("PUT", f"{base}/{other}/roles", {"roles": [name]}) for name in (_ADMIN, "organization-user-admin")],
        ):
            asked += 1
            response = await world.request(method, path, json=sent, token=token)
            if response.status_code not in {400, 403, 404}:
                wrong.append(f"{method} {path} {sent}: {response.status_code} {response.text[:150]}")
        assert (await world.post(f"{base}/roles", _role("fine", ["workspace:read"]), token=token)).status_code == 200
        banned = _role("ban", [], ["template:read", "template:update"])
        assert (await world.put(f"{base}/roles", banned, token=token)).status_code == 200
        assert (await world.put(f"{base}/roles", _role("ban", []))).status_code == 200, "an owner is allowed"
        assert (await world.delete(f"{base}/roles/ban")).status_code == 204
    assert asked > 90
    assert not wrong, "\n".join(wrong)


# ---- limited keys

_READS = ["user:read", "organization:read"]
_BOX, _OTHER = str(uuid4()), str(uuid4())
KEYS: tuple[tuple[dict[str, Any], tuple[dict[str, Any], ...]], ...] = (
    # (key, request the key must not make)
    (
        {"scopes": ["coder:apikeys.manage_self", *_READS]},
        (
            {},
            {"scopes": ["coder:all"]},
            {"scopes": ["all"]},
            {"scope": "all"},
            {"scopes": ["workspace:ssh"]},
            {"scopes": ["api_key:*", "user:*"]},
            {"scopes": ["user:update_personal"]},
            {"scopes": ["user:read_personal"]},
            {"scopes": ["coder:application_connect"]},
            {"scopes": ["application_connect"]},
            {"scopes": ["api_key:read"] * 20 + ["coder:all"]},
            {"scopes": ["coder:workspaces.create"]},
            {"scopes": ["coder:templates.author"]},
            {"allow_list": ["*:*"]},
            {"scopes": [], "allow_list": ["api_key:*"]},
            {"scopes": None},
        ),
    ),
    (
        {"scopes": ["coder:all"], "allow_list": ["api_key:*", "user:*", f"workspace:{_BOX}"]},
        (
            {},
            {"scopes": ["coder:all"]},
            {"allow_list": ["*:*"]},
            {"allow_list": ["workspace:*"]},
            {"allow_list": [f"workspace:{_OTHER}"]},
            {"allow_list": [f"*:{_BOX}"]},
            {"allow_list": [f"template:{_BOX}"]},
            {"allow_list": [f"workspace:{_BOX}", f"workspace:{_OTHER}"]},
            {"allow_list": []},
            {"allow_list": None},
            {"allow_list": [f"workspace:{_BOX}", "*:*"]},
            {"scopes": ["workspace:ssh"], "allow_list": ["*:*"]},
            {"allow_list": ["organization:*"]},
        ),
    ),
    (
        {"scopes": ["api_key:create", *_READS], "allow_list": ["api_key:*", "user:*"]},
        (
            {"scopes": ["api_key:delete"], "allow_list": ["api_key:*"]},
            {"scopes": ["api_key:create"]},
            {"scopes": ["api_key:*"], "allow_list": ["api_key:*"]},
            {"scopes": ["api_key:create"], "allow_list": ["*:*"]},
        ),
    ),
)


async def test_limited_key_widens_nothing() -> None:
    """Neither keys, sessions, roles, consents for applications, nor WireGuard clients for all workspaces."""
    wrong, asked = [], 0
    async with running_coderd(first_user=True, experiments=("oauth2",)) as world:
        base = f"/api/v2/organizations/{world.organization_id}/members/roles"
        for own, expected in KEYS:
            key = (await world.post("/api/v2/users/me/keys/tokens", own)).json()["key"]
            rows: list[tuple[str, Any]] = [("/api/v2/users/me/keys/tokens", body) for body in expected]
            rows += [
                ("/api/v2/users/me/keys", None),
                ("/api/v2/users/me/tokens", {}),
                ("/api/v2/users/me/wireguard-clients", {"name": "x", "public_key": "A" * 43 + "="}),
            ]
            for path, body in rows:
                asked += 1
                response = await world.post(path, body, token=key)
                if response.status_code < 400:
                    wrong.append(f"{own}: {path} {body}: {response.status_code} {response.text[:100]}")
            within = {"scopes": ["api_key:create"], "allow_list": own.get("allow_list", ["*:*"])[:1]}
            created = await world.post("/api/v2/users/me/keys/tokens", within, token=key)
            assert created.status_code == 201, created.text
        listed = ["assign_org_role:*", "organization:*", f"workspace:{_BOX}", f"template:{_BOX}"]
        key = (await world.post("/api/v2/users/me/keys/tokens", {"allow_list": listed})).json()["key"]
        for grant in ("workspace:read", "workspace:*", "template:update", "*:*"):
            asked += 1
            response = await world.post(base, _role("wide", [grant]), token=key)
            if response.status_code != 403 and response.status_code != 400:
                wrong.append(f"{listed}: a role with {grant}: {response.status_code}")
        assert (await world.post(base, _role("fine", ["organization:read"]), token=key)).status_code == 200
    assert asked > 40
    assert not wrong, "\n".join(wrong)


# ---- the system user


async def test_system_user_gets_no_key() -> None:
    """A template may show its program the owner's session token, and store it where the next owner finds it."""
    async with world_with_preset() as (world, responses, preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await settled(world, str(ahead))
        await make_ready(world, ahead)
        user_id, claimer = await world.member("claimer")
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        created = await world.post("/api/v2/users/me/workspaces", body, token=claimer)
        assert created.json()["id"] == str(ahead)
        await settled(world, str(ahead))
        builds = [job.workspace_build.metadata for job in responses.seen if job.WhichOneof("type") == "workspace_build"]
        before, claimed = (item for item in builds if item.workspace_id == str(ahead))
        assert before.workspace_owner_session_token == ""
        me = await world.get("/api/v2/users/me", token=claimed.workspace_owner_session_token)
        assert me.json()["id"] == user_id


@pytest.mark.parametrize("scope", ["coder:all", "coder:application_connect"])
async def test_system_user_key_is_refused(scope: str) -> None:
    """Such a key may exist from an earlier release."""
    async with running_coderd(first_user=True) as world:
        await new_template(world)
        row, token = new_key(PREBUILDS_USER_ID, "none", timedelta(days=1), world.ctx.clock.now(), scopes=[scope])
        await world.ctx.db.run(key_store.insert_key, row)
        for path in (
            "/api/v2/users/me",
            "/api/v2/workspaces",
            "/api/v2/templates",
            "/api/v2/users",
            "/api/v2/tailnet",
            f"/api/v2/organizations/{world.organization_id}",
            f"/api/v2/workspaceagents/{uuid4()}/pty",
        ):
            for credential in (
                {"Coder-Session-Token": token},
                {"Cookie": f"coder_session_token={token}"},
                {"Authorization": f"Bearer {token}"},
            ):
                response = await world.get(path, token="", headers=credential)
                assert response.status_code in {401, 404}, f"{path}: {response.status_code}"
                world.client.cookies.clear()


# ---- denials that removing a member could drop


DENYING = sorted(name for name, role in ORGANIZATION_ROLES.items() if role.organization_denied)
REMOVERS: tuple[tuple[str, str], ...] = (
    # (site role, organization role): may remove members, but may not unassign such roles
    ("user-admin", ""),
    ("", "organization-user-admin"),
    ("", "remover"),
    ("user-admin", "remover"),
)


async def test_removal_keeps_denials() -> None:
    """Removing and adding a member drops its roles. A caller who may not unassign a denying role may not remove its
    holder.
    """
    wrong = []
    async with running_coderd(first_user=True) as world:
        base = f"/api/v2/organizations/{world.organization_id}/members"
        for body in (
            _role("denied", [], ["template:read"]),
            _role("mixed", ["template:read"], ["workspace:start"]),
            _role("remover", ["organization_member:*"]),
        ):
            assert (await world.post(f"{base}/roles", body)).status_code == 200
        removers = []
        for place, (site, inside) in enumerate(REMOVERS):
            user, token = await world.member(f"remover{place}")
            if site:
                assert (await world.put(f"/api/v2/users/{user}/roles", {"roles": [site]})).status_code == 200
            assert (await world.put(f"{base}/{user}/roles", {"roles": [inside] if inside else []})).status_code == 200
            removers.append((f"{site} {inside}", token))
        one, _ = await world.member("one")
        path = f"{base}/{one}"
        assert DENYING
        for role in (*DENYING, "denied", "mixed"):
            kept = {"roles": [role, "organization-auditor"]}
            assert (await world.put(f"{path}/roles", kept)).status_code == 200
            for who, token in removers:
                response = await world.delete(path, token=token)
                if response.status_code != 403 or role not in response.text:
                    wrong.append(f"{who} {role}: {response.status_code} {response.text[:100]}")
            assert {item["name"] for item in (await world.get(path)).json()["roles"]} == set(kept["roles"])
            assert (await world.delete(path)).status_code == 204
            assert (await world.post(path)).status_code == 200
        for who, token in removers:  # members without denials can be removed with their roles
            assert (await world.put(f"{path}/roles", {"roles": ["organization-auditor"]})).status_code == 200
            assert (await world.delete(path, token=token)).status_code == 204, who
            assert (await world.post(path)).status_code == 200
    assert not wrong, "\n".join(wrong)


# ---- users who may create no workspaces


async def test_workspace_creation_ban() -> None:
    async with world_with_preset() as (world, _, preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await settled(world, str(ahead))
        await make_ready(world, ahead)
        wrong = await _as_banned(world, preset, ahead)
    assert not wrong, "\n".join(wrong)


async def _as_banned(world: World, preset: str, ahead: UUID) -> list[str]:
    item, token = await world.member("banned")
    base = f"/api/v2/organizations/{world.organization_id}/members"
    banned = {"roles": ["organization-workspace-access", "organization-workspace-creation-ban"]}
    assert (await world.put(f"{base}/{item}/roles", banned)).status_code == 200
    template = world.extra["template"]
    new = {"name": "mine", "template_id": template["id"]}
    version = {"name": "mine", "template_version_id": template["active_version_id"]}
    claim = {**new, "template_version_preset_id": preset}
    wrong = []
    for body in (new, version, claim):
        for path in ("/api/v2/users/me/workspaces", f"{base}/me/workspaces", f"{base}/{item}/workspaces"):
            response = await world.post(path, body, token=token)
            if response.status_code not in {403, 404}:
                wrong.append(f"{path} {body}: {response.status_code} {response.text[:100]}")
    task = {"template_version_id": template["active_version_id"], "input": "x", "name": "mine"}
    for path in ("/api/v2/tasks/me", "/api/v2/tasks/banned", "/api/experimental/tasks/me"):
        for body in (task, {**task, "template_version_preset_id": preset}):
            response = await world.post(path, body, token=token)
            if response.status_code not in {400, 403, 404}:
                wrong.append(f"{path} {body}: {response.status_code} {response.text[:100]}")
    assert await prebuilt(world) == [ahead]
    return wrong
