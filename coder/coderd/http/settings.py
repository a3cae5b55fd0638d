"""What a user chose for itself: appearance, preferences, quiet hours."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from quart import Blueprint, Response

from coder.api.users import (
    UpdateUserAppearanceSettingsRequest,
    UpdateUserPreferenceSettingsRequest,
    UpdateUserQuietHoursScheduleRequest,
    UserAppearanceSettings,
    UserPreferenceSettings,
)
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.http.page_values import APPEARANCE_KEYS
from coder.coderd.services import quiet_hours, users
from coder.coderd.services.authorization import require
from coder.coderd.services.errors import Invalid
from coder.coderd.services.users import user_resource
from coder.coderd.store import users as user_store
from coder.coderd.store.users import UserRow

blueprint = Blueprint("settings", __name__, url_prefix="/api/v2/users")

_FONTS = ("", "ibm-plex-mono", "fira-code", "jetbrains-mono", "source-code-pro", "geist-mono")
_PREFERENCES = "preferences."
_DEFAULTS: dict[str, Any] = {
    "task_notification_alert_dismissed": False,
    "thinking_display_mode": "auto",
    "shell_tool_display_mode": "always_collapsed",
    "code_diff_display_mode": "",
    "agent_chat_send_shortcut": "enter",
}


async def _user(reference: str, action: str) -> UserRow:
    row = await users.resolve_user(context(), subject(), reference)
    require(subject(), action, user_resource(row.id))
    return row


@blueprint.get("/<user>/appearance")
@authenticated
async def get_appearance(user: str) -> Response:
    row = await _user(user, "read_personal")
    chosen = await context().db.read(user_store.get_configs, row.id, APPEARANCE_KEYS)
    names = UserAppearanceSettings.__struct_fields__
    return reply(UserAppearanceSettings(**{name: chosen.get(name, "") for name in names}))


@blueprint.put("/<user>/appearance")
@authenticated
async def put_appearance(user: str) -> Response:
    row = await _user(user, "update_personal")
    body = await read_body(UpdateUserAppearanceSettingsRequest, ("theme_preference", "terminal_font"))
    if body.terminal_font not in _FONTS:
        raise Invalid("Unsupported font family.")
    names = UserAppearanceSettings.__struct_fields__
    values = {name: getattr(body, name) for name in names}
    await context().db.run(user_store.put_configs, row.id, APPEARANCE_KEYS, values)
    return reply(UserAppearanceSettings(**values))


@blueprint.get("/<user>/preferences")
@authenticated
async def get_preferences(user: str) -> Response:
    row = await _user(user, "read_personal")
    return reply(await _preferences(row))


@blueprint.put("/<user>/preferences")
@authenticated
async def put_preferences(user: str) -> Response:
    row = await _user(user, "update_personal")
    body = await read_body(UpdateUserPreferenceSettingsRequest)
    values = {}
    for name in _DEFAULTS:
        value = getattr(body, name)
        if value is not UNSET and value is not None and value != "":
            values[name] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    await context().db.run(user_store.put_configs, row.id, _PREFERENCES, values)
    return reply(await _preferences(row))


async def _preferences(row: UserRow) -> UserPreferenceSettings:
    chosen: dict[str, Any] = dict(await context().db.read(user_store.get_configs, row.id, _PREFERENCES))
    dismissed = chosen.pop("task_notification_alert_dismissed", "false") == "true"
    return UserPreferenceSettings(**{**_DEFAULTS, **chosen, "task_notification_alert_dismissed": dismissed})


@blueprint.get("/<user>/quiet-hours")
@authenticated
async def get_quiet_hours(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    return reply(quiet_hours.show_quiet_hours(context(), subject(), row))


@blueprint.put("/<user>/quiet-hours")
@authenticated
async def put_quiet_hours(user: str) -> Response:
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserQuietHoursScheduleRequest)
    return reply(await quiet_hours.set_quiet_hours(context(), subject(), row, body.schedule))
