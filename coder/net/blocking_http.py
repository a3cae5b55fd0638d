"""HTTP/1.1 on a blocking socket: the minimum for one request after another (RFC 9112).

`http.client` would do, but imports the mail package: a fifth of a short command's time. TLS is loaded only for https
URLs.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from coder.net.kept_connections import is_quiet

if TYPE_CHECKING:
    import ssl

LINE_LIMIT = 1 << 16
HEADERS_LIMIT = 1 << 18
HEAD_LINES = 500
"""Header lines of a message, and lines of trailers: more than any program sends, see `bounded_http.py`."""
MAX_INTERIM = 20
"""Maximum number of interim answers (RFC 9110 section 15.2): more than any server sends, but bounded."""
MAX_BODY = 256 << 20
"""Bytes of an answer: a length is the server's claim, and reserves no memory."""
CHUNK = 1 << 16


class BadAnswerError(Exception):
    """The answer is not HTTP/1.1, or ended too early."""


class TooLargeError(BadAnswerError):
    """The body is longer than the caller's limit."""


class UnsentError(OSError):
    """The connection broke while a request was sent: the server has only a part of it."""


class DisconnectedError(BadAnswerError):
    """No byte of an answer arrived: a kept connection was closed meanwhile."""


class TunnelRefusedError(Exception):
    """A proxy refused CONNECT; the message is its status line."""


class HttpConnection:
    """A connection, opened by the constructor.

    Raises OSError (TLS failures are), BadAnswerError, TunnelRefusedError.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        timeout: float,
        tls: Callable[[], ssl.SSLContext] | None = None,
        tunnel: tuple[str, dict[str, str]] | None = None,
        server_name: str = "",
    ) -> None:
        host, port = address
        # Bytes are used unchanged; text would be encoded by IDNA, whose tables take time to load.
        self._socket: socket.socket = socket.create_connection(
            (host.encode() if host.isascii() else host, port),  # type: ignore[arg-type]
            timeout,
        )
        self._reader = self._socket.makefile("rb")
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tunnel is not None:
                self._ask_for_tunnel(*tunnel)
            if tls is not None:
                self._reader.close()
                self._socket = tls().wrap_socket(self._socket, server_hostname=server_name)
                self._reader = self._socket.makefile("rb")
        except BaseException:
            self.close()
            raise

    @property
    def is_usable(self) -> bool:
        """Whether a kept connection shows no sign of the server's end, and nothing came behind the last answer, which
        would be read as the next request's."""
        return is_quiet(self._socket.fileno()) and not self._has_rest

    @property
    def _has_rest(self) -> bool:
        timeout = self._socket.gettimeout()
        self._socket.settimeout(0)
        try:
            return bool(self._reader.peek(1))
        except OSError as error:
            return type(error).__name__ != "SSLWantReadError"  # by name: `ssl` is loaded only where it is used
        finally:
            self._socket.settimeout(timeout)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def exchange(
        self, method: str, target: str, fields: dict[str, str], body: bytes | None, limit: int = MAX_BODY
    ) -> tuple[int, dict[str, str], bytes, bool]:
        """Send a request; return status, headers (lower case), body of at most `limit` bytes, and whether the
        connection can be kept."""
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            fields = {**fields, "Content-Length": str(len(body or b""))}
        self._send(f"{method} {target} HTTP/1.1", fields, body or b"")
        for _ in range(MAX_INTERIM + 1):
            version, status, _reason = self._status_line()
            headers = self._headers()
            if status >= 200:
                break
        else:
            raise BadAnswerError("too many interim answers")
        is_kept = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        if method == "HEAD" or status in {204, 304}:
            return status, headers, b"", is_kept
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return status, headers, self._chunks(limit), is_kept
        if "content-length" in headers:
            return status, headers, self._exactly(_number(headers["content-length"], 10), limit), is_kept
        return status, headers, self._until_the_end(limit), False

    def _send(self, first: str, fields: dict[str, str], body: bytes) -> None:
        lines = [first, *(f"{name}: {value}" for name, value in fields.items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise BadAnswerError("a header with a line break")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        is_small = len(body) <= CHUNK
        try:
            self._socket.sendall(head + body if is_small else head)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise UnsentError(error.errno, error.strerror) from error
        if is_small:
            return
        # A server that refuses a large body answers early, and closes (RFC 9112 section 9.6). Its answer can be read;
        # without an answer the reading fails, too.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(body)

    def _ask_for_tunnel(self, authority: str, fields: dict[str, str]) -> None:
        self._send(f"CONNECT {authority} HTTP/1.1", {"Host": authority, **fields}, b"")
        _, status, reason = self._status_line()
        self._headers()
        if not 200 <= status < 300:
            raise TunnelRefusedError(f"{status} {reason}".strip())

    def _line(self) -> str:
        line = self._reader.readline(LINE_LIMIT)
        if not line.endswith(b"\n"):
            raise BadAnswerError("a line that does not end")
        return line.decode("latin-1").rstrip("\r\n")

    def _status_line(self) -> tuple[str, int, str]:
        first = self._reader.peek(1)
        if not first:
            raise DisconnectedError("no answer")
        version, _, rest = self._line().partition(" ")
        status, _, reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or len(status) != 3 or not status.isdigit():
            raise BadAnswerError("no status line")
        return version, int(status), reason.strip()

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        size = count = 0
        while line := self._line():
            size += len(line)
            count += 1
            name, colon, value = line.partition(":")
            if not colon or size > HEADERS_LIMIT or count > HEAD_LINES:
                raise BadAnswerError("no header")
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    def _chunks(self, limit: int) -> bytes:
        body = bytearray()
        while size := _number(self._line().partition(";")[0], 16):
            body += self._exactly(size, limit - len(body))
            self._line()
        self._headers()  # trailers
        return bytes(body)

    def _until_the_end(self, limit: int) -> bytes:
        body = bytearray()
        while data := self._reader.read(min(CHUNK, limit + 1 - len(body))):
            body += data
            if len(body) > limit:
                raise TooLargeError("the body is too long")
        return bytes(body)

    def _exactly(self, size: int, limit: int) -> bytes:
        if size > limit:
            raise TooLargeError("the body is too long")
        data: bytes = self._reader.read(size)
        if len(data) != size:
            raise BadAnswerError("the body ended too early")
        return data


def _number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        raise BadAnswerError("no length") from None
    if number < 0:
        raise BadAnswerError("no length")
    return number
