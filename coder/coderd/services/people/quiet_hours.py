"""Quiet hours: the time in which a user's workspaces may be stopped because their template requires it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.api.base.refusals import Forbidden
from coder.api.people.user_settings import UpdateUserQuietHoursScheduleRequest, UserQuietHoursScheduleResponse
from coder.coderd.services.access.authorization import require
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.people.users import user_resource
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.access.policy import Subject
from coder.domain.workspaces.autostop import DEFAULT_QUIET_HOURS, quiet_hours

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


def show_quiet_hours(ctx: Context, subject: Subject, user: UserRow) -> UserQuietHoursScheduleResponse:
    """Return a user's quiet hours and their next start. Raises NotFound."""
    require(subject, "read_personal", user_resource(user.id))
    return _present(ctx, user.quiet_hours_schedule)


async def set_quiet_hours(
    ctx: Context, subject: Subject, user: UserRow, request: UpdateUserQuietHoursScheduleRequest
) -> UserQuietHoursScheduleResponse:
    """Set a user's quiet hours; an empty text restores the deployment's default. They apply from the next start on.

    Raises Invalid, Forbidden, NotFound.
    """
    require(subject, "update_personal", user_resource(user.id))
    if not ctx.config.allow_custom_quiet_hours:
        raise Forbidden("Users cannot set custom quiet hours schedule due to deployment configuration.")
    check_request(request)
    now = ctx.clock.now()

    async def write(tx: Tx) -> None:
        await user_store.update_user(tx, user.id, quiet_hours_schedule=request.schedule, updated_at=now)

    await ctx.db.run(write)
    return _present(ctx, request.schedule)


def _present(ctx: Context, chosen: str) -> UserQuietHoursScheduleResponse:
    schedule = quiet_hours(chosen, ctx.config.default_quiet_hours_schedule)
    hour, minute = schedule.hour_and_minute or (0, 0)
    following = schedule.next_after(ctx.clock.now()) or ctx.clock.now()
    return UserQuietHoursScheduleResponse(
        raw_schedule=chosen or ctx.config.default_quiet_hours_schedule or DEFAULT_QUIET_HOURS,
        user_set=bool(chosen),
        user_can_set=ctx.config.allow_custom_quiet_hours,
        time=f"{hour:02}:{minute:02}",
        timezone=schedule.zone,
        next=following,
    )
