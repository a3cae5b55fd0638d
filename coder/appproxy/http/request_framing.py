"""The parser of requests: h11's, with one reading of a body's length, and few chunks that are mostly framing."""

from __future__ import annotations

from urllib.parse import unquote, urlparse

import h11

from coder.net.bounded_http import PIECES, BoundedHttp, HttpEvent

FRAMING_SLACK = 16 << 10
"""Bytes of chunk framing a body may have besides one for each byte of data. A chunk of one byte takes as long to parse
as a large one: this ends a body of such chunks after four thousand of them, some 30 ms."""


class OneFraming(BoundedHttp):
    """Refuse a request with two lengths (RFC 9112 section 6.1), which a proxy in front may count otherwise; one without
    a path; and a body that is mostly chunk headers (`FRAMING_SLACK`). After `end` there are no more events."""

    _received = _data = _chunks = 0
    """Bytes after the head, those of them that are body data, and pieces that are not charged yet."""
    _ended = False
    _waiting: HttpEvent | None = None
    """Event behind a piece of a body, taken already."""

    def end(self) -> None:
        """Drop the received bytes that are not parsed."""
        self._ended = True
        self._receive_buffer.maybe_extract_at_most(len(self._receive_buffer))

    def take_chunks(self) -> int:
        """Return the pieces of bodies parsed since the last call."""
        chunks, self._chunks = self._chunks, 0
        return chunks

    def receive_data(self, data: bytes) -> None:
        if not self._ended:
            self._received += len(data)
            super().receive_data(data)

    def next_event(self) -> HttpEvent:
        """Return up to PIECES chunks of a body together: passing one on costs as much as parsing twenty."""
        if self._ended:
            return h11.NEED_DATA
        event, self._waiting = self._waiting or self._checked_event(), None
        if type(event) is not h11.Data or not self._receive_buffer:
            return event
        pieces = [event.data]
        while self._waiting is None and len(pieces) < PIECES and self._receive_buffer:
            following = self._checked_event()
            if type(following) is h11.Data:
                pieces.append(following.data)
            else:
                self._waiting = following
        if self._waiting is h11.NEED_DATA:
            self._waiting = None
        return event if len(pieces) == 1 else h11.Data(data=b"".join(pieces))

    def start_next_cycle(self) -> None:
        self._waiting = None  # of a request that was answered before its reader came to it
        super().start_next_cycle()

    def _checked_event(self) -> HttpEvent:
        event = super().next_event()
        # isinstance calls an abstract base class, several times for each request
        if type(event) is h11.Data:
            self._data += len(event.data)
            self._chunks += 1
            parsed = self._received - len(self._receive_buffer)
            if parsed - self._data > self._data + FRAMING_SLACK:
                self._process_error(self.their_role)
                raise h11.RemoteProtocolError("a body of mostly chunk headers", error_status_hint=413)
        elif type(event) is h11.Request:
            self._received, self._data = len(self._receive_buffer), 0
            names = {name for _, name, _ in event.headers._full_items}
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding", error_status_hint=400)
            if not event.target.startswith(b"/") and not _names_path(event.target):
                raise h11.RemoteProtocolError("the request target has no path", error_status_hint=400)
        return event


def _names_path(target: bytes) -> bool:
    """Return whether Quart can read a target that does not begin with a slash (RFC 9112 section 3.2): it indexes an
    empty path, and parses the unescaped text as a URL."""
    path = unquote(target.partition(b"?")[0].decode("ascii"))
    try:
        urlparse(path)
    except ValueError:
        return False
    return bool(path)
