"""A full process logs its listeners' trouble in one line."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import pytest
import trio

from coder.base.log import Level
from coder.base.log import also as log_to
from coder.base.open_files import summarize_full_listeners
from tests.kit.descriptors import spare_descriptors


async def test_full_listener_logs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Its clients are served once there is room again."""
    lines: list[tuple[str, str]] = []

    def note(_level: Level, _at: datetime, name: str, message: str, fields: dict[str, Any]) -> None:
        if name.endswith("listeners"):
            lines.append((message, str(fields["error"])))

    attempts: list[logging.LogRecord] = []

    def count(record: logging.LogRecord) -> bool:
        attempts.append(record)
        return True

    async def answer(stream: trio.SocketStream) -> None:
        await stream.send_all(b"hello")

    summarize_full_listeners()
    filters = logging.getLogger("trio.serve_listeners").filters
    filters.insert(0, count)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    with log_to(note):
        async with trio.open_nursery() as nursery:
            client = await trio.open_tcp_stream("127.0.0.1", port)
            with spare_descriptors(0):
                nursery.start_soon(trio.serve_listeners, answer, [listener])
                while len(attempts) < 3:
                    await trio.sleep(0.01)
            with trio.fail_after(60):
                assert await client.receive_some() == b"hello"
            await client.aclose()
            nursery.cancel_scope.cancel()
    assert [message for message, _ in lines] == ["no connection can be accepted for now"]
    assert "Too many open files" in lines[0][1]
    assert not [record for record in caplog.records if record.name == "trio.serve_listeners"]
    filters.remove(count)
    assert filters
