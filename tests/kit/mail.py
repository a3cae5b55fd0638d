"""A real mail server on loopback that keeps what it is given."""

from __future__ import annotations

import asyncio
import base64
import email
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default as mail_policy
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from tests.kit.ports import free_port


class Mailbox:
    """What aiosmtpd calls for each message."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], EmailMessage]] = []
        self.refuse = 0
        "So many messages are refused first."
        self.greetings: list[str] = []
        "What clients called themselves, message by message."
        self.sign_ins: list[tuple[str, ...]] = []
        "(acting for, user, password) of each that was made; anybody may."

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse:
            self.refuse -= 1
            return "451 later"
        self.greetings.append(session.host_name)
        mail = email.message_from_bytes(envelope.content, policy=mail_policy)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, mail))
        return "250 OK"

    async def auth_PLAIN(self, server: Any, words: list[str]) -> AuthResult:
        self.sign_ins.append(tuple(base64.b64decode(words[1]).decode().split("\0")))
        return AuthResult(success=True, auth_data="somebody")


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, *, implicit: bool = False) -> Iterator[tuple[Mailbox, str]]:
    """`tls` is for STARTTLS; with `implicit` it comes before everything."""
    box = Mailbox()
    port = free_port()  # the library cannot choose one itself
    # Made by hand: asyncio's own way to a new loop is closed inside trio once trio-asyncio has been imported.
    how: dict[str, Any] = {"ssl_context" if implicit else "tls_context": tls}
    how |= {"auth_require_tls": False, "auth_exclude_mechanism": ["LOGIN"]}
    controller = Controller(box, loop=asyncio.SelectorEventLoop(), hostname="127.0.0.1", port=port, **how)
    controller.start()
    try:
        yield box, f"127.0.0.1:{port}"
    finally:
        controller.stop()
