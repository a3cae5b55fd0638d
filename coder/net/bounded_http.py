"""h11's connection for untrusted peers: heads and trailers have a bound on their lines, interim answers are counted,
and small pieces let other tasks run.

A line costs as much as a kilobyte of one line, here and wherever headers are searched: sixteen thousand of them blocked
all tasks for 33 ms. h11 bounds bytes alone. Every reader of HTTP in this program is a `BoundedHttp`; a test in
tests/arch finds others. Not here: the maximum bytes of a head, which each reader sets itself; the blocking client's
parser (`blocking_http.py`, same bound).
"""

from __future__ import annotations

import re

import h11
import trio
from h11._receivebuffer import ReceiveBuffer

from coder.net.blocking_http import HEAD_LINES, MAX_INTERIM

PIECES = 100
"Pieces of a body, and heads, after which other tasks run: a millisecond's work."
READ_SIZE = 64 << 10
_END = re.compile(rb"\n\r?\n")


class _CountedLines(ReceiveBuffer):
    """h11 extracts all heads and trailers by one method of its buffer, which counts lines before it splits them."""

    def __init__(self) -> None:
        super().__init__()
        self._counted = 0
        "Offset up to which lines were counted: a head may come byte by byte."
        self._lines = 0

    def maybe_extract_lines(self) -> list[bytearray] | None:
        if not self._data:  # called once more after every head
            return None
        if not self._data.startswith((b"\n", b"\r\n")):  # else: no line at all, and the rest belongs to another message
            match = _END.search(self._data, self._multiple_lines_search)
            # The last two bytes of an incomplete head may be the beginning of its end.
            end = match.start() if match else max(len(self._data) - 2, 0)
            self._lines += self._data.count(b"\n", self._counted, end)
            self._counted = end
            if self._lines > HEAD_LINES:
                raise h11.LocalProtocolError("too many header lines", error_status_hint=431)
        return super().maybe_extract_lines()

    def _extract(self, count: int) -> bytearray:
        self._counted = self._lines = 0
        return super()._extract(count)


HttpEvent = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]
"""Result of `next_event`."""


class BoundedHttp(h11.Connection):
    """h11's connection with bounds on lines and interim answers.

    `next_event` raises h11.RemoteProtocolError for a head or trailers of more than HEAD_LINES lines (431), and for more
    than MAX_INTERIM answers of 1xx before an answer.
    """

    def __init__(
        self, our_role: type[h11.CLIENT] | type[h11.SERVER], max_incomplete_event_size: int = 16 << 10
    ) -> None:
        super().__init__(our_role, max_incomplete_event_size)
        self._receive_buffer = _CountedLines()
        self._pieces = self._interim = 0

    def next_event(self) -> HttpEvent:
        if self.their_state is h11.MUST_CLOSE and self.our_role is h11.SERVER and self._receive_buffer:
            # Bytes after the last request of a connection are not read (RFC 9112 section 9.6). h11 treats them as an
            # error of that request, which would be refused or answered depending on timing: some clients end it by a
            # line.
            self._receive_buffer.maybe_extract_at_most(len(self._receive_buffer))
        event = super().next_event()
        if type(event) is h11.InformationalResponse:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                self._process_error(self.their_role)
                raise h11.RemoteProtocolError("too many interim answers")
        elif type(event) is h11.Response:
            self._interim = 0
        return event

    def take_head(self, head: h11.Request, following: bytes) -> None:
        """Continue a server's connection behind a request head that was parsed elsewhere."""
        if following:
            self.receive_data(following)
        self._process_event(self.their_role, head)

    async def read_event(self, stream: trio.abc.ReceiveStream) -> HttpEvent:
        """Return the next event except NEED_DATA. A cancelled call has taken none."""
        while True:
            await self.rest()
            event = self.next_event()
            if event is not h11.NEED_DATA:
                return event
            self.receive_data(bytes(await stream.receive_some(READ_SIZE)))

    async def rest(self) -> None:
        """Let other tasks run once in so many events.

        Part of `read_event`; a caller of `next_event` awaits it for each event. 64 KiB in chunks of one byte are eleven
        thousand pieces, a tenth of a second.
        """
        self._pieces += 1
        if self._pieces % PIECES == 0:
            await trio.lowlevel.checkpoint()
