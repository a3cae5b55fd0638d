"""Web Push: browsers subscribe, and hear of messages while no page is open.

The site's VAPID key pair is made once and its private half sealed like other secrets
(`store/engine/encryption_at_rest.py`). What a browser names as its push service is a stranger's URL: only HTTPS is
spoken, only to public addresses, and the address that was checked is the one that is dialled. A service that answers
404 or 410 has forgotten the browser, and so do we. The encryption is `domain/notifications/web_push.py`.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

import trio

from coder.api.base import codec
from coder.api.base.refusals import BadGateway, Invalid, InvalidFields, NotFound
from coder.api.notifications.notifications import WebpushMessage, WebpushMessageAction, WebpushSubscription
from coder.base.errors import CoderError
from coder.base.ids import new_uuid
from coder.coderd.services.access.authorization import require
from coder.coderd.services.access.made_by_applications import refuse_applications
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.store.notifications import web_push as store
from coder.coderd.store.notifications.web_push import SubscriptionRow
from coder.coderd.store.site import site_settings
from coder.domain.access.policy import Resource, Subject
from coder.domain.notifications import web_push as law
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

MAX_SUBSCRIPTIONS = 20
"""A user. Ours: more browsers than people have; the oldest goes when another comes."""
MOST_AT_ONCE = 32
"""Connections to push services. Ours: a message to everybody must not take all our sockets."""
_TTL = 24 * 3600
# Seconds a push service keeps a message for a browser that is away.
_TIMEOUT = 10.0
_GONE = frozenset({404, 410})
_TEST = WebpushMessage(
    icon="/icon/coder.svg",
    title="It's working!",
    body="You have subscribed to push notifications.",
    actions=[],
)


class PushRefused(CoderError):  # noqa: N818 - named for what it says
    """A push service did not take a message."""

    def __init__(self, reason: str, *, gone: bool = False) -> None:
        super().__init__("push_refused", reason)
        self.gone = gone


class PushServices:
    """Which push services are spoken to, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.permits: Callable[[str], bool] = is_public
        "May this address be dialled? Changed by tests, whose push service is on loopback."
        self.ca_file = ""
        self._together = trio.Semaphore(MOST_AT_ONCE)

    async def post(self, endpoint: str, headers: list[tuple[str, str]], body: bytes) -> int:
        """The status a push service answers with. Raises PushRefused."""
        async with self._together:
            return await self._post(endpoint, headers, body)

    async def _post(self, endpoint: str, headers: list[tuple[str, str]], body: bytes) -> int:
        parts = urlsplit(endpoint)
        address = await self._address(parts.hostname or "", _port(endpoint))
        policy = DialPolicy(f"https://{parts.netloc}", ca_file=self.ca_file, address=address)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with trio.fail_after(_TIMEOUT):
                async with (
                    HttpClient(policy) as client,
                    client.stream("POST", path, body=body, headers=headers) as answer,
                ):
                    return answer.status  # what else it says may be endless
        except (NetError, OSError, trio.BrokenResourceError, trio.TooSlowError) as error:
            raise PushRefused("the push service cannot be reached") from error

    async def _address(self, host: str, port: int) -> str:
        try:
            with trio.fail_after(_TIMEOUT):
                found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        except (OSError, UnicodeError, trio.TooSlowError) as error:
            raise PushRefused(f"the push service {host} is not known") from error
        addresses = [str(place[0]) for *_, place in found]
        if not addresses or not all(self.permits(address) for address in addresses):
            raise PushRefused(f"the push service {host} is not on the public Internet")
        return addresses[0]


def is_public(address: str) -> bool:
    """Not this machine, not a private network, not a cloud's metadata service."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else None)
        if inner is not None or parsed in _NAT64:
            return inner is not None and is_public(str(inner))
    return parsed.is_global and not parsed.is_multicast


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Leads into the IPv4 network of whoever runs the translator.


def _port(endpoint: str) -> int:
    return urlsplit(endpoint).port or 443


# ---- the site's keys


async def public_key(ctx: Context) -> str:
    """The site's VAPID public key (base64url, uncompressed point), made once."""
    return (await _keys(ctx))[0]


async def _keys(ctx: Context) -> tuple[str, EllipticCurvePrivateKey]:
    sealer = ctx.part(Sealer)
    pair = json.loads(await ctx.db.run(_stored_pair, sealer))
    scalar = law.decode_key_untrusted(sealer.open(pair["private"]).reveal(), 32)
    return str(pair["public"]), law.private_key(scalar)


async def _stored_pair(tx: Tx, sealer: Sealer) -> str:
    stored = await site_settings.get_config(tx, store.VAPID_KEYS)
    if stored is None:
        return await site_settings.ensure_config(tx, store.VAPID_KEYS, _new_pair(sealer))
    pair = json.loads(stored)
    sealed = sealer.seal(sealer.open(pair["private"]))
    if sealer.is_plain(pair["private"]) and not sealer.is_plain(sealed):
        # Stored before the site had encryption keys.
        stored = json.dumps({**pair, "private": sealed})
        await site_settings.put_config(tx, store.VAPID_KEYS, stored)
    return stored


def _new_pair(sealer: Sealer) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    scalar = private.private_numbers().private_value.to_bytes(32, "big")
    pair = {"public": law.base64url(law.public_point(private)), "private": sealer.seal(law.base64url(scalar))}
    return json.dumps(pair)


# ---- subscribing


async def subscribe(ctx: Context, subject: Subject, user_id: UUID, wanted: WebpushSubscription) -> None:
    """Stores the browser once its push service took a first message. Raises Forbidden, Invalid."""
    require(subject, "create", Resource("webpush_subscription", owner_id=user_id), hidden=False)
    await refuse_applications(ctx, subject, "webpush_subscription")
    _check(wanted)
    row = SubscriptionRow(
        new_uuid(), user_id, ctx.clock.now(), wanted.endpoint, wanted.p256dh_key.strip(), wanted.auth_key.strip()
    )
    try:
        await _push_one(ctx, row, _TEST)
    except PushRefused as refused:
        raise Invalid("Failed to test webpush subscription", refused.message) from refused
    await ctx.db.run(store.put_subscription, row, MAX_SUBSCRIPTIONS)


def _check(wanted: WebpushSubscription) -> None:
    faults = []
    try:
        parts = urlsplit(wanted.endpoint)
        good = parts.scheme == "https" and bool(parts.hostname) and not parts.username and parts.port != 0
        good = good and wanted.endpoint.isascii() and wanted.endpoint.isprintable() and " " not in wanted.endpoint
    except ValueError:
        good = False
    if not good:
        faults.append(("endpoint", "must be the https URL of a push service"))
    for name, text, length in (
        ("auth_key", wanted.auth_key, law.AUTH_BYTES),
        ("p256dh_key", wanted.p256dh_key, law.POINT_BYTES),
    ):
        try:
            data = law.decode_key_untrusted(text, length)
            if name == "p256dh_key":
                law.check_point_untrusted(data)
        except ValueError as error:
            faults.append((name, f"cannot be used: {error}"))
    if faults:
        raise InvalidFields(*faults, message="Failed to test webpush subscription")


async def unsubscribe(ctx: Context, subject: Subject, user_id: UUID, endpoint: str) -> None:
    """Raises Forbidden, NotFound."""
    require(subject, "delete", Resource("webpush_subscription", owner_id=user_id), hidden=False)
    if not await ctx.db.run(store.delete_subscription, user_id, endpoint):
        raise NotFound("Webpush subscription not found.")


async def send_test(ctx: Context, subject: Subject, user_id: UUID) -> None:
    """To all browsers of a user. Raises Forbidden, and BadGateway when none of them could be told."""
    require(subject, "create", Resource("webpush_subscription", owner_id=user_id), hidden=False)
    told, refused = await push(ctx, user_id, _TEST)
    if refused and not told:
        raise BadGateway("Failed to send test notification", refused[0])


# ---- sending


async def push(ctx: Context, user_id: UUID, message: WebpushMessage) -> tuple[int, list[str]]:
    """(browsers that were told, why others were not); those that are gone are forgotten."""
    rows = await ctx.db.read(store.list_subscriptions, user_id)
    told, refused = [], []

    async def one(row: SubscriptionRow) -> None:
        try:
            await _push_one(ctx, row, message)
        except PushRefused as error:
            if error.gone:
                await ctx.db.run(store.delete_dead, row.id, row.auth_key)
            else:
                refused.append(error.message)
        else:
            told.append(row.id)

    async with trio.open_nursery() as nursery:
        for row in rows:
            nursery.start_soon(one, row)
    return len(told), refused


async def _push_one(ctx: Context, row: SubscriptionRow, message: WebpushMessage) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    _, key = await _keys(ctx)
    body = law.encrypt(
        encode(message),
        law.decode_key_untrusted(row.p256dh_key, law.POINT_BYTES),
        law.decode_key_untrusted(row.auth_key, law.AUTH_BYTES),
        ec.generate_private_key(ec.SECP256R1()),
        os.urandom(law.SALT_BYTES),
    )
    contact = ctx.access_url if ctx.access_url.startswith("https:") else "mailto:noreply@coder.invalid"
    headers = [
        ("Authorization", law.authorization(row.endpoint, contact, key, int(ctx.clock.now().timestamp()))),
        ("Content-Encoding", "aes128gcm"),
        ("Content-Type", "application/octet-stream"),
        ("TTL", str(_TTL)),
    ]
    status = await ctx.part(PushServices).post(row.endpoint, headers, body)
    if not 200 <= status < 300:
        raise PushRefused(f"the push service answered with status {status}", gone=status in _GONE)


def encode(message: WebpushMessage) -> bytes:
    """As JSON that fits; of a longer text the beginning."""
    encoded = codec.encode(message)
    text = message.body
    while len(encoded) > law.MAX_PAYLOAD and text:
        text = text[: len(text) // 2]
        actions = message.actions if text else []
        encoded = codec.encode(WebpushMessage(message.icon, message.title[:200], f"{text}…", actions))
    return encoded


def message_of(payload: dict[str, object]) -> WebpushMessage:
    """What the inbox shows, for a browser."""
    from coder.domain.foundation.markdown import plain_text

    actions = payload.get("actions")
    return WebpushMessage(
        icon=str(payload.get("icon", "")),
        title=plain_text(str(payload.get("title", ""))),
        body=plain_text(str(payload.get("body", ""))),
        actions=[
            WebpushMessageAction(label=str(one["label"]), url=str(one["url"]))
            for one in (actions if isinstance(actions, list) else [])
        ],
    )
