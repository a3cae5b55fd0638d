"""Settings of e-mail, observed by a mail server, and of retries."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import trio

from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd import app
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.notifications import notification_delivery as delivery
from coder.coderd.services.notifications.mail_connection import MailConnection
from coder.coderd.services.notifications.mail_faults import explain_mail_fault
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.coderd.store.people.users import UserRow
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.certificates import Authority
from tests.kit.stand_ins.notification_receivers import mail_server

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAYLOAD: MessagePayload = {"title": "Hello", "body": "There.", "actions": []}
MESSAGE = MessageRow(UUID(int=1), UUID(int=2), UUID(int=3), "smtp", PAYLOAD, (), 0, NOW)
CARLA = cast("UserRow", SimpleNamespace(name="Carla", username="carla", email="carla@b.c"))
SIGNED_IN = {"email_auth_username": "post", "email_auth_password": Secret("pw")}


def send(address: str, **settings: Any) -> None:
    """Send one e-mail. Raises UndeliveredError."""
    values: dict[str, Any] = {"email_smarthost": address, "email_from": "coder@b.c", **settings}
    delivery._mail(ServerConfig(**values), MESSAGE, CARLA, NOW, MailConnection())


def test_mail_server_observations(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("of the file\n")
    with mail_server() as (box, address):
        send(address)
        assert (box.greetings, box.sign_ins) == (["localhost"], [])
        send(address, email_hello="coder.example")
        assert box.greetings[-1] == "coder.example"
        send(address, **SIGNED_IN)
        send(address, **SIGNED_IN, email_auth_password_file=str(file))
        send(address, **SIGNED_IN, email_auth_identity="all")
        assert box.sign_ins == [("", "post", "pw"), ("", "post", "of the file"), ("all", "post", "pw")]
        with pytest.raises(delivery.UndeliveredError):
            send(address, email_force_tls=True)
        assert len(box.mails) == 5


def test_mail_tls_and_certificates(tmp_path: Path) -> None:
    context = Authority(tmp_path).server_context("mail.example.com")
    with mail_server(context, implicit=True) as (box, address):
        with pytest.raises(delivery.UndeliveredError, match=r"is not trusted .* CODER_EMAIL_TLS_CACERTFILE"):
            send(address, email_force_tls=True)
        send(address, email_force_tls=True, email_tls_skip_verify=True)
        assert len(box.mails) == 1


ADDRESS = "mail.example.com:587"
FAULTS: dict[Exception, str] = {
    smtplib.SMTPAuthenticationError(
        535, b"5.7.8 no\n5.7.8 way"
    ): "rejected the sign-in of post: 535 5.7.8 no 5.7.8 way",
    smtplib.SMTPSenderRefused(550, b"not you", "a@b.c"): "refused: 550 not you",
    smtplib.SMTPRecipientsRefused({"carla@b.c": (550, b"no such user")}): "refused the recipient: 550 no such user",
    smtplib.SMTPNotSupportedError("STARTTLS extension not supported by server."): "check CODER_EMAIL_TLS_STARTTLS",
    smtplib.SMTPNotSupportedError(
        "SMTP AUTH extension not supported by server."
    ): "check CODER_EMAIL_TLS_STARTTLS (SMTP",
    smtplib.SMTPServerDisconnected("Connection unexpectedly closed"): "is TLS right for this port?",
    smtplib.SMTPException(
        "No suitable authentication method found."
    ): "refused: No suitable authentication method found.",
    ssl.SSLError(
        1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"
    ): "is CODER_EMAIL_FORCE_TLS right for this port?",
    ConnectionRefusedError(111, "Connection refused"): "cannot be reached: Connection refused",
    socket.gaierror(-2, "Name or service not known"): "cannot be reached: Name or service not known",
    TimeoutError("timed out"): "cannot be reached: timed out",
}
"""Errors of Python's client, and parts of their explanations."""


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: str(error)[:30])
def test_mail_fault_names_cause(error: Any) -> None:
    reason = explain_mail_fault(error, ServerConfig(email_smarthost=ADDRESS, email_auth_username="post"))
    assert FAULTS[error] in reason and f"the mail server {ADDRESS} " in f"{reason} "
    assert not re.search(r"Errno|\(\d+, b'", reason)


def test_mail_settings_name_files(tmp_path: Path) -> None:
    """A file that cannot be used is not a refusal of the mail server."""
    missing, broken = str(tmp_path / "missing"), tmp_path / "broken.pem"
    broken.write_text("no certificate")
    context = Authority(tmp_path).server_context("mail.example.com")
    with mail_server(context) as (box, address):
        starttls: dict[str, Any] = {"email_tls_starttls": True, "email_tls_skip_verify": True}
        for settings, reason in (
            ({**SIGNED_IN, "email_auth_password_file": missing}, f"{missing} cannot be read: No such file"),
            ({**starttls, "email_tls_ca_cert_file": missing}, f"{missing} cannot be read: No such file"),
            ({**starttls, "email_tls_ca_cert_file": str(broken)}, f"{broken} has no usable certificate"),
            ({**starttls, "email_tls_cert_file": str(broken)}, f"{broken} has no usable certificate"),
            ({"email_from": ""}, "'from' address not defined: set CODER_EMAIL_FROM"),
        ):
            with pytest.raises(delivery.UndeliveredError, match=f"^{re.escape(reason)}"):
                send(address, **settings)
        assert box.mails == []


def test_mail_server_with_ipv6_address() -> None:
    with mail_server(host="::1") as (box, address):
        send(address)
        assert address.startswith("[::1]:") and len(box.mails) == 1


def configure(world: World, **settings: Any) -> None:
    world.ctx.config = replace(world.ctx.config, **settings)


async def attempts(world: World, after: timedelta) -> list[str]:
    """Return the errors of the messages that were due so much later."""
    clock = world.ctx.clock
    assert isinstance(clock, FakeClock)
    clock.advance(after.total_seconds())
    return [item.reason for item in await delivery.deliver_due(world.ctx)]


async def test_message_retry_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LOOPS", ())
    second, minute = timedelta(seconds=1), timedelta(minutes=1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings: dict[str, Any] = {"email_smarthost": "127.0.0.1:9", "email_from": "coder@b.c"}
        settings |= {"notifications_inbox_enabled": False, "notifications_max_send_attempts": 100}
        async with running_coderd(first_user=True, clock=FakeClock(NOW), **settings) as world:
            assert await delivery.time_until_due(world.ctx) == 15 * second
            configure(world, notifications_fetch_interval=7 * second)
            assert await delivery.time_until_due(world.ctx) == 7 * second
            assert (await world.post("/api/v2/notifications/test")).status_code == 204
            assert len(await attempts(world, second)) == 1
            assert [len(await attempts(world, after)) for after in (4 * minute, minute)] == [0, 1]
            configure(world, notifications_retry_interval=10 * second)
            assert len(await attempts(world, 5 * minute)) == 1
            assert [len(await attempts(world, after)) for after in (9 * second, second)] == [0, 1]
            configure(world, notifications_dispatch_timeout=timedelta(milliseconds=50))
            configure(world, email_smarthost=f"127.0.0.1:{silent.getsockname()[1]}")
            (reason,) = await attempts(world, minute)
            assert "too long" in reason or "timed out" in reason
            await leased_by_the_dead(world, monkeypatch)


async def leased_by_the_dead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a process that leased the message and died: it is free again when the lease has expired."""

    class DiedError(Exception):
        pass

    async def die(*_: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise DiedError

    minute = timedelta(minutes=1)
    for lease, waits in ((2 * minute, [1]), (10 * minute, [0, 1])):
        configure(world, notifications_lease_period=lease)
        with monkeypatch.context() as patched, pytest.raises(DiedError):
            patched.setattr(delivery, "_attempt", die)
            await attempts(world, 10 * minute)
        assert [len(await attempts(world, after)) for after in (3 * minute, 7 * minute)[: len(waits)]] == waits
