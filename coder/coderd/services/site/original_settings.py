"""The original's settings of the site as ours: appearance, IdP sync, keys of browser notifications."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from coder.base.json_types import Json, JsonObject, as_list, as_object
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.people.organization_settings import group_sync_key, role_sync_key
from coder.coderd.store.notifications.web_push import VAPID_KEYS

SAME = ("notifications_settings", "prebuilds_settings")
"""Settings that both programs store alike."""
_GROUPS, _ROLES = ":group-sync-settings", ":role-sync-settings"
_NO_BANNER: JsonObject = {"enabled": False, "message": "", "background_color": ""}


def our_settings(theirs: Mapping[str, str], sealer: Sealer) -> dict[str, str]:
    """Return our settings by key. Values that the original could not have written are left out."""
    ours = {"deployment_id": theirs["deployment_id"]}
    ours |= {key: json.dumps(value) for key in SAME if isinstance(value := _json(theirs.get(key)), dict)}
    appearance = {
        "application_name": theirs.get("application_name", ""),
        "logo_url": theirs.get("logo_url", ""),
        "service_banner": _banner(_json(theirs.get("service_banner"))),
        "announcement_banners": [_banner(item) for item in as_list(_json(theirs.get("announcement_banners")))],
    }
    if any(theirs.get(name) for name in appearance):
        ours["appearance"] = json.dumps(appearance)
    health = _json(theirs.get("health_settings"))
    if isinstance(health, dict) and as_list(health.get("dismissed_healthchecks")):
        ours["health_settings"] = json.dumps(health["dismissed_healthchecks"])
    for key, text in theirs.items():
        value = _json(text)
        name = _sync_key(key)
        if name and isinstance(value, dict) and isinstance(value.get("field"), str):
            ours[name] = json.dumps(_sync(name, value))
    public, private = theirs.get("webpush_vapid_public_key"), theirs.get("webpush_vapid_private_key")
    if public and private:
        ours[VAPID_KEYS] = json.dumps({"public": public, "private": sealer.seal(private)})
    return ours


def _sync_key(key: str) -> str:
    """Return our key of IdP sync settings, empty for others."""
    if key == "organization-sync-settings":
        return "idp_sync_organization"
    for suffix, ours in ((_GROUPS, group_sync_key), (_ROLES, role_sync_key)):
        if key.endswith(suffix):
            try:
                return ours(UUID(key.removesuffix(suffix)))
            except ValueError:
                return ""
    return ""


def _sync(name: str, value: Mapping[str, Json]) -> JsonObject:
    known: JsonObject = {"field": value["field"], "mapping": as_object(value.get("mapping"))}
    if name == "idp_sync_organization":
        return {**known, "organization_assign_default": bool(value.get("organization_assign_default"))}
    if name.startswith("idp_sync_groups:"):
        known["regex_filter"] = value.get("regex_filter") or None
        known["auto_create_missing_groups"] = bool(value.get("auto_create_missing_groups"))
        if isinstance(value.get("legacy_group_name_mapping"), Mapping):
            known["legacy_group_name_mapping"] = value["legacy_group_name_mapping"]
    return known


def _banner(value: Json) -> JsonObject:
    given = as_object(value)
    return {name: given.get(name, default) or default for name, default in _NO_BANNER.items()}


def _json(text: str | None) -> Json:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
