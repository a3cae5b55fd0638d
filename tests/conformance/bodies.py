"""A valid request body for each operation with a body.

Names in braces are filled in: `{fresh}` is a new name, others are objects of the caller (see `world.Populated`).
Operations that are missing here send no body.
"""

from __future__ import annotations

from typing import Any

from tests.kit.server.server_in_process import FIRST_USER

_PASSWORD = FIRST_USER["password"]
_ORGANIZATION = "/api/v2/organizations/{organization}"
_ROLE = {
    "display_name": "Role",
    "organization_permissions": [{"negate": False, "resource_type": "template", "action": "read"}],
    "site_permissions": [],
    "user_permissions": [],
    "organization_member_permissions": [],
}
_BANNERS: dict[str, Any] = {
    "application_name": "x",
    "logo_url": "",
    "service_banner": {"enabled": False},
    "announcement_banners": [],
}
_SKILL = "---\nname: {}\ndescription: what it does\n---\nbody\n"

BODIES: dict[str, Any] = {
    "PUT /api/v2/appearance": _BANNERS,
    "POST /api/v2/applications/reconnecting-pty-signed-token": {
        "url": "ws://localhost/api/v2/workspaceagents/x/pty",
        "agentID": "{workspaceagent}",
    },
    "POST /api/v2/audit/testgenerate": {},
    "POST /api/v2/authcheck": {"checks": {"a": {"object": {"resource_type": "workspace"}, "action": "read"}}},
    "POST /api/v2/csp/reports": {"csp-report": {"blocked-uri": "x"}},
    "PUT /api/v2/debug/health/settings": {"dismissed_healthchecks": ["DERP"]},
    "PATCH /api/v2/groups/{group}": {"display_name": "G", "add_users": [], "remove_users": [], "quota_allowance": 3},
    "POST /api/v2/notifications/custom": {"content": {"title": "t", "message": "m"}},
    "PUT /api/v2/notifications/settings": {"notifier_paused": True},
    "PUT /api/v2/notifications/inbox/{id}/read-status": {"is_read": True},
    "PUT /api/v2/notifications/templates/{notification_template}/method": {"method": "smtp"},
    "POST /api/v2/oauth2-provider/apps": {"name": "{fresh}", "callback_url": "http://localhost:3000", "icon": ""},
    "PUT /api/v2/oauth2-provider/apps/{app}": {"name": "{fresh}", "callback_url": "http://localhost:3000", "icon": ""},
    "PUT /api/v2/oauth2-provider/settings": {"dynamic_client_registration_enabled": True},
    "POST /api/v2/organizations": {"name": "{fresh}"},
    "PATCH /api/v2/organizations/{organization}": {"description": "d"},
    f"POST {_ORGANIZATION}/groups": {"name": "{fresh}", "quota_allowance": 1},
    f"POST {_ORGANIZATION}/members/roles": {"name": "{fresh}", **_ROLE},
    f"PUT {_ORGANIZATION}/members/roles": {"name": "{roleName}", **_ROLE},
    f"PUT {_ORGANIZATION}/members/{{user}}/roles": {"roles": ["organization-auditor"]},
    f"POST {_ORGANIZATION}/members/{{user}}/workspaces": {"name": "{fresh}", "template_id": "{template}"},
    f"POST {_ORGANIZATION}/provisionerkeys": {"name": "{fresh}", "tags": {}},
    f"PATCH {_ORGANIZATION}/settings/idpsync/groups": {
        "field": "groups",
        "mapping": {},
        "regex_filter": None,
        "auto_create_missing_groups": False,
    },
    f"PATCH {_ORGANIZATION}/settings/idpsync/groups/config": {
        "field": "groups",
        "regex_filter": None,
        "auto_create_missing_groups": True,
    },
    f"PATCH {_ORGANIZATION}/settings/idpsync/groups/mapping": {"add": [], "remove": []},
    f"PATCH {_ORGANIZATION}/settings/idpsync/roles": {"field": "roles", "mapping": {}},
    f"PATCH {_ORGANIZATION}/settings/idpsync/roles/config": {"field": "roles"},
    f"PATCH {_ORGANIZATION}/settings/idpsync/roles/mapping": {"add": [], "remove": []},
    f"PATCH {_ORGANIZATION}/settings/workspace-sharing": {"shareable_workspace_owners": "everyone"},
    f"POST {_ORGANIZATION}/templates": {"name": "{fresh}", "template_version_id": "{free_version}"},
    f"POST {_ORGANIZATION}/templateversions": {
        "storage_method": "file",
        "provisioner": "echo",
        "file_id": "{fileID}",
        "tags": {},
    },
    "PUT /api/v2/prebuilds/settings": {"reconciliation_paused": True},
    "PATCH /api/v2/settings/idpsync/organization": {
        "field": "orgs",
        "mapping": {},
        "organization_assign_default": True,
    },
    "PATCH /api/v2/settings/idpsync/organization/config": {"field": "orgs", "assign_default": True},
    "PATCH /api/v2/settings/idpsync/organization/mapping": {"add": [], "remove": []},
    "POST /api/v2/templatebuilder/compose": {"base_template_id": "scratch", "modules": [{"id": "zed"}]},
    "POST /api/v2/templatebuilder/compose/template": {
        "base_template_id": "scratch",
        "modules": [],
        "organization_id": "{organization}",
        "name": "{fresh}",
    },
    "POST /api/v2/templatebuilder/sessions": {"session_id": "s", "event_type": "wizard_entry"},
    "PATCH /api/v2/templates/{template}": {"description": "d"},
    "PATCH /api/v2/templates/{template}/acl": {"user_perms": {}, "group_perms": {}},
    "PATCH /api/v2/templates/{template}/versions": {"id": "{second_version}"},
    "POST /api/v2/templates/{template}/versions/archive": {"all": False},
    "PATCH /api/v2/templateversions/{templateversion}": {"message": "m"},
    "POST /api/v2/templateversions/{templateversion}/dry-run": {"workspace_name": "dry"},
    "POST /api/v2/templateversions/{templateversion}/dynamic-parameters/evaluate": {"id": 1, "inputs": {}},
    "POST /api/v2/users": {
        "email": "{email}",
        "username": "{fresh}",
        "password": _PASSWORD,
        "organization_ids": ["{organization}"],
    },
    "POST /api/v2/users/first": FIRST_USER,
    "POST /api/v2/users/login": {"email": FIRST_USER["email"], "password": _PASSWORD},
    "POST /api/v2/users/otp/request": {"email": "unknown@example.com"},
    "POST /api/v2/users/otp/change-password": {
        "email": "{email}",
        "password": "AnotherGood1!",
        "one_time_passcode": "x",
    },
    "POST /api/v2/users/validate-password": {"password": "AnotherGood1!"},
    "PUT /api/v2/users/{user}/appearance": {"theme_preference": "dark", "terminal_font": "fira-code"},
    "PUT /api/v2/users/{user}/preferences": {"task_notification_alert_dismissed": True},
    "PUT /api/v2/users/{user}/notifications/preferences": {"template_disabled_map": {}},
    "PUT /api/v2/users/{user}/password": {"old_password": _PASSWORD, "password": "AnotherGood1!"},
    "PUT /api/v2/users/{user}/profile": {"username": "{user}", "name": "New Name"},
    "PUT /api/v2/users/{user}/quiet-hours": {"schedule": "CRON_TZ=UTC 0 3 * * *"},
    "PUT /api/v2/users/{user}/roles": {"roles": ["auditor"]},
    "POST /api/v2/users/{user}/convert-login": {"to_type": "oidc", "password": _PASSWORD},
    "POST /api/v2/users/{user}/keys/tokens": {"token_name": "{fresh}"},
    "POST /api/v2/users/{user}/secrets": {"name": "{fresh}", "value": "v", "env_name": "{fresh}"},
    "POST /api/v2/users/{user}/secrets/batch": {"format": "env", "content": "{assignment}"},
    "PATCH /api/v2/users/{user}/secrets/{name}": {"value": "w"},
    "POST /api/experimental/users/{user}/skills": {"content": _SKILL.format("walked")},
    "PATCH /api/experimental/users/{user}/skills/{skillName}": {"content": "{skill_content}"},
    "POST /api/v2/users/{user}/webpush/subscription": {
        "endpoint": "{push_endpoint}",
        "auth_key": "{push_auth_key}",
        "p256dh_key": "{push_p256dh_key}",
    },
    "DELETE /api/v2/users/{user}/webpush/subscription": {"endpoint": "{push_endpoint}"},
    "POST /api/v2/debug/profile": {"Duration": 10_000_000, "Profiles": []},
    "POST /api/v2/external-auth/{externalauth}/device": {"device_code": "dc"},
    "POST /api/v2/workspaceproxies/me/register": {
        "access_url": "https://proxy.example.com",
        "wildcard_hostname": "",
        "derp_enabled": False,
        "derp_only": False,
        "replica_id": "11111111-1111-4111-8111-111111111177",
        "replica_hostname": "h",
        "replica_error": "",
        "replica_relay_address": "",
        "version": "v2.34.0",
    },
    "POST /api/v2/workspaceproxies/me/deregister": {"replica_id": "11111111-1111-4111-8111-111111111177"},
    "POST /api/v2/workspaceproxies/me/app-stats": {"stats": []},
    "POST /api/v2/workspaceproxies/me/issue-signed-app-token": {
        "app_request": {
            "access_method": "path",
            "base_path": "{app_path}",
            "username_or_id": "{user}",
            "workspace_name_or_id": "{workspacename}",
            "agent_name_or_id": "{agent}",
            "app_slug_or_port": "web",
        },
        "session_token": "{session}",
    },
    "POST /api/v2/workspaceagents/me/tasks/{task}/log-snapshot": {"messages": [], "truncated": False},
    "POST /scim/v2/Users": {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": "{fresh}",
        "active": True,
        "emails": [{"primary": True, "value": "{email}"}],
    },
    "PUT /scim/v2/Users/{id}": {"userName": "{scim_name}", "active": True},
    "PATCH /scim/v2/Users/{id}": {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "value": {"active": False}}],
    },
    "POST /api/v2/users/{user}/workspaces": {"name": "{fresh}", "template_id": "{template}"},
    # not signed by any cloud
    "POST /api/v2/workspaceagents/aws-instance-identity": {"document": "{}", "signature": "x"},
    "POST /api/v2/workspaceagents/azure-instance-identity": {"signature": "x", "encoding": "pkcs7"},
    "POST /api/v2/workspaceagents/google-instance-identity": {"json_web_token": "x"},
    "PATCH /api/v2/workspaceagents/me/app-status": {
        "app_slug": "web",
        "message": "m",
        "uri": "https://x",
        "state": "working",
    },
    "POST /api/v2/workspaceagents/me/log-source": {
        "id": "11111111-1111-4111-8111-111111111199",
        "display_name": "s",
        "icon": "/i.png",
    },
    "PATCH /api/v2/workspaceagents/me/logs": {
        "log_source_id": "11111111-1111-4111-8111-111111111199",
        "logs": [{"created_at": "2026-01-02T03:04:05Z", "output": "o", "level": "info"}],
    },
    "PUT /api/v2/workspacebuilds/{workspacebuild}/state": {"state": "e30="},
    "POST /api/v2/workspaceproxies": {"name": "{fresh}", "display_name": "P", "icon": "/e.png"},
    "PATCH /api/v2/workspaceproxies/{workspaceproxy}": {
        "id": "{workspaceproxy}",
        "name": "{fresh}",
        "display_name": "Q",
        "icon": "/e.png",
        "regenerate_token": False,
    },
    "PATCH /api/v2/workspaces/{workspace}": {"name": "{fresh}"},
    "PATCH /api/v2/workspaces/{workspace}/acl": {"user_roles": {}, "group_roles": {}},
    "PUT /api/v2/workspaces/{workspace}/autostart": {"schedule": "CRON_TZ=UTC 30 9 * * 1-5"},
    "PUT /api/v2/workspaces/{workspace}/autoupdates": {"automatic_updates": "always"},
    "POST /api/v2/workspaces/{workspace}/builds": {"transition": "stop"},
    "POST /api/v2/workspaces/{workspace}/builds (stop)": {"transition": "stop"},
    "POST /api/v2/workspaces/{workspace}/builds (start)": {"transition": "start"},
    "POST /api/v2/workspaces/{workspace}/builds (delete)": {"transition": "delete"},
    "POST /api/v2/workspaces/{workspace}/builds (delete orphan)": {"transition": "delete", "orphan": True},
    "POST /api/v2/workspaces/{workspace}/builds (start debug)": {"transition": "start", "log_level": "debug"},
    "PUT /api/v2/workspaces/{workspace}/dormant": {"dormant": True},
    "PUT /api/v2/workspaces/{workspace}/extend": {"deadline": "2035-01-02T03:04:05Z"},
    "POST /api/v2/workspaces/{workspace}/port-share": {
        "agent_name": "{agent}",
        "port": 8080,
        "share_level": "authenticated",
        "protocol": "http",
    },
    "DELETE /api/v2/workspaces/{workspace}/port-share": {"agent_name": "{agent}", "port": 8080},
    "PUT /api/v2/workspaces/{workspace}/ttl": {"ttl_ms": 3600000},
    "POST /api/v2/workspaces/{workspace}/usage": {},
    "POST /api/v2/tasks/{user}": {"template_version_id": "{templateversion}", "input": "do"},
    "PATCH /api/v2/tasks/{user}/{task}/input": {"input": "other"},
    "POST /api/v2/tasks/{user}/{task}/send": {"input": "more"},
    "POST /oauth2/register": {"redirect_uris": ["http://localhost:3000/cb"], "client_name": "{fresh}"},
}

for _verb, _path in (("POST", "{user}"), ("PATCH", "{user}/{task}/input"), ("POST", "{user}/{task}/send")):
    BODIES[f"{_verb} /api/experimental/tasks/{_path}"] = BODIES[f"{_verb} /api/v2/tasks/{_path}"]

PREPARATIONS: dict[str, str] = {
    "POST /api/v2/workspaceproxies/me/deregister": "POST /api/v2/workspaceproxies/me/register",
    "DELETE /api/v2/users/{user}/webpush/subscription": "POST /api/v2/users/{user}/webpush/subscription",
    "PATCH /api/v2/tasks/{user}/{task}/input": "POST /api/v2/tasks/{user}/{task}/pause",
    "PATCH /api/experimental/tasks/{user}/{task}/input": "POST /api/v2/tasks/{user}/{task}/pause",
    "POST /api/v2/tasks/{user}/{task}/resume": "POST /api/v2/tasks/{user}/{task}/pause",
    "POST /api/experimental/tasks/{user}/{task}/resume": "POST /api/v2/tasks/{user}/{task}/pause",
    "DELETE /api/v2/workspaces/{workspace}/port-share": "POST /api/v2/workspaces/{workspace}/port-share",
    "POST /api/v2/templateversions/{templateversion}/unarchive": (
        "POST /api/v2/templateversions/{templateversion}/archive"
    ),
}
"""Calls of the administrator before each of these operations, so that they have an effect."""

QUERIES: dict[str, str] = {
    "/api/v2/audit": "limit=10",
    "/api/v2/connectionlog": "limit=10",
    "/api/v2/groups": "",
    "/api/v2/insights/daus": "tz_offset=0",
    "/api/v2/insights/user-status-counts": "tz_offset=0",
    "/api/v2/users/{user}/autofill-parameters": "template_id={template}",
    "/api/v2/workspaceagents/{workspaceagent}/containers": "label=x",
    "/api/v2/settings/idpsync/field-values": "claimField=groups",
    "/api/v2/organizations/{organization}/settings/idpsync/field-values": "claimField=groups",
    "/api/v2/workspaceproxies/me/crypto-keys": "feature=workspace_apps_api_key",
    "/api/v2/workspaceagents/me/external-auth": "id=dev",
    "/api/v2/workspaceagents/me/gitauth": "id=dev",
    "/api/v2/applications/auth-redirect": "redirect_uri=http://8080--a--w--u.apps.example.com/",
    "/api/v2/organizations/{organization}/provisionerdaemons/serve": "provisioner=terraform&version=1.10",
    "/api/v2/workspaceagents/{workspaceagent}/coordinate": "version=2.0",
    "/api/v2/tailnet": "version=2.0",
    "/api/v2/workspaceagents/{workspaceagent}/pty": "reconnect=11111111-1111-4111-8111-111111111166&width=80&height=24",
    "/api/v2/workspaceagents/me/rpc": "version=2.0",
    "/api/v2/workspaceproxies/me/coordinate": "version=2.0",
    "/api/v2/workspaceagents/me/tasks/{task}/log-snapshot": "format=agentapi",
}
"""Query strings of valid requests."""
_DAYS = "start_time=2026-01-01T00:00:00Z&end_time=2026-01-02T00:00:00Z"
for _name in ("templates", "user-activity", "user-latency"):
    QUERIES[f"/api/v2/insights/{_name}"] = _DAYS
