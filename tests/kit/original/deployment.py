"""A deployment of the original: people, a template, a running workspace with an agent, and what it has of other kinds.

Odd on purpose: names that differ by case, deleted users and workspaces, NULL wherever the schema admits it, references
to nothing, JSON of every kind.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.kit.original.rows import START, Rows, ident, make_rows
from tests.kit.provisioners.scripted_provisioner import tar

PASSWORD = "SomeSecure123!"
EMAIL, USERNAME = "Ana@Example.com", "ana"
KEY_ID, KEY_SECRET = "AbCdEfGhIj", "ABCDEFGHIJKLMNOPQRSTUV"
"""The session that the original's command line has."""
AGENT_TOKEN = UUID("8d6a7f0e-3c55-4f29-9d5b-2d5a70d9a001")
DEPLOYMENT_ID = "4f0c2a53-7bb0-4a43-9c1e-0f9a4f4e1d77"
STATE = json.dumps({"version": 4, "serial": 3, "resources": [{"type": "null_resource", "name": "box"}]}).encode()
TEMPLATE = tar({"main.tf": 'resource "null_resource" "box" {}\n'})
PREBUILDS_USER = UUID("c42fdf75-3097-471c-8c33-fb52454d81c0")
UNKNOWN_USER = UUID("deadbeef-0000-4000-8000-000000000000")
"""Id that no row has."""
_USE = ["read", "ssh", "application_connect", "start", "stop"]
"""Actions of the original's role for users of a shared workspace."""
_ZERO = datetime(1, 1, 1, tzinfo=UTC)
_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
_Given = dict[str, list[Mapping[str, Any]]]


def pbkdf2(password: str) -> bytes:
    """Return a hash as the original stores it."""
    salt = b"0123456789abcdef"
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 65535, 64)
    parts = [base64.b64encode(part).decode().rstrip("=") for part in (salt, key)]
    return f"$pbkdf2-sha256$65535${parts[0]}${parts[1]}".encode()


def deployment() -> Rows:
    """Return the rows of every table."""
    given: _Given = {**_people(), **_templates(), **_workspaces(), **_settings()}
    rows = make_rows(given)
    rows["workspace_agent_metadata"] = [
        {
            "workspace_agent_id": ident("workspace_agents", 0),
            "display_name": "Load",
            "key": "load",
            "script": "uptime",
            "timeout": 1,
            "interval": 10,
            "value": "0.1",
        }
    ]
    rows["workspace_agent_logs"] = [
        {
            "agent_id": ident("workspace_agents", 0),
            "created_at": START,
            "output": "hello ✓",
            "id": 7000 + number,
            "level": "info",
            "log_source_id": UUID(int=0),
        }
        for number in range(3)
    ]
    return rows


def _people() -> _Given:
    organization = ident("organizations", 0)
    permissions = json.dumps(
        [
            {"negate": False, "resource_type": "workspace", "action": "read"},
            {"negate": True, "resource_type": "template", "action": "delete"},
        ]
    )
    user: dict[str, Any] = {
        "login_type": "password",
        "status": "active",
        "rbac_roles": [],
        "deleted": False,
        "is_system": False,
        "is_service_account": False,
        "quiet_hours_schedule": "",
        "avatar_url": "",
    }
    return {
        "organizations": [
            {"name": "coder", "is_default": True, "deleted": False, "default_org_member_roles": []},
            {"name": "Other", "is_default": False, "deleted": True},
        ],
        "users": [
            user | {"email": EMAIL, "username": USERNAME, "hashed_password": pbkdf2(PASSWORD), "rbac_roles": ["owner"]},
            user | {"email": EMAIL.lower(), "username": USERNAME.upper(), "deleted": True},
            user
            | {
                "id": PREBUILDS_USER,
                "email": "prebuilds@system",
                "username": "prebuilds",
                "is_system": True,
                "login_type": "none",
                "hashed_password": b"",
            },
            user | {"email": "", "username": "robot", "is_service_account": True, "status": "suspended"},
        ],
        "user_links": [{"login_type": "oidc", "claims": json.dumps({"merged_claims": {"groups": ["a"]}})}],
        "user_configs": [{"key": "theme_preference", "value": "dark"}, {"key": "unknown_page", "value": "x"}],
        "custom_roles": [
            {
                "name": "auditor",
                "is_system": False,
                "organization_id": organization,
                "org_permissions": permissions,
                "site_permissions": "null",
                "member_permissions": "[]",
            },
            {"name": "organization-member", "is_system": True},
        ],
        "groups": [{"id": organization, "name": "Everyone"}, {"name": "devs", "organization_id": organization}],
        "group_members": [{"group_id": ident("groups", 1), "user_id": ident("users", 0)}],
        "organization_members": [{"roles": ["organization-admin"]}, {"user_id": PREBUILDS_USER, "roles": []}],
        "api_keys": [
            {
                "id": KEY_ID,
                "hashed_secret": hashlib.sha256(KEY_SECRET.encode()).digest(),
                "expires_at": _FUTURE,
                "lifetime_seconds": 10**9,
                "login_type": "password",
                "token_name": "",
                "scopes": ["coder:all"],
                "allow_list": ["*:*"],
            }
        ],
        "external_auth_links": [{"oauth_expiry": _ZERO, "user_id": ident("users", 0)}],
        "user_secrets": [{"enabled": True, "env_name": "TOKEN"}],
        "audit_logs": [
            {"id": ident("audit_logs", number), "diff": diff, "time": START + timedelta(minutes=number)}
            for number, diff in enumerate(("{}", "[1, 2.5, null]", '"text"', "17", '{"é": {"old": "\\"", "new": ""}}'))
        ],
        "notification_templates": [{"method": "webhook", "kind": "system"}],
    }


def _templates() -> _Given:
    done: dict[str, Any] = {
        "canceled_at": None,
        "error": None,
        "error_code": None,
        "provisioner": "echo",
        "completed_at": START,
        "tags": json.dumps({"scope": "organization", "owner": ""}),
        "file_id": ident("files", 0),
        "organization_id": ident("organizations", 0),
        "initiator_id": ident("users", 0),
    }
    return {
        "files": [
            {
                "created_by": ident("users", 0),
                "data": TEMPLATE,
                "hash": hashlib.sha256(TEMPLATE).hexdigest(),
                "mimetype": "application/x-tar",
            },
            # Files of modules belong to no user.
            {"created_by": UUID(int=0)},
        ],
        "provisioner_jobs": [
            done
            | {
                "type": "template_version_import",
                "input": json.dumps({"template_version_id": str(ident("template_versions", 0))}),
            },
            done
            | {
                "type": "workspace_build",
                "input": json.dumps({"workspace_build_id": str(ident("workspace_builds", 0)), "log_level": "debug"}),
            },
            done | {"type": "workspace_build", "input": "{}", "completed_at": None, "started_at": START},
            done | {"type": "template_version_dry_run", "input": "{}", "initiator_id": UNKNOWN_USER},
        ],
        "templates": [
            {
                "name": "box",
                "active_version_id": ident("template_versions", 0),
                "provisioner": "echo",
                "deleted": False,
                "deprecated": "",
                "allow_user_autostart": True,
                "allow_user_autostop": True,
                "default_ttl": 8 * 3600 * 10**9,
                "max_port_sharing_level": "public",
                "autostart_block_days_of_week": 96,
                "autostop_requirement_days_of_week": 0,
                "autostop_requirement_weeks": 0,
                "failure_ttl": 0,
                "time_til_dormant": 0,
                "time_til_dormant_autodelete": 0,
                "user_acl": json.dumps({str(ident("users", 0)): ["*"]}),
                "group_acl": json.dumps({str(ident("organizations", 0)): ["read", "use"], str(UNKNOWN_USER): []}),
                "use_classic_parameter_flow": True,
            },
            {"name": "BOX", "deleted": True},
        ],
        "template_versions": [
            {
                "job_id": ident("provisioner_jobs", 0),
                "archived": False,
                "has_external_agent": False,
                "has_ai_task": False,
                "external_auth_providers": "[]",
            },
            {"job_id": ident("provisioner_jobs", 3)},
        ],
        "template_version_parameters": [
            {
                "template_version_id": ident("template_versions", 1),
                "type": "string",
                "options": json.dumps([{"name": "A", "value": "a", "description": "", "icon": ""}]),
            }
        ],
        "template_version_workspace_tags": [{"template_version_id": ident("template_versions", 1)}],
        "template_version_presets": [{"desired_instances": None, "template_version_id": ident("template_versions", 1)}],
    }


def _workspaces() -> _Given:
    return {
        "workspaces": [
            {
                "name": "Dev",
                "owner_id": ident("users", 0),
                "deleted": False,
                "autostart_schedule": None,
                "ttl": None,
                "dormant_at": None,
                "deleting_at": None,
                "next_start_at": None,
                "favorite": True,
                "automatic_updates": "never",
                "template_id": ident("templates", 0),
                "organization_id": ident("organizations", 0),
                "user_acl": json.dumps({str(ident("users", 3)): {"permissions": _USE}}),
                "group_acl": json.dumps({str(ident("groups", 1)): {"permissions": ["update", *_USE]}}),
            },
            {"name": "dev", "deleted": True, "owner_id": ident("users", 0)},
        ],
        "workspace_builds": [
            {
                "job_id": ident("provisioner_jobs", 1),
                "transition": "start",
                "build_number": 1,
                "provisioner_state": STATE,
                "deadline": _ZERO,
                "max_deadline": _ZERO,
                "template_version_preset_id": None,
                "template_version_id": ident("template_versions", 0),
                "has_ai_task": False,
                "has_external_agent": False,
                "reason": "initiator",
                "daily_cost": 3,
                "initiator_id": ident("users", 0),
            },
            {"job_id": ident("provisioner_jobs", 2), "workspace_id": ident("workspaces", 1)},
        ],
        "workspace_resources": [
            {"job_id": ident("provisioner_jobs", 1), "transition": "start", "type": "null_resource", "name": "box"},
            {"job_id": ident("provisioner_jobs", 0)},
        ],
        "workspace_agents": [
            {
                "name": "main",
                "auth_token": AGENT_TOKEN,
                "parent_id": None,
                "deleted": False,
                "resource_id": ident("workspace_resources", 0),
                "operating_system": "linux",
                "architecture": "amd64",
                "directory": "",
                "environment_variables": json.dumps({"GREETING": "hi"}),
                "display_apps": ["vscode", "web_terminal"],
                "lifecycle_state": "ready",
                "connection_timeout_seconds": 120,
                "api_key_scope": "all",
                "version": "v2.34.0",
                "api_version": "2.8",
                "disconnected_at": None,
                "motd_file": "",
                "expanded_directory": "/home/coder",
            },
            {
                "name": "inner",
                "parent_id": ident("workspace_agents", 0),
                "resource_id": ident("workspace_resources", 0),
            },
        ],
        "workspace_agent_stats": [{"agent_id": ident("workspace_agents", 0), "workspace_id": ident("workspaces", 0)}],
        "workspace_apps": [{"external": False, "health": "disabled", "open_in": "tab"}],
        "workspace_agent_scripts": [{"script": "echo hello", "cron": "", "log_source_id": UUID(int=0)}],
    }


def _settings() -> _Given:
    group_sync = {"field": "groups", "mapping": {"a": [str(ident("groups", 1))]}, "auto_create_missing_groups": True}
    return {
        "site_configs": [
            {"key": "deployment_id", "value": DEPLOYMENT_ID},
            {"key": "application_name", "value": "Acme"},
            {"key": "announcement_banners", "value": json.dumps([{"enabled": True, "message": "m"}])},
            {"key": "notifications_settings", "value": json.dumps({"notifier_paused": True})},
            {"key": "health_settings", "value": json.dumps({"dismissed_healthchecks": ["DERP"]})},
            {"key": f"{ident('organizations', 0)}:group-sync-settings", "value": json.dumps(group_sync)},
            {"key": "prebuilds_settings", "value": "not json"},
        ],
        "replicas": [{"stopped_at": START}],
        # The rows of another release's hashes.
        "oauth2_provider_app_secrets": [{}, {"hashed_secret": b"$pbkdf2-sha256$65535$short"}],
        "dbcrypt_keys": [{"active_key_digest": None, "revoked_key_digest": f"revoked{number}"} for number in range(2)],
        "user_ai_provider_keys": [{"api_key_key_id": None}],
        "ai_provider_keys": [{"api_key_key_id": None}],
    }
