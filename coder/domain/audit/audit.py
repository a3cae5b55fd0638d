"""Content of audit entries: the difference between two states of an object, and a description.

A state is a flat mapping of tracked fields. Descriptions are upstream's: `{user}` and `{target}` are filled in by the
client.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coder.base.json_types import Json, JsonObject

ACTIONS = (
    "create",
    "write",
    "delete",
    "start",
    "stop",
    "login",
    "logout",
    "register",
    "request_password_reset",
    "connect",
    "disconnect",
    "open",
    "close",
)
_PAST = {
    "create": "created",
    "write": "updated",
    "delete": "deleted",
    "start": "started",
    "stop": "stopped",
    "login": "logged in",
    "logout": "logged out",
    "register": "registered",
    "request_password_reset": "password reset requested",
    "connect": "connected",
    "disconnect": "disconnected",
    "open": "opened",
    "close": "closed",
}
_NAMES = {
    "api_key": "token",
    "convert_login": "login type conversion",
    "custom_role": "custom role",
    "git_ssh_key": "git ssh key",
    "idp_sync_settings_group": "settings",
    "idp_sync_settings_organization": "settings",
    "idp_sync_settings_role": "settings",
    "notification_template": "notification template",
    "oauth2_provider_app": "oauth2 app",
    "oauth2_provider_app_secret": "oauth2 app secret",
    "organization_member": "organization member",
    "template_version": "template version",
    "oauth2_provider_settings": "oauth2 provider settings",
    "user_secret": "user secret",
    "user_skill": "user skill",
    "workspace_agent": "workspace agent",
    "workspace_app": "workspace app",
    "workspace_build": "workspace",
    "workspace_proxy": "workspace proxy",
}
_WITHOUT_TARGET = frozenset({"login", "logout", "register"})

State = Mapping[str, Json]


def diff(before: State | None, after: State | None, secret: Collection[str] = ()) -> dict[str, JsonObject]:
    """Return the changed fields with old and new values; a secret field only reports that it changed.

    A new object is compared with empty values, a deleted one becomes empty.
    """
    results: dict[str, JsonObject] = {}
    for name in {**(before or {}), **(after or {})}:
        old = before.get(name) if before is not None else _empty_like((after or {}).get(name))
        new = after.get(name) if after is not None else _empty_like((before or {}).get(name))
        if old == new:
            continue
        if name in secret:
            results[name] = {"secret": True}
            continue
        values: JsonObject = {"old": old, "new": new}
        results[name] = {**{key: value for key, value in values.items() if value is not None}, "secret": False}
    return dict(sorted(results.items()))


def _empty_like(value: Json) -> Json:
    """Return the value of the field for a missing object: None for lists and times, else an empty value."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return 0
    return "" if isinstance(value, str) else value if value == {} else None


def description(action: str, resource_type: str, status_code: int) -> str:
    """Return `{user} created workspace {target}`."""
    parts = [] if action == "request_password_reset" else ["{user}"]
    if status_code >= 400:
        parts += ["unsuccessfully attempted to", action]
    else:
        parts.append(_PAST.get(action, action))
    if resource_type == "api_key" and action in _WITHOUT_TARGET:
        return " ".join(parts)
    name = _NAMES.get(resource_type, resource_type)
    if resource_type == "git_ssh_key":
        return " ".join([*parts, "the", name])
    if action == "request_password_reset":
        return " ".join([*parts, "for", "{target}"])
    return " ".join([*parts, name, *(["to"] if resource_type == "convert_login" else []), "{target}"])


def resource_link(resource_type: str, target: str, additional: Mapping[str, Json], resource_id: str) -> str:
    """Return the dashboard path of the object; empty if it has no page."""
    owner = additional.get("workspace_owner") or ""
    if resource_type == "user":
        return f"/users?filter={target}"
    if resource_type == "template":
        return f"/templates/{target}"
    if resource_type == "workspace":
        return f"/@{owner}/{target}" if owner else ""
    if resource_type == "task":
        return f"/tasks/{owner}/{resource_id}" if owner else ""
    if resource_type == "workspace_build":
        name, number = additional.get("workspace_name") or target, additional.get("build_number")
        return f"/@{owner}/{name}/builds/{number}" if owner and number else ""
    if resource_type == "oauth2_provider_app":
        return f"/deployment/oauth2-provider/apps/{resource_id}"
    if resource_type == "organization":
        return f"/organizations/{target}"
    return ""
