"""Passcodes for users who forgot their password: create one and send it as a notification."""

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
    reaches_outside_inbox,
    site_of,
)
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.domain.notifications.notification_templates import ONE_TIME_PASSCODE

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

PASSCODE_LIFETIME = timedelta(minutes=20)
PASSCODE_PAUSE = timedelta(minutes=1)
"""Time between two passcodes of one user."""


async def request_passcode(ctx: Context, email: str) -> None:
    """Send a passcode to a user who may reset a password. The caller never learns whether the user exists."""
    user = await ctx.db.read(system_users.get_user_by_email, email)
    if user is None or user.login_type != "password" or user.status == "suspended":
        return
    await ctx.db.run(_send, user.id, secrets.token_urlsafe(24), site_of(ctx), ctx.clock.now())


async def can_be_sent(ctx: Context) -> bool:
    """Whether a passcode can reach a user who cannot log in."""
    return await reaches_outside_inbox(ctx, ONE_TIME_PASSCODE)


async def _send(tx: Tx, user_id: UUID, passcode: str, site: NotificationSite, now: datetime) -> None:
    # of two concurrent requests, the second sees the passcode of the first
    await system_users.get_user(tx, user_id, lock=True)
    _, last = await user_store.get_passcode(tx, user_id)
    if last is not None and last > now + PASSCODE_LIFETIME - PASSCODE_PAUSE:
        return  # repeated requests must not fill a user's mailbox, nor invalidate the last mail
    hashed, expires_at = hash_secret(passcode), now + PASSCODE_LIFETIME
    await user_store.update_user(tx, user_id, one_time_passcode_hash=hashed, one_time_passcode_expires_at=expires_at)
    labels = {"one_time_passcode": passcode}
    await enqueue(tx, site, Notification(ONE_TIME_PASSCODE, user_id, labels, (user_id,)), now)
