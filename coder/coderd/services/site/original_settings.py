"""The original's settings of the site as ours: appearance, IdP sync, keys of browser notifications."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from coder.api.base import codec
from coder.api.login.oauth2 import GroupSyncSettings, OrganizationSyncSettings, RoleSyncSettings
from coder.base.json_types import Json, JsonObject, as_list, as_object
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.people.organization_settings import group_sync_key, role_sync_key
from coder.coderd.store.notifications.web_push import VAPID_KEYS

SAME = ("notifications_settings", "prebuilds_settings")
"""Settings that both programs store alike."""
_TEXTS = ("application_name", "logo_url")
_OF_PROCESSES = frozenset(
    {
        "deployment_id",
        "last_update_check",
        "derp_mesh_key",
        "app_signing_key",
        "oauth_signing_key",
        "coordinator_resume_token_signing_key",
    }
)
"""Keys of the original's processes, and the deployment's id: each program generates its own keys."""
_GROUPS, _ROLES = ":group-sync-settings", ":role-sync-settings"
_ORGANIZATIONS = "idp_sync_organization"
_PUSH_KEYS = ("webpush_vapid_public_key", "webpush_vapid_private_key")
_NO_BANNER: JsonObject = {"enabled": False, "message": "", "background_color": ""}


def our_settings(theirs: Mapping[str, str], sealer: Sealer) -> dict[str, str]:
    """Return our settings by key. `settings_not_taken` names those that are left out."""
    ours = {"deployment_id": theirs["deployment_id"]}
    ours |= {key: json.dumps(_json(theirs[key])) for key in SAME if _is_taken(key, theirs)}
    appearance = {
        **{key: theirs.get(key, "") for key in _TEXTS},
        "service_banner": _banner(_json(theirs.get("service_banner"))),
        "announcement_banners": [_banner(item) for item in as_list(_json(theirs.get("announcement_banners")))],
    }
    if any(theirs.get(name) for name in appearance):
        ours["appearance"] = json.dumps(appearance)
    health = as_object(_json(theirs.get("health_settings")))
    if dismissed := as_list(health.get("dismissed_healthchecks")):
        ours["health_settings"] = json.dumps(dismissed)
    for key, text in theirs.items():
        if (name := _sync_key(key)) and (value := _sync(name, _json(text))) is not None:
            ours[name] = json.dumps(value)
    public, private = (theirs.get(key) for key in _PUSH_KEYS)
    if public and private:
        ours[VAPID_KEYS] = json.dumps({"public": public, "private": sealer.seal(private)})
    return ours


def settings_not_taken(theirs: Mapping[str, str]) -> list[str]:
    """Return the keys of the original's settings that this program does not have, or whose values it cannot read."""
    return sorted(key for key in theirs if theirs[key] and key not in _OF_PROCESSES and not _is_taken(key, theirs))


def _is_taken(key: str, theirs: Mapping[str, str]) -> bool:
    value = _json(theirs.get(key))
    if key in _TEXTS:
        return True
    if key in _PUSH_KEYS:
        return all(theirs.get(name) for name in _PUSH_KEYS)
    if key == "announcement_banners":
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    if key in {*SAME, "service_banner", "health_settings"}:
        return isinstance(value, dict)
    name = _sync_key(key)
    return bool(name) and _sync(name, value) is not None


def _sync_key(key: str) -> str:
    """Return our key of IdP sync settings, empty for others."""
    if key == "organization-sync-settings":
        return _ORGANIZATIONS
    for suffix, ours in ((_GROUPS, group_sync_key), (_ROLES, role_sync_key)):
        if key.endswith(suffix):
            try:
                return ours(UUID(key.removesuffix(suffix)))
            except ValueError:
                return ""
    return ""


def _sync(name: str, value: Json) -> JsonObject | None:
    """Return our form of IdP sync settings, None for a value that logins could not read."""
    given = as_object(value)
    mapping = {key: [] if names is None else names for key, names in as_object(given.get("mapping")).items()}
    known: JsonObject = {"field": given.get("field"), "mapping": mapping}
    kind: type[GroupSyncSettings | RoleSyncSettings | OrganizationSyncSettings] = RoleSyncSettings
    if name == _ORGANIZATIONS:
        kind = OrganizationSyncSettings
        known["organization_assign_default"] = bool(given.get("organization_assign_default"))
    elif name.startswith("idp_sync_groups:"):
        kind = GroupSyncSettings
        known["regex_filter"] = given.get("regex_filter") or None
        known["auto_create_missing_groups"] = bool(given.get("auto_create_missing_groups"))
        if isinstance(given.get("legacy_group_name_mapping"), Mapping):
            known["legacy_group_name_mapping"] = given["legacy_group_name_mapping"]
    try:
        codec.decode(json.dumps(known), kind)
    except ValueError:
        return None
    return known


def _banner(value: Json) -> JsonObject:
    given = as_object(value)
    return {
        name: found if isinstance(found := given.get(name), type(default)) else default
        for name, default in _NO_BANNER.items()
    }


def _json(text: str | None) -> Json:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
