"""Script output for the server: queued by source, sent in batches, kept until confirmed.

Limits are the server's (1 MiB an agent, 1 MiB a batch). Memory is bounded by dropping the oldest unsent lines of a
source; a log line reports the number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime

import trio

from coder.base.log import get_logger
from coder.rpc.errors import OUTCOME_UNKNOWN, RpcError
from coder.rpc.proto import agent_pb2

BATCH_BYTES = 1 << 20
LINE_OVERHEAD = 21
"Bytes the server counts for a line in addition to its text."
QUEUE_BYTES = 2 << 20
"Bytes of lines waiting for a connection (ours): twice what the server would keep."
MAX_LINE = 64 << 10

_log = get_logger("agent")

Send = Callable[[agent_pb2.BatchCreateLogsRequest], Awaitable[agent_pb2.BatchCreateLogsResponse]]


class LogQueue:
    """Queue of log lines of all sources."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lines: deque[tuple[bytes, agent_pb2.Log]] = deque()
        self._size = 0
        self._dropped = 0
        self._in_flight = False
        self._sent = 0
        "Number of lines at the front that are being sent."
        self._dropped_in_flight = 0
        "Number of them that were dropped before the server confirmed them."
        self._overflowed = False
        self._changed = trio.Event()
        self._hurry = trio.Event()
        "Set while a caller waits for the queue to be empty: batches are sent without lingering."

    def add(self, source: bytes, text: str, level: agent_pb2.Log.Level.ValueType) -> None:
        """Queue one line (without its line break) of a log source (16-byte id)."""
        if self._overflowed:
            return
        entry = agent_pb2.Log(output=text[:MAX_LINE], level=level)
        entry.created_at.FromDatetime(self._now())
        self._lines.append((source, entry))
        self._size += len(entry.output) + LINE_OVERHEAD
        while self._size > QUEUE_BYTES and len(self._lines) > 1:
            self._pop()
            if self._sent:
                self._sent -= 1
                self._dropped_in_flight += 1
            else:
                self._dropped += 1
        self._wake()

    async def send_loop(self, send: Send, *, linger: float = 0.25) -> None:
        """Send batches until the server's limit is reached. A failing `send` ends the loop; nothing is lost."""
        while not self._overflowed:
            if not self._lines:
                await self._changed.wait()
                continue
            if self._size < BATCH_BYTES // 2:
                with trio.move_on_after(linger):
                    await self._hurry.wait()
            request, self._sent = self._batch()
            reported, self._in_flight, self._dropped_in_flight = self._dropped, True, 0
            try:
                answer = await self._send(send, request)
            except BaseException:
                self._dropped += self._dropped_in_flight
                self._sent = 0
                raise
            finally:
                self._in_flight = False
            self._dropped -= reported
            while self._sent:
                self._pop()
                self._sent -= 1
            if answer.log_limit_exceeded:
                self._overflowed = True
                self._lines.clear()
                self._size = 0
            self._wake()
        await trio.sleep_forever()

    @staticmethod
    async def _send(send: Send, request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        """Send a batch. Lines of which the server cannot tell whether it has them are not sent again."""
        try:
            return await send(request)
        except RpcError as error:
            if error.number != OUTCOME_UNKNOWN:
                raise
            _log.warn("log lines may be missing on the server", lines=len(request.logs), error=error)
            return agent_pb2.BatchCreateLogsResponse()

    def __len__(self) -> int:
        """Return the number of lines the server does not have; 0 when its limit is reached."""
        return 0 if self._overflowed else len(self._lines)

    async def wait_sent(self) -> None:
        """Wait until the server has every queued line, or its limit is reached."""
        self._hurry.set()
        try:
            while (self._lines or self._in_flight) and not self._overflowed:
                await self._changed.wait()
        finally:
            self._hurry = trio.Event()

    def _batch(self) -> tuple[agent_pb2.BatchCreateLogsRequest, int]:
        """Return a batch of the leading lines of one source, and their number."""
        source = self._lines[0][0]
        request = agent_pb2.BatchCreateLogsRequest(log_source_id=source)
        if self._dropped:
            note = agent_pb2.Log(output=f"({self._dropped} older log lines were dropped)", level=agent_pb2.Log.WARN)
            note.created_at.FromDatetime(self._now())
            request.logs.append(note)
        size = count = 0
        for line_source, entry in self._lines:
            size += len(entry.output.encode()) + LINE_OVERHEAD
            if line_source != source or (count and size > BATCH_BYTES):
                break
            request.logs.append(entry)
            count += 1
        return request, count

    def _pop(self) -> None:
        _, entry = self._lines.popleft()
        self._size -= len(entry.output) + LINE_OVERHEAD

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
