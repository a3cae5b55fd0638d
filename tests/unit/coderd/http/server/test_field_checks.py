"""Requests that break a field rule: refused with the field's name, on every endpoint that creates an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from coder.api.access import keys
from coder.api.agents import agent_ports
from coder.api.field_rules.rules import ITSELF, FieldRule, first_broken
from coder.api.field_rules.table import NEW, TABLE
from coder.api.login import external_auth, oauth2
from coder.api.notifications import notifications
from coder.api.people import (
    groups,
    organizations,
    passwords,
    user_requests,
    user_secrets,
    user_settings,
    user_skills,
)
from coder.api.provisioning import provisioner_keys
from coder.api.proxies import proxies
from coder.api.site import deployment
from coder.api.tasks import tasks
from coder.api.templates import template_builder
from coder.api.templates import template_versions as versions
from coder.api.templates import templates as template_shapes
from coder.api.wireguard import wireguard_clients
from coder.api.workspaces import build_requests, workspace_requests, workspace_settings
from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import new_workspace, workspace_world

DOORS = {
    user_requests.CreateFirstUserRequest: "POST /users/first",
    user_requests.CreateUserRequestWithOrgs: "POST /users",
    passwords.LoginWithPasswordRequest: "POST /users/login",
    deployment.RequestOneTimePasscodeRequest: "POST /users/otp/request",
    passwords.ChangePasswordWithOneTimePasscodeRequest: "POST /users/otp/change-password",
    passwords.ValidateUserPasswordRequest: "POST /users/validate-password",
    passwords.ConvertLoginRequest: "POST /users/me/convert-login",
    passwords.UpdateUserPasswordRequest: "PUT /users/me/password",
    user_settings.UpdateUserAppearanceSettingsRequest: "PUT /users/me/appearance",
    external_auth.ExternalAuthDeviceExchange: "POST /external-auth/fake/device",
    organizations.CreateOrganizationRequest: "POST /organizations",
    groups.CreateGroupRequest: "POST /organizations/default/groups",
    template_shapes.CreateTemplateRequest: "POST /organizations/default/templates",
    template_builder.TemplateBuilderCreateTemplateRequest: "POST /templatebuilder/compose/template",
    versions.CreateTemplateVersionRequest: "POST /organizations/default/templateversions",
    versions.UpdateActiveTemplateVersion: "PATCH /templates/{template}/versions",
    workspace_requests.CreateWorkspaceRequest: "POST /users/me/workspaces",
    build_requests.CreateWorkspaceBuildRequest: "POST /workspaces/{workspace}/builds",
    tasks.CreateTaskRequest: "POST /tasks/me",
    proxies.CreateWorkspaceProxyRequest: "POST /workspaceproxies",
    oauth2.PostOAuth2ProviderAppRequest: "POST /oauth2-provider/apps",
    workspace_settings.UpdateWorkspaceSharingSettingsRequest: "PATCH /organizations/default/settings/workspace-sharing",
    user_requests.UpdateUserProfileRequest: "PUT /users/me/profile",
    organizations.UpdateOrganizationRequest: "PATCH /organizations/default",
    groups.PatchGroupRequest: "PATCH /groups/{organization}",
    template_shapes.UpdateTemplateMeta: "PATCH /templates/{template}",
    versions.PatchTemplateVersionRequest: "PATCH /templateversions/{version}",
    workspace_settings.UpdateWorkspaceRequest: "PATCH /workspaces/{workspace}",
    workspace_settings.UpdateWorkspaceAutostartRequest: "PUT /workspaces/{workspace}/autostart",
    workspace_settings.UpdateWorkspaceTTLRequest: "PUT /workspaces/{workspace}/ttl",
    workspace_settings.UpdateWorkspaceAutomaticUpdatesRequest: "PUT /workspaces/{workspace}/autoupdates",
    workspace_settings.ExtendWorkspaceRequest: "PUT /workspaces/{workspace}/extend",
    agent_ports.UpsertWorkspaceAgentPortShareRequest: "POST /workspaces/{workspace}/port-share",
    build_requests.UpdateWorkspaceBuildStateRequest: "PUT /workspacebuilds/{build}/state",
    keys.CreateTokenRequest: "POST /users/me/keys/tokens",
    notifications.CustomNotificationRequest: "POST /notifications/custom",
    notifications.UpdateNotificationTemplateMethod: (
        "PUT /notifications/templates/f517da0b-cdc9-410f-ab89-a86107c420ed/method"
    ),
    provisioner_keys.CreateProvisionerKeyRequest: "POST /organizations/default/provisionerkeys",
    user_secrets.CreateUserSecretRequest: "POST /users/me/secrets",
    user_secrets.ImportUserSecretsRequest: "POST /users/me/secrets/batch",
    user_settings.UpdateUserQuietHoursScheduleRequest: "PUT /users/me/quiet-hours",
    user_settings.UpdateUserPreferenceSettingsRequest: "PUT /users/me/preferences",
    user_skills.CreateUserSkillRequest: "POST /api/experimental/users/me/skills",
}
HELD_ELSEWHERE = {
    proxies.PatchWorkspaceProxy,
    oauth2.PutOAuth2ProviderAppRequest,
    user_skills.UpdateUserSkillRequest,
    wireguard_clients.CreateWireguardClientRequest,
}
"""Types that need an object, or a setting, of their own; services' tests change one."""


def broken_fields(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any, FieldRule[Any]]]:
    for name, rules in TABLE[kind].items():
        for rule in rules:
            for value in rule.outside[:2]:
                yield name, value, first_broken(value, rules) or rule


async def send(world: World, door: str, ids: dict[str, str], body: dict[str, Any]) -> Any:
    method, path = door.split()
    beginning = "" if path.startswith("/api/") else "/api/v2"
    return await world.request(method, beginning + path.format(**ids), json=msgspec.to_builtins(body))


async def test_every_rule_is_enforced() -> None:
    assert set(DOORS) | HELD_ELSEWHERE == set(TABLE)
    async with workspace_world(experiments=("oauth2",), dangerous_disable_rate_limits=True) as (world, _):
        template, workspace = world.extra["template"], await new_workspace(world)
        ids = {
            "template": template["id"],
            "version": template["active_version_id"],
            "workspace": workspace["id"],
            "build": workspace["latest_build"]["id"],
            "organization": world.organization_id,
        }
        kind: Any
        for kind, door in DOORS.items():
            valid = {name: rules[-1].inside[-1] for name, rules in TABLE[kind].items() if rules}
            for field, value, rule in broken_fields(kind):
                answer = await send(world, door, ids, {**valid, field: value})
                assert answer.status_code == 400, (door, field, value, answer.text)
                content = answer.json()
                check("Response", content)
                text = rule.says(value) if rule.says is not None else ""
                message = text if rule.message is ITSELF else rule.message or "Validation failed."
                assert content["message"] == message, (door, field, value, content)
                if rule.listed:
                    assert field in [item["field"] for item in content["validations"]], (door, field, value)
                else:
                    assert content["detail"] == text, (door, field, value)


async def test_path_is_checked_before_rules() -> None:
    unknown = dict.fromkeys(("template", "version", "workspace", "build"), "11111111-1111-4111-8111-111111111111")
    async with workspace_world(experiments=("oauth2",), dangerous_disable_rate_limits=True) as (world, _):
        kind: Any
        for kind, door in DOORS.items():
            if not any(f"{{{name}}}" in door for name in unknown):
                continue
            valid = {name: rules[-1].inside[-1] for name, rules in TABLE[kind].items() if rules}
            for field, value, _rule in broken_fields(kind):
                answer = await send(world, door, unknown, {**valid, field: value})
                assert answer.status_code == 404, (door, field, value, answer.text)


async def test_current_values_may_be_resent() -> None:
    """The dashboard's forms send every field of an object back, changed or not."""
    async with workspace_world() as (world, _):
        template = (await world.get(f"/api/v2/templates/{world.extra['template']['id']}")).json()
        path = f"/api/v2/templates/{template['id']}"
        changeable = {
            name: template[name] for name in template_shapes.UpdateTemplateMeta.__struct_fields__ if name in template
        }
        for _ in range(2):
            assert (await world.request("PATCH", path, json=changeable)).status_code == 200
            for name, value in changeable.items():
                answer = await world.request("PATCH", path, json={name: value})
                assert answer.status_code == 200, (name, value, answer.text)
            changeable["max_port_share_level"] = "authenticated"
        assert (await world.get(path)).json()["max_port_share_level"] == "authenticated"
        bad = await world.request("PATCH", path, json={"max_port_share_level": "nobody"})
        assert bad.status_code == 400 and bad.json()["validations"][0]["field"] == "max_port_share_level"


async def test_template_ttls_have_two_bounds() -> None:
    async with workspace_world() as (world, _):
        path = f"/api/v2/templates/{world.extra['template']['id']}"
        bounds = dict.fromkeys(("default_ttl_ms", "activity_bump_ms", "time_til_autostop_notify_ms"), (-1, 0))
        soon = ("failure_ttl_ms", "time_til_dormant_ms", "time_til_dormant_autodelete_ms")
        bounds |= dict.fromkeys(soon, (59_999, 60_000))
        for name, (bad, valid) in bounds.items():
            for value, status in ((bad, 400), (-1, 400), (valid, 200), (0, 200)):
                answer = await world.request("PATCH", path, json={name: value})
                assert answer.status_code == status, (name, value, answer.text)
                if status == 400:
                    assert [item["field"] for item in answer.json()["validations"]] == [name]


async def test_invalid_queries_are_refused() -> None:
    async with workspace_world() as (world, _):
        template = f"/api/v2/templates/{world.extra['template']['id']}/daus"
        cases = [
            (path, {"tz_offset": value}, status)
            for path in ("/api/v2/insights/daus", "/api/v2/insights/user-status-counts", template)
            for value, status in (
                ("-14", 200),
                ("14", 200),
                ("15", 400),
                ("x", 400),
                ("1_0", 400),
                (" 1", 400),
                ("١", 400),
            )
        ]
        cases += [
            (path, {"q": f"organization:{name}"}, status)
            for path in (
                "/api/v2/templates",
                "/api/v2/workspaces",
                "/api/v2/audit?limit=1",
                "/api/v2/tasks",
                "/api/v2/connectionlog?limit=1",
            )
            for name, status in (
                ("coder", 200),
                ("nope", 400),
                ("default", 400),
                ("11111111-1111-4111-8111-111111111111", 200),
            )
        ]
        cases += [
            (path, {"limit": value}, 400)
            for path in ("/api/v2/users", "/api/v2/workspaces", "/api/v2/audit")
            for value in ("x", "-1", "1_0", " 1", "١", "1.5", str(1 << 31))
        ]
        for path, query, status in cases:
            answer = await world.get(
                path
                + ("&" if "?" in path else "?")
                + str(world.client.build_request("GET", "/", params=query).url.query.decode())
            )
            assert answer.status_code == status, (path, query, answer.text)


async def test_authcheck_uses_its_object() -> None:
    async with workspace_world() as (world, _):
        own = await new_workspace(world)
        member_id, member = await world.member()

        async def check_permission(token: str, kind: str, ident: str, action: str) -> Any:
            checks = {"x": {"object": {"resource_type": kind, "resource_id": ident}, "action": action}}
            answer = await world.post("/api/v2/authcheck", {"checks": checks}, token=token)
            return answer.json()["x"] if answer.status_code == 200 else answer.status_code

        assert await check_permission(member, "workspace", own["id"], "read") is False
        shared = {"user_roles": {member_id: "use"}}
        answer = await world.request("PATCH", f"/api/v2/workspaces/{own['id']}/acl", json=shared)
        assert answer.status_code == 204, answer.text
        assert await check_permission(member, "workspace", own["id"], "read") is True
        assert await check_permission(member, "workspace", own["id"], "delete") is False
        assert await check_permission(member, "template", world.extra["template"]["id"], "read") is True
        assert await check_permission(member, "template", world.extra["template"]["id"], "update") is False
        assert await check_permission(member, "user", member_id, "update_personal") is True
        assert await check_permission(member, "user", world.user_id, "read") is False
        assert await check_permission(world.token, "group", world.organization_id, "update") is True
        assert await check_permission(world.token, "workspace", "11111111-1111-4111-8111-111111111111", "read") is False
        assert await check_permission(world.token, "workspace", "x", "read") == 400
        assert await check_permission(world.token, "license", own["id"], "read") == 400


async def test_bypass_applies_everywhere() -> None:
    async with running_coderd(first_user=True, api_rate_limit=2, dangerous_disable_rate_limits=False) as world:
        _, member = await world.member()
        bypass = {"X-Coder-Bypass-Ratelimit": "true"}
        for path in ("/api/v2/buildinfo", "/api/v2/entitlements", "/api/v2/users/me"):
            for _ in range(4):
                assert (await world.get(path, headers=bypass)).status_code == 200, path
            assert (await world.get(path, headers=bypass, token=member)).status_code == 428, path


async def test_new_users_require_enabled_logins() -> None:
    async with running_coderd(first_user=True) as world:

        def body(login: str) -> dict[str, Any]:
            return {
                "email": f"{login}@b.c",
                "username": login,
                "login_type": login,
                "organization_ids": [world.organization_id],
            }

        refused = await world.post("/api/v2/users", body("oidc"))
        assert refused.status_code == 400 and "OIDC" in refused.json()["message"]
        assert (await world.post("/api/v2/users", body("github"))).status_code == 201
        assert (await world.post("/api/v2/users", body("magic"))).status_code == 400


async def test_missing_file_is_not_a_page() -> None:
    async with running_coderd(first_user=True) as world:
        for path in ("/icon/nothing.svg", "/assets/nothing.js", "/emojis/nothing.png"):
            assert (await world.get(path, token="")).status_code == 404, path


def test_every_new_request_has_an_endpoint() -> None:
    assert set(NEW) <= set(DOORS)
