"""Deliver queued notifications to the inbox, by email and to a webhook, with retries.

Each message is leased before it is sent, for longer than one attempt takes, so that two replicas never send it
concurrently. A replica that dies while sending leaves the message to be sent again (at least once). Email uses the
standard library's client in a worker thread: one message a connection is plenty. Each method has a queue of its own: a
mail server that does not answer delays no inbox.
"""

from __future__ import annotations

import contextlib
import html
import re
import smtplib
import socket
import ssl
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from coder.api.base import codec
from coder.base.errors import CoderError
from coder.base.json_types import JsonObject
from coder.coderd.services.foundation.outages import until_available
from coder.coderd.services.foundation.outgoing_requests import DOCUMENT
from coder.coderd.services.notifications import notification_settings, web_push
from coder.coderd.services.notifications.inbox import notify_followers
from coder.coderd.services.notifications.mail_connection import BoundedSmtp, BoundedSmtps, MailConnection, leave
from coder.coderd.services.notifications.mail_faults import explain_mail_fault
from coder.coderd.store.notifications import notifications as store
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.coderd.store.people import system_users
from coder.coderd.store.people.users import UserRow
from coder.domain.foundation.endpoints import SMTP_PORT, read_endpoint
from coder.domain.foundation.markdown import plain_text
from coder.domain.notifications.notification_texts import BY_ID
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx

QUEUED = store.CHANNEL
"""Database channel that announces new messages."""


class UndeliveredError(CoderError):
    """An attempt failed; the message has the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__("undelivered", reason)


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """Outcome of one attempt; `reason` is empty for a delivered message."""

    message: MessageRow
    reason: str
    given_up: bool = False


METHODS = ("inbox", "smtp", "webhook")
"""All ways of delivery; each has a queue of its own."""


async def deliver_due(ctx: Context, methods: Collection[str] = METHODS) -> list[DeliveryOutcome]:
    """Send every due message of these methods, one at a time. Do nothing while an administrator has paused
    notifications."""
    outcomes: list[DeliveryOutcome] = []
    while not await ctx.db.read(notification_settings.is_paused):
        now = ctx.clock.now()
        # Longer than any attempt: the holder of an older lease has died.
        leased_until = now + max(ctx.config.notifications_lease_period, 2 * ctx.config.notifications_dispatch_timeout)
        message = await ctx.db.run(store.lease, now, leased_until, methods)
        if message is None:
            break
        outcomes.append(await _attempt(ctx, message))
    return outcomes


async def _attempt(ctx: Context, message: MessageRow) -> DeliveryOutcome:
    reason = ""
    metrics = ctx.services.metrics
    metrics["coderd_notifications_queued_seconds"].observe(
        max((ctx.clock.now() - message.created_at).total_seconds(), 0), message.method
    )
    started = ctx.clock.monotonic()
    in_flight = metrics["coderd_notifications_inflight_dispatches"]
    in_flight.add(message.method, str(message.template_id))
    try:
        with trio.fail_after(ctx.config.notifications_dispatch_timeout.total_seconds()):
            await _send(ctx, message)
    except trio.TooSlowError:
        reason = "the server took too long"
        if message.method == "smtp":
            reason += "; is CODER_EMAIL_FORCE_TLS right for the port?"
    except UndeliveredError as error:
        reason = error.message
    except Exception as error:
        # A message that cannot be rendered fails after its retries, as one that no server accepts does.
        reason = f"{type(error).__name__}: {error}"[:500]
    finally:
        in_flight.add(message.method, str(message.template_id), by=-1)
    now = ctx.clock.now()
    metrics["coderd_notifications_dispatcher_send_seconds"].observe(ctx.clock.monotonic() - started, message.method)
    metrics["coderd_notifications_dispatch_attempts_total"].add(
        message.method, str(message.template_id), "temp_fail" if reason else "success"
    )
    if not reason:
        # Again after an outage of the database: a message that stays leased would be sent a second time.
        await until_available(ctx.db.run, store.settle, message, "sent", "", now)
        return DeliveryOutcome(message, "")
    given_up = message.attempts >= ctx.config.notifications_max_send_attempts
    later = now + ctx.config.notifications_retry_interval
    await ctx.db.run(store.settle, message, "failed" if given_up else "pending", reason, now, later)
    return DeliveryOutcome(message, reason, given_up)


async def _send(ctx: Context, message: MessageRow) -> None:
    if message.method == "inbox":
        await ctx.db.run(_into_inbox, message)
        # In the background: a slow push service must not delay the queue, and the inbox still has a lost push.
        ctx.nursery.start_soon(_push, ctx, message)
        return
    reader = await ctx.db.read(system_users.get_user, message.user_id)
    if reader is None:
        raise UndeliveredError("the recipient was deleted")
    if message.method == "webhook":
        await _post(ctx.config, message, reader)
    else:
        held = MailConnection()
        try:
            await trio.to_thread.run_sync(
                _mail, ctx.config, message, reader, ctx.clock.now(), held, abandon_on_cancel=True
            )
        finally:  # otherwise an abandoned thread would wait as long as the server sends something
            held.end()


async def _push(ctx: Context, message: MessageRow) -> None:
    try:
        await web_push.push(ctx, message.user_id, web_push.message_of(message.payload))
    except Exception as error:  # the outcome is not used
        ctx.log.warn("sending a web push failed", user=message.user_id, error=f"{type(error).__name__}: {error}"[:500])


async def _into_inbox(tx: Tx, message: MessageRow) -> None:
    await store.insert_inbox(tx, message)
    await notify_followers(tx, message.user_id, message.id)


async def _post(config: ServerConfig, message: MessageRow, reader: UserRow) -> None:
    endpoint = urlsplit(config.notifications_webhook_endpoint)
    path = (endpoint.path or "/") + (f"?{endpoint.query}" if endpoint.query else "")
    async with HttpClient(DialPolicy(url=f"{endpoint.scheme}://{endpoint.netloc}")) as client:
        try:
            await client.request(
                "POST",
                path,
                body=codec.encode(webhook_body(message, reader)),
                headers=[("Content-Type", "application/json"), ("X-Message-Id", str(message.id))],
                expect=tuple(range(200, 300)),
                limit=DOCUMENT,
            )
        except HttpError as error:
            raise UndeliveredError(f"the webhook answered {error.status}") from error
        except (OSError, CoderError, trio.BrokenResourceError) as error:
            raise UndeliveredError("the webhook cannot be reached") from error


def webhook_body(message: MessageRow, reader: UserRow) -> JsonObject:
    """Return upstream's envelope, version 1.1."""
    payload = message.payload
    return {
        "_version": "1.1",
        "msg_id": str(message.id),
        "payload": {
            "_version": "1.2",
            "notification_name": BY_ID[message.template_id].name,
            "notification_template_id": str(message.template_id),
            "user_id": str(reader.id),
            "user_email": reader.email,
            "user_name": reader.name or reader.username,
            "user_username": reader.username,
            "actions": payload["actions"],
            "labels": payload["labels"],
            "data": None,
            "targets": list(message.targets) or None,
        },
        "title": plain_text(payload["title"]),
        "title_markdown": payload["title"],
        "body": plain_text(payload["body"]),
        "body_markdown": payload["body"],
    }


def _sign_in(server: smtplib.SMTP, config: ServerConfig) -> None:
    """Authenticate by a method the mail server offers. Only PLAIN can act for another identity (RFC 4616)."""
    user, password, identity = config.email_auth_username, _password(config), config.email_auth_identity
    if not identity:
        server.login(user, password)
        return
    server.ehlo_or_helo_if_needed()
    server.auth("PLAIN", lambda challenge=None: f"{identity}\0{user}\0{password}")  # noqa: ARG005


def _mail(config: ServerConfig, message: MessageRow, reader: UserRow, now: datetime, held: MailConnection) -> None:
    """Send an email, in a worker thread. Raises UndeliveredError."""
    if not config.email_from:
        raise UndeliveredError("'from' address not defined: set CODER_EMAIL_FROM")
    try:
        with contextlib.closing(_connect(config, held)) as server:
            if config.email_auth_username:
                _sign_in(server, config)
            server.send_message(
                compose(message, reader, config.email_from, now),
                from_addr=parseaddr(config.email_from)[1],
                to_addrs=[reader.email],
            )
            leave(server)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise UndeliveredError(explain_mail_fault(error, config)) from error
    except UndeliveredError:
        raise
    except Exception as error:
        # The email package raises various errors for an odd address (AttributeError, IndexError, …).
        raise UndeliveredError(f"the email could not be built: {type(error).__name__}: {error}"[:500]) from error
    finally:
        held.end()


def _connect(config: ServerConfig, held: MailConnection) -> smtplib.SMTP:
    host, port = read_endpoint(config.email_smarthost, default_port=SMTP_PORT)
    timeout = config.notifications_dispatch_timeout.total_seconds()
    hello = config.email_hello or "localhost"
    if config.email_force_tls:
        return BoundedSmtps(host, port, held=held, hello=hello, timeout=timeout, context=_tls(config))
    context = _tls(config) if config.email_tls_starttls else None
    server = BoundedSmtp(host, port, held=held, hello=hello, timeout=timeout)
    if context is not None:
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


class _MailTls(ssl.SSLContext):
    """TLS as for any client, except that the certificate may have another name than the dialled host."""

    server_name = ""

    def wrap_socket(
        self,
        sock: socket.socket,
        server_side: bool = False,
        do_handshake_on_connect: bool = True,
        suppress_ragged_eofs: bool = True,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        name = self.server_name or server_hostname
        return super().wrap_socket(sock, server_side, do_handshake_on_connect, suppress_ragged_eofs, name, session)


def _tls(config: ServerConfig) -> ssl.SSLContext:
    context = _MailTls(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = config.email_tls_server_name
    if config.email_tls_ca_cert_file:
        with _reading(config.email_tls_ca_cert_file):
            context.load_verify_locations(config.email_tls_ca_cert_file)
    else:
        context.load_default_certs()
    if config.email_tls_cert_file:
        key = config.email_tls_cert_key_file or None
        with _reading(" or ".join(filter(None, (config.email_tls_cert_file, key)))):
            context.load_cert_chain(config.email_tls_cert_file, key)
    if config.email_tls_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def _reading(file: str) -> Iterator[None]:
    """Name a file of the settings that cannot be used. Raises UndeliveredError."""
    try:
        yield
    except ssl.SSLError as error:
        raise UndeliveredError(f"{file} has no usable certificate or key") from error
    except OSError as error:
        raise UndeliveredError(f"{file} cannot be read: {error.strerror}") from error


def _password(config: ServerConfig) -> str:
    if config.email_auth_password_file:
        with _reading(config.email_auth_password_file):
            return Path(config.email_auth_password_file).read_text().strip()
    return config.email_auth_password.reveal()


def compose(message: MessageRow, reader: UserRow, sender: str, now: datetime) -> EmailMessage[str, str]:
    """Return an email as text and as HTML."""
    payload = message.payload
    mail: EmailMessage[str, str] = EmailMessage()
    mail["From"] = sender
    mail["To"] = reader.email
    mail["Subject"] = " ".join(plain_text(payload["title"]).split())
    mail["Date"] = format_datetime(now)
    mail["Message-Id"] = f"<{message.id}@{parseaddr(sender)[1].rpartition('@')[2] or 'coder'}>"
    links = "".join(f"\n{action['label']}: {action['url']}" for action in payload["actions"])
    mail.set_content(f"Hi {reader.name or reader.username},\n\n{plain_text(payload['body'])}\n{links}\n")
    mail.add_alternative(_html(payload, reader), subtype="html")
    return mail


def _html(payload: MessagePayload, reader: UserRow) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(payload["body"]))
    paragraphs = "".join(f"<p>{part}</p>" for part in bold.split("\n\n"))
    links = "".join(
        f'<p><a href="{html.escape(action["url"], quote=True)}">{html.escape(action["label"])}</a></p>'
        for action in payload["actions"]
    )
    greeting = html.escape(reader.name or reader.username)
    title = html.escape(plain_text(payload["title"]))
    return f"<!doctype html><html><body><h1>{title}</h1><p>Hi {greeting},</p>{paragraphs}{links}</body></html>"


async def time_until_due(ctx: Context, methods: Collection[str] = METHODS) -> timedelta:
    """Return the seconds until the next run of the loop; `QUEUED` wakes it earlier."""
    pause = max(ctx.config.notifications_fetch_interval, timedelta(seconds=1))
    due = None if await ctx.db.read(notification_settings.is_paused) else await ctx.db.read(store.next_due, methods)
    return pause if due is None else min(max(due - ctx.clock.now(), timedelta(seconds=1)), pause)
