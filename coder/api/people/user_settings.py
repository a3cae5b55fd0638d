"""JSON shapes of users' own settings, shared by server and client."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json


class UpdateUserAppearanceSettingsRequest(ApiStruct):
    theme_preference: str
    theme_mode: str
    theme_light: str
    theme_dark: str
    terminal_font: str


class UpdateUserPreferenceSettingsRequest(ApiStruct):
    agent_chat_send_shortcut: Json | UnsetType = UNSET
    code_diff_display_mode: Json | UnsetType = UNSET
    shell_tool_display_mode: Json | UnsetType = UNSET
    task_notification_alert_dismissed: bool | UnsetType = UNSET
    thinking_display_mode: str | UnsetType = UNSET


class UpdateUserQuietHoursScheduleRequest(ApiStruct):
    schedule: str


class UserAppearanceSettings(ApiStruct):
    theme_preference: str
    theme_mode: str
    theme_light: str
    theme_dark: str
    terminal_font: str


class UserPreferenceSettings(ApiStruct):
    task_notification_alert_dismissed: bool
    thinking_display_mode: str
    shell_tool_display_mode: Json
    code_diff_display_mode: Json
    agent_chat_send_shortcut: Json


class UserQuietHoursScheduleResponse(ApiStruct):
    raw_schedule: str
    user_set: bool
    user_can_set: bool
    time: str
    """Wall-clock time in that zone, `15:04`."""
    timezone: str
    next: datetime
