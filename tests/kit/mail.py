"""A real mail server on loopback that keeps what it is given."""

from __future__ import annotations

import asyncio
import email
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default as mail_policy
from typing import Any

from aiosmtpd.controller import Controller

from tests.kit.ports import free_port


class Mailbox:
    """What aiosmtpd calls for each message."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], EmailMessage]] = []
        self.refuse = 0
        "So many messages are refused first."

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse:
            self.refuse -= 1
            return "451 later"
        mail = email.message_from_bytes(envelope.content, policy=mail_policy)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, mail))
        return "250 OK"


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None) -> Iterator[tuple[Mailbox, str]]:
    box = Mailbox()
    port = free_port()  # the library cannot choose one itself
    # Made by hand: asyncio's own way to a new loop is closed inside trio once trio-asyncio has been imported.
    controller = Controller(box, loop=asyncio.SelectorEventLoop(), hostname="127.0.0.1", port=port, tls_context=tls)
    controller.start()
    try:
        yield box, f"127.0.0.1:{port}"
    finally:
        controller.stop()
