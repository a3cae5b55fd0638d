"""Settings of a user: appearance and preferences. Quiet hours are `quiet_hours.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import UNSET

from coder.api.base.refusals import Invalid
from coder.api.people.user_settings import (
    UpdateUserAppearanceSettingsRequest,
    UpdateUserPreferenceSettingsRequest,
    UserAppearanceSettings,
    UserPreferenceSettings,
)
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.store.people import users as store

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_APPEARANCE = "appearance."
_PREFERENCES = "preferences."
_FONTS = ("", "ibm-plex-mono", "fira-code", "jetbrains-mono", "source-code-pro", "geist-mono")
_MODES: Mapping[str, str] = {
    "thinking_display_mode": "auto",
    "shell_tool_display_mode": "always_collapsed",
    "code_diff_display_mode": "",
    "agent_chat_send_shortcut": "enter",
}


async def get_appearance(ctx: Context, user_id: UUID) -> UserAppearanceSettings:
    chosen = await ctx.db.read(store.get_configs, user_id, _APPEARANCE)
    return UserAppearanceSettings(**{name: chosen.get(name, "") for name in UserAppearanceSettings.__struct_fields__})


async def set_appearance(
    ctx: Context, user_id: UUID, request: UpdateUserAppearanceSettingsRequest
) -> UserAppearanceSettings:
    """Set the appearance. Raises Invalid for a font the dashboards do not have."""
    if request.terminal_font not in _FONTS:
        raise Invalid("Unsupported font family.")
    values = {name: getattr(request, name) for name in UserAppearanceSettings.__struct_fields__}
    await ctx.db.run(store.put_configs, user_id, _APPEARANCE, values)
    return UserAppearanceSettings(**values)


async def get_preferences(ctx: Context, user_id: UUID) -> UserPreferenceSettings:
    chosen = dict(await ctx.db.read(store.get_configs, user_id, _PREFERENCES))
    dismissed = chosen.pop("task_notification_alert_dismissed", "false") == "true"
    return UserPreferenceSettings(task_notification_alert_dismissed=dismissed, **{**_MODES, **chosen})


async def set_preferences(
    ctx: Context, user_id: UUID, request: UpdateUserPreferenceSettingsRequest
) -> UserPreferenceSettings:
    """Set preferences; absent and empty fields stay unchanged. Raises Invalid for values no dashboard knows."""
    check_request(request)
    values = {}
    for name in ("task_notification_alert_dismissed", *_MODES):
        value = getattr(request, name)
        if value is not UNSET and value is not None and value != "":
            values[name] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    await ctx.db.run(store.put_configs, user_id, _PREFERENCES, values)
    return await get_preferences(ctx, user_id)
