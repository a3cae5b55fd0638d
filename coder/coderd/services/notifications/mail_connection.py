"""Connections to a mail server that end with their attempt, whatever the server sends.

Python's client waits for each piece of a reply as long as for a whole one, and collects the lines of a reply without a
limit. A server that sends a byte now and then kept a thread for ever, and one whose reply has no end filled the memory.
"""

from __future__ import annotations

import contextlib
import smtplib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from io import BufferedReader

MAX_REPLY_LINES = 200
"""Lines of one reply, our own value: servers list some twenty extensions. A line has at most 8 KiB."""

_QUIT_TIMEOUT = 2.0
"""Seconds for the answer to QUIT."""


class MailConnection:
    """Ends the connection of an attempt, from another thread than the one that waits for the server."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_ended = False

    def hold(self, connected: socket.socket) -> None:
        # A duplicate: TLS takes the original away, and the client closes it.
        self._socket = connected.dup()
        if self._is_ended:
            self.end()

    def end(self) -> None:
        """Wake the thread that waits, with an end of the connection."""
        self._is_ended = True
        held, self._socket = self._socket, None
        if held is not None:
            with held, contextlib.suppress(OSError):  # the server closed it already
                held.shutdown(socket.SHUT_RDWR)


class _BoundedReplies:
    """Reads lines; `begin` starts a reply."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._lines = 0

    def begin(self) -> None:
        self._lines = 0

    def readline(self, limit: int) -> bytes:
        self._lines += 1
        if self._lines > MAX_REPLY_LINES:
            raise smtplib.SMTPException(f"its reply has more than {MAX_REPLY_LINES} lines")
        return self._file.readline(limit)

    def close(self) -> None:
        self._file.close()


class BoundedSmtp(smtplib.SMTP):
    """The standard library's client with a held connection and bounded replies."""

    def __init__(self, host: str, port: int, *, held: MailConnection, hello: str, timeout: float) -> None:
        self._held = held
        super().__init__(host, port, local_hostname=hello, timeout=timeout)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connected: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        self._held.hold(connected)
        return connected

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _BoundedReplies(self.sock.makefile("rb"))
        if isinstance(self.file, _BoundedReplies):
            self.file.begin()
        return super().getreply()


class BoundedSmtps(BoundedSmtp):
    """The same with TLS from the first byte."""

    default_port = smtplib.SMTP_SSL_PORT

    def __init__(
        self, host: str, port: int, *, held: MailConnection, hello: str, timeout: float, context: ssl.SSLContext
    ) -> None:
        self._context = context
        super().__init__(host, port, held=held, hello=hello, timeout=timeout)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = super()._get_socket(host, port, timeout)
        try:
            return self._context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


def leave(server: smtplib.SMTP) -> None:
    """Say goodbye. The mail was accepted: no answer to QUIT, and none at all, may send it again."""
    with contextlib.suppress(OSError, smtplib.SMTPException):
        server.putcmd("quit")
        if server.sock is not None:
            server.sock.settimeout(_QUIT_TIMEOUT)
            server.sock.recv(1024)
