"""Users' own settings: appearance, preferences, quiet hours."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.people.user_settings import (
    UpdateUserAppearanceSettingsRequest,
    UpdateUserPreferenceSettingsRequest,
    UpdateUserQuietHoursScheduleRequest,
    UserAppearanceSettings,
    UserPreferenceSettings,
    UserQuietHoursScheduleResponse,
)
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.access.authorization import require
from coder.coderd.services.people import quiet_hours, user_settings, users
from coder.coderd.services.people.users import UserRow, user_resource

blueprint = Blueprint("settings", __name__, url_prefix="/api/v2/users")


async def _user(reference: str, action: str) -> UserRow:
    row = await users.resolve_user(context(), subject(), reference)
    require(subject(), action, user_resource(row.id))
    return row


@route(blueprint, "GET", "/<user>/appearance", scope="user:read_personal", answers=UserAppearanceSettings)
async def get_appearance(user: str) -> Response:
    row = await _user(user, "read_personal")
    return reply(await user_settings.get_appearance(context(), row.id))


@route(
    blueprint,
    "PUT",
    "/<user>/appearance",
    scope="user:update_personal",
    body=UpdateUserAppearanceSettingsRequest,
    required=("theme_preference", "terminal_font"),
    answers=UserAppearanceSettings,
)
async def put_appearance(user: str) -> Response:
    row = await _user(user, "update_personal")
    body = await read_body(UpdateUserAppearanceSettingsRequest)
    return reply(await user_settings.set_appearance(context(), row.id, body))


@route(blueprint, "GET", "/<user>/preferences", scope="user:read_personal", answers=UserPreferenceSettings)
async def get_preferences(user: str) -> Response:
    row = await _user(user, "read_personal")
    return reply(await user_settings.get_preferences(context(), row.id))


@route(
    blueprint,
    "PUT",
    "/<user>/preferences",
    scope="user:update_personal",
    body=UpdateUserPreferenceSettingsRequest,
    answers=UserPreferenceSettings,
)
async def put_preferences(user: str) -> Response:
    row = await _user(user, "update_personal")
    body = await read_body(UpdateUserPreferenceSettingsRequest)
    return reply(await user_settings.set_preferences(context(), row.id, body))


@route(blueprint, "GET", "/<user>/quiet-hours", scope="user:read_personal", answers=UserQuietHoursScheduleResponse)
async def get_quiet_hours(user: str) -> Response:
    """Return a user's quiet hours and their next start."""
    row = await users.resolve_user(context(), subject(), user)
    return reply(quiet_hours.show_quiet_hours(context(), subject(), row))


@route(
    blueprint,
    "PUT",
    "/<user>/quiet-hours",
    scope="user:update_personal",
    body=UpdateUserQuietHoursScheduleRequest,
    answers=UserQuietHoursScheduleResponse,
    audit=Audited("user", "write"),
)
async def put_quiet_hours(user: str) -> Response:
    """Change the quiet hours. An empty text restores the deployment's. Applies from the next start on."""
    row = await users.resolve_user(context(), subject(), user)
    body = await read_body(UpdateUserQuietHoursScheduleRequest)
    return reply(await quiet_hours.set_quiet_hours(context(), subject(), row, body))
