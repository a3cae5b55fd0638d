"""One-time passcodes for people who forgot their password: made, and sent to them as a notification."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.access.authentication import hash_secret
from coder.coderd.services.notifications.notifications import (
    Notification,
    NotificationSite,
    enqueue,
    leaves_the_dashboard,
    site_of,
)
from coder.coderd.store.people import users as user_store
from coder.domain.notifications.notification_templates import ONE_TIME_PASSCODE

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

PASSCODE_LIFETIME = timedelta(minutes=20)
PASSCODE_PAUSE = timedelta(minutes=1)
"""Between two passcodes of one user."""


async def request_passcode(ctx: Context, email: str) -> None:
    """Sends a passcode to a user who may reset a password; the caller never learns whether there is one."""
    user = await ctx.db.read(user_store.get_user_by_email, email)
    if user is None or user.login_type != "password" or user.status == "suspended":
        return
    await ctx.db.run(_send, user.id, secrets.token_urlsafe(24), site_of(ctx), ctx.clock.now())


async def can_be_sent(ctx: Context) -> bool:
    """Whether asking for one is of any use."""
    return await leaves_the_dashboard(ctx, ONE_TIME_PASSCODE)


async def _send(tx: Tx, user_id: UUID, passcode: str, site: NotificationSite, now: datetime) -> None:
    await user_store.get_user(tx, user_id, lock=True)  # of two requests at once the second sees what the first sent
    _, last = await user_store.get_passcode(tx, user_id)
    if last is not None and last > now + PASSCODE_LIFETIME - PASSCODE_PAUSE:
        return  # whoever asks again and again must not fill somebody's mailbox, nor make the last mail worthless
    hashed, until = hash_secret(passcode), now + PASSCODE_LIFETIME
    await user_store.update_user(tx, user_id, one_time_passcode_hash=hashed, one_time_passcode_expires_at=until)
    labels = {"one_time_passcode": passcode}
    await enqueue(tx, site, Notification(ONE_TIME_PASSCODE, user_id, labels, (user_id,)), now)
