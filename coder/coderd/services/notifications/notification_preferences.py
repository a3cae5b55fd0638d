"""Notifications that a user has disabled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Failed, Invalid
from coder.api.notifications.notifications import NotificationPreference
from coder.coderd.store.notifications import notifications as store
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.notifications.notification_texts import BY_ID

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


async def preferences(ctx: Context, user_id: UUID) -> list[NotificationPreference] | None:
    """Return the preferences; None when the user never set any (upstream's null)."""
    rows = await ctx.db.read(store.list_preferences, user_id)
    return [
        NotificationPreference(id=row.template_id, disabled=row.disabled, updated_at=row.updated_at) for row in rows
    ] or None


async def set_preferences(
    ctx: Context, user_id: UUID, disabled: Mapping[str, bool]
) -> list[NotificationPreference] | None:
    """Set preferences. Raises Invalid (no UUID), Failed (no such template; upstream's 500)."""
    changes: dict[UUID, bool] = {}
    for text, value in disabled.items():
        try:
            changes[read_uuid(text)] = bool(value)
        except ValueError as error:
            raise Invalid("Unable to parse notification template UUID.", str(error)) from error
    unknown = [str(template_id) for template_id in changes if template_id not in BY_ID]
    if unknown:
        raise Failed("Failed to update user notifications preferences.", f"no such template: {unknown[0]}")
    await ctx.db.run(store.put_preferences, user_id, changes, ctx.clock.now())
    return await preferences(ctx, user_id)
