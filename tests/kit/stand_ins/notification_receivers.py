"""Receivers of notifications on loopback: a real mail server, a push service with TLS and its browser.

async with push_service(world, folder) as service:
    browser = service.browser()
    await world.post("/api/v2/users/me/webpush/subscription", browser.subscription())
    browser.read(service.taken[0])
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import email
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default as mail_policy
from pathlib import Path
from typing import Any

import h11
import trio
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from coder.domain.notifications.web_push import base64url
from tests.kit.free_ports import free_port
from tests.kit.server.server_in_process import World
from tests.kit.stand_ins.certificates import Authority


@dataclass(frozen=True)
class Pushed:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Browser:
    """The reader's half of RFC 8291, written from its section 3.4 and RFC 8188."""

    endpoint: str
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)  # type: ignore[no-any-return]

    def subscription(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "auth_key": base64url(self.auth), "p256dh_key": base64url(self.point)}

    def read(self, pushed: Pushed) -> bytes:
        """The text of a message to this browser. Raises InvalidTag for another's."""
        salt, length = pushed.body[:16], pushed.body[20]
        sender = pushed.body[21 : 21 + length]
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = _derive(shared, self.auth, b"WebPush: info\0" + self.point + sender, 32)
        key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        return AESGCM(key).decrypt(nonce, pushed.body[21 + length :], None).rstrip(b"\0")[:-1]


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


@dataclass
class PushService:
    """What it took so far, and what it answers."""

    url: str
    status: int = 201
    taken: list[Pushed] = field(default_factory=list)
    changed: trio.Event = field(default_factory=trio.Event)

    def browser(self, name: str = "b1") -> Browser:
        return Browser(f"{self.url}/push/{name}")

    async def wait_for(self, count: int) -> None:
        """Until so many messages came."""
        with trio.fail_after(60):
            while len(self.taken) < count:
                await self.changed.wait()

    async def serve(self, stream: Any) -> None:
        connection = h11.Connection(h11.SERVER)
        body, head = b"", None
        async with stream:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some(65536)))
                elif isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage) and head is not None:
                    headers = {name.decode().lower(): value.decode() for name, value in head.headers}
                    self.taken.append(Pushed(head.target.decode(), headers, body))
                    self.changed.set()
                    self.changed = trio.Event()
                    answer = h11.Response(status_code=self.status, headers=[("Content-Length", "0")])
                    data = (connection.send(answer) or b"") + (connection.send(h11.EndOfMessage()) or b"")
                    await stream.send_all(data)
                    return
                else:
                    return


@contextlib.asynccontextmanager
async def push_service(world: World, folder: Path) -> AsyncIterator[PushService]:
    """Runs for the length of the block; the world's server may speak to it though it is on loopback."""
    authority = Authority(folder)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        service = PushService(f"https://localhost:{port}")
        secured = [trio.SSLListener(one, authority.server_context("localhost")) for one in listeners]

        async def handle(stream: Any) -> None:
            with contextlib.suppress(trio.BrokenResourceError):
                await service.serve(stream)

        nursery.start_soon(trio.serve_listeners, handle, secured)
        services = world.ctx.services.api.push_services
        services.permits, services.ca_file = (lambda address: address in {"127.0.0.1", "::1"}), authority.file
        yield service
        nursery.cancel_scope.cancel()


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
def mail_server(
    tls: ssl.SSLContext | None = None, *, implicit: bool = False, host: str = "127.0.0.1"
) -> Iterator[tuple[Mailbox, str]]:
    """`tls` is for STARTTLS; with `implicit` it comes before everything."""
    box = Mailbox()
    port = free_port()  # the library cannot choose one itself
    # Made by hand: asyncio's own way to a new loop is closed inside trio once trio-asyncio has been imported.
    how: dict[str, Any] = {"ssl_context" if implicit else "tls_context": tls}
    how |= {"auth_require_tls": False, "auth_exclude_mechanism": ["LOGIN"]}
    controller = Controller(box, loop=asyncio.SelectorEventLoop(), hostname=host, port=port, **how)
    controller.start()
    try:
        yield box, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        controller.stop()
