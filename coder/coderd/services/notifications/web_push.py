"""Send Web Push messages (RFC 8030) to the browsers of a user, also while no page is open.

A push service that responds with 404 or 410 has deleted the subscription, so the server deletes it, too.
`web_push_subscriptions` stores subscriptions, `push_services` is the HTTP client, `domain/notifications/web_push.py`
encrypts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base import codec
from coder.api.notifications.notifications import WebpushMessage, WebpushMessageAction
from coder.coderd.services.notifications.push_services import PushRefused
from coder.coderd.services.notifications.vapid_keys import site_keys
from coder.coderd.store.notifications import web_push as store
from coder.coderd.store.notifications.notifications import MessagePayload
from coder.coderd.store.notifications.web_push import SubscriptionRow
from coder.domain.notifications import web_push as web_push_rules

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_TTL = 24 * 3600
# Seconds a push service keeps a message for an offline browser.
_GONE = frozenset({404, 410})
TEST_MESSAGE = WebpushMessage(
    icon="/icon/coder.svg",
    title="It's working!",
    body="You have subscribed to push notifications.",
    actions=[],
)


async def push(ctx: Context, user_id: UUID, message: WebpushMessage) -> tuple[int, list[str]]:
    """Send a message to every browser of a user. Return the number of deliveries and the reasons of failures.

    Subscriptions that no longer exist are deleted.
    """
    rows = await ctx.db.read(store.list_subscriptions, user_id)
    delivered, refused = [], []

    async def push_to(row: SubscriptionRow) -> None:
        try:
            await push_to_browser(ctx, row, message)
        except PushRefused as error:
            if error.gone:
                await ctx.db.run(store.delete_dead, row.id, row.auth_key)
            else:
                refused.append(error.message)
        else:
            delivered.append(row.id)

    async with trio.open_nursery() as nursery:
        for row in rows:
            nursery.start_soon(push_to, row)
    return len(delivered), refused


async def push_to_browser(ctx: Context, row: SubscriptionRow, message: WebpushMessage) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    _, key = await site_keys(ctx)
    body = web_push_rules.encrypt(
        encode(message),
        web_push_rules.decode_key_untrusted(row.p256dh_key, web_push_rules.POINT_BYTES),
        web_push_rules.decode_key_untrusted(row.auth_key, web_push_rules.AUTH_BYTES),
        ec.generate_private_key(ec.SECP256R1()),
        os.urandom(web_push_rules.SALT_BYTES),
    )
    contact = ctx.access_url if ctx.access_url.startswith("https:") else "mailto:noreply@coder.invalid"
    headers = [
        ("Authorization", web_push_rules.authorization(row.endpoint, contact, key, int(ctx.clock.now().timestamp()))),
        ("Content-Encoding", "aes128gcm"),
        ("Content-Type", "application/octet-stream"),
        ("TTL", str(_TTL)),
    ]
    status = await ctx.services.api.push_services.post(row.endpoint, headers, body)
    if not 200 <= status < 300:
        raise PushRefused(f"the push service answered with status {status}", gone=status in _GONE)


def encode(message: WebpushMessage) -> bytes:
    """Encode a message as JSON within the size limit, by shortening its text."""
    encoded = codec.encode(message)
    text = message.body
    while len(encoded) > web_push_rules.MAX_PAYLOAD and text:
        text = text[: len(text) // 2]
        actions = message.actions if text else []
        encoded = codec.encode(WebpushMessage(message.icon, message.title[:200], f"{text}…", actions))
    return encoded


def message_of(payload: MessagePayload) -> WebpushMessage:
    """Return the message to show for the payload of an inbox notification."""
    from coder.domain.foundation.markdown import plain_text

    actions = payload.get("actions")
    return WebpushMessage(
        icon=str(payload.get("icon", "")),
        title=plain_text(str(payload.get("title", ""))),
        body=plain_text(str(payload.get("body", ""))),
        actions=[
            WebpushMessageAction(label=str(action["label"]), url=str(action["url"]))
            for action in (actions if isinstance(actions, list) else [])
        ],
    )
