"""Mail servers that answer wrongly, without end, or never: one attempt ends, with the cause, and no other waits."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.notifications import notification_delivery as delivery
from coder.coderd.services.notifications.mail_connection import MailConnection
from coder.coderd.store.notifications.notifications import MessagePayload, MessageRow
from coder.coderd.store.people.users import UserRow
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.server_in_process import running_coderd

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAYLOAD: MessagePayload = {"title": "Hello", "body": "There.", "actions": []}
MESSAGE = MessageRow(UUID(int=1), UUID(int=2), UUID(int=3), "smtp", PAYLOAD, (), 0, NOW)
CARLA = cast("UserRow", SimpleNamespace(name="Carla", username="carla", email="carla@b.c"))

GOOD: Mapping[str, bytes] = {
    "connect": b"220 here\r\n",
    "ehlo": b"250-here\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS\r\n",
    "starttls": b"220 go\r\n",
    "auth": b"235 welcome\r\n",
    "mail": b"250 ok\r\n",
    "rcpt": b"250 ok\r\n",
    "data": b"354 go\r\n",
    ".": b"250 taken\r\n",
    "quit": b"221 bye\r\n",
    "rset": b"250 ok\r\n",
    "helo": b"250 ok\r\n",
}


class Scripted:
    """A mail server whose answer to one command is another one."""

    def __init__(self, step: str, answer: bytes | Callable[[socket.socket], None]) -> None:
        self.answers: dict[str, Any] = {**GOOD, step: answer}
        self.said: list[str] = []
        self.reached = threading.Event()
        "Set when the odd answer begins."
        self._step = step
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, contextlib.suppress(OSError), connection.makefile("rb") as lines:
                    self._talk(connection, lines)

    def _talk(self, connection: socket.socket, lines: Any) -> None:
        self._answer("connect", connection)
        in_text = False
        for line in lines:
            word = line.split()[0].decode(errors="replace").lower() if line.split() else ""
            if in_text and word != ".":
                continue
            in_text = word == "data"
            self.said.append(word)
            self._answer(word, connection)

    def _answer(self, word: str, connection: socket.socket) -> None:
        if word == self._step:
            self.reached.set()
        answer = self.answers.get(word, b"500 what\r\n")
        if callable(answer):
            answer(connection)
            raise OSError
        connection.sendall(answer)


@contextlib.contextmanager
def scripted(step: str, answer: bytes | Callable[[socket.socket], None]) -> Iterator[Scripted]:
    server = Scripted(step, answer)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()


def send(address: str, held: MailConnection | None = None, **settings: Any) -> None:
    values: dict[str, Any] = {"email_smarthost": address, "email_from": "coder@b.c", **settings}
    delivery._mail(ServerConfig(**values), MESSAGE, CARLA, NOW, held or MailConnection())


def endless(piece: bytes) -> Callable[[socket.socket], None]:
    def act(connection: socket.socket) -> None:
        while True:
            connection.sendall(piece)

    return act


def silence(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def drip(connection: socket.socket) -> None:
    """A byte often enough for a timeout of each read."""
    while True:
        connection.sendall(b"2")
        if select.select([connection], [], [], 0.01)[0] and not connection.recv(4096):
            return


def half_then_end(connection: socket.socket) -> None:
    connection.sendall(b"250-ha")


SIGNED_IN: dict[str, Any] = {"email_auth_username": "post", "email_auth_password": Secret("pw")}
STEPS = ("connect", "ehlo", "mail", "rcpt", "data", ".")
ENDING: dict[str, tuple[bytes | Callable[[socket.socket], None], str]] = {
    "reply of endless lines": (endless(b"250-more\r\n" * 100), "more than 200 lines|closed the connection"),
    "line without end": (endless(b"2" * 65536), "Line too long|closed the connection|refused"),
    "end in a line": (half_then_end, "closed the connection|refused"),
    "end": (lambda _connection: None, "closed the connection"),
    "zeros": (b"\0" * 100 + b"\r\n", "refused|closed the connection"),
    "no number": (b"hello\r\n", "refused|closed the connection"),
    "code of six digits": (b"250250 yes\r\n", "refused|closed the connection"),
    "code 999": (b"999 no\r\n", "refused"),
    "control characters": (b"550 \x1b[2Jno\r\n", "refused"),
    "long refusal": (b"550-" + b"x" * 8000 + b"\r\n550 no\r\n", "refused"),
    "421": (b"421 later\r\n", "refused"),
}


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=() if step == "mail" else pytest.mark.soak) for step in STEPS]
)
def test_bad_reply_ends_attempt(step: str) -> None:
    for name, (answer, reason) in ENDING.items():
        if name == "code of six digits" and step != "connect":
            continue  # the client reads three digits: it is a yes
        if step == "ehlo" and not callable(answer):
            continue  # after a refusal the client says HELO
        with scripted(step, answer) as server:
            with pytest.raises(delivery.UndeliveredError) as caught:
                send(server.address)
            assert re.search(reason, caught.value.message), (name, caught.value.message)
            assert len(caught.value.message) <= 500 and "\x1b" not in caught.value.message, name


@pytest.mark.parametrize(
    ("answer", "implicit"),
    [(drip, False), pytest.param(silence, False, marks=pytest.mark.soak), (drip, True)],
    ids=["drip", "silence", "drip-tls"],
)
def test_ended_attempt_leaves_no_thread(answer: Any, implicit: bool) -> None:
    """Also within the TLS handshake."""
    with scripted("connect", answer) as server:
        held, reasons = MailConnection(), []

        def attempt() -> None:
            try:
                send(server.address, held, email_force_tls=implicit, email_tls_skip_verify=True)
            except delivery.UndeliveredError as error:
                reasons.append(error.message)

        thread = threading.Thread(target=attempt)
        thread.start()
        assert server.reached.wait(60)
        held.end()
        thread.join(60)
        assert not thread.is_alive() and len(reasons) == 1


@pytest.mark.parametrize("answer", [b"500 no\r\n", b"\0\r\n", half_then_end, endless(b"221-more\r\n")], ids=range(4))
def test_accepted_mail_is_not_sent_again(answer: Any) -> None:
    """Whatever a server says to QUIT."""
    with scripted("quit", answer) as server:
        send(server.address)
        assert server.reached.wait(60)
        assert server.said.count(".") == 1


@pytest.mark.parametrize("ehlo", [b"250 here\r\n", b"250-here\r\n250 XSTARTTLS\r\n"], ids=range(2))
def test_stripped_starttls_sends_nothing(ehlo: bytes) -> None:
    """Neither the mail nor the password leaves without the TLS that was asked for."""
    with scripted("ehlo", ehlo) as server, pytest.raises(delivery.UndeliveredError, match="does not offer STARTTLS"):
        send(server.address, email_tls_starttls=True, **SIGNED_IN)
    assert set(server.said) <= {"ehlo", "quit"}


@pytest.mark.parametrize(
    "answer", [b"454 not now\r\n", b"220 go\r\n250 injected\r\n", b"220 go\r\n\x15\x03\x03\0\2\2\x28"], ids=range(3)
)
def test_broken_starttls_sends_nothing(answer: bytes) -> None:
    with scripted("starttls", answer) as server, pytest.raises(delivery.UndeliveredError):
        send(server.address, email_tls_starttls=True, email_tls_skip_verify=True, **SIGNED_IN)
    assert not {"auth", "mail"} & set(server.said)


async def test_silent_mail_server_delays_no_other_method() -> None:
    """The inbox gets its messages while an e-mail waits for its server."""
    with scripted("connect", silence) as server:
        settings: dict[str, Any] = {"email_smarthost": server.address, "email_from": "coder@b.c"}
        async with running_coderd(first_user=True, **settings) as world:
            assert (await world.post("/api/v2/notifications/test")).status_code == 204
            await trio.to_thread.run_sync(server.reached.wait)
            await world.member("maria")

            async def has_both() -> bool:
                entries = (await world.get("/api/v2/notifications/inbox")).json()["notifications"]
                return len(entries) == 2

            await eventually(has_both)
