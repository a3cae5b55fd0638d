"""The original's settings of the site: what is taken, and the names of the rest."""

from __future__ import annotations

import json

import pytest

from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.site.original_settings import our_settings, settings_not_taken

DEPLOYMENT = {"deployment_id": "4f0c2a53-7bb0-4a43-9c1e-0f9a4f4e1d77"}
ORGANIZATION = "7e2f1d4c-0000-4000-8000-000000000001"
GROUPS, ROLES = f"{ORGANIZATION}:group-sync-settings", f"{ORGANIZATION}:role-sync-settings"
UNREADABLE = {
    "service_banner": "[]",
    "announcement_banners": '["text"]',
    "health_settings": "not json",
    "notifications_settings": "[]",
    "prebuilds_settings": "",
    "organization-sync-settings": '{"field": 1}',
    GROUPS: '{"field": "groups", "mapping": {"a": "b"}}',
    ROLES: '{"field": null}',
    "other:role-sync-settings": '{"field": "roles"}',
    "webpush_vapid_public_key": "public",
    "agents_chat_system_prompt": "be brief",
    "banners_of_2030": "{}",
}


@pytest.mark.parametrize("key", UNREADABLE)
def test_unreadable_setting_is_named(key: str) -> None:
    theirs = {**DEPLOYMENT, key: UNREADABLE[key]}
    assert settings_not_taken(theirs) == [key] * bool(UNREADABLE[key])
    ours = our_settings(theirs, Sealer.of_keys({}))
    ours.pop("appearance", None)
    assert ours == DEPLOYMENT


def test_keys_of_processes_are_not_named() -> None:
    assert settings_not_taken({**DEPLOYMENT, "derp_mesh_key": "x", "last_update_check": "{}"}) == []


def test_sync_settings_are_taken() -> None:
    theirs = {
        **DEPLOYMENT,
        GROUPS: json.dumps({"field": "groups", "mapping": {"a": None, "b": ["c"]}}),
        ROLES: json.dumps({"field": "roles"}),
        "organization-sync-settings": json.dumps({"field": "org", "organization_assign_default": True}),
    }
    assert settings_not_taken(theirs) == []
    ours = our_settings(theirs, Sealer.of_keys({}))
    assert json.loads(ours[f"idp_sync_groups:{ORGANIZATION}"])["mapping"] == {"a": [], "b": ["c"]}
    assert json.loads(ours[f"idp_sync_roles:{ORGANIZATION}"]) == {"field": "roles", "mapping": {}}
    assert json.loads(ours["idp_sync_organization"])["organization_assign_default"] is True


def test_banner_has_known_types() -> None:
    theirs = {**DEPLOYMENT, "service_banner": json.dumps({"enabled": "yes", "message": 7, "background_color": "#fff"})}
    banner = json.loads(our_settings(theirs, Sealer.of_keys({}))["appearance"])["service_banner"]
    assert banner == {"enabled": False, "message": "", "background_color": "#fff"}
