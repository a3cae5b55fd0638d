"""Exit code and message of `coder ssh`, by how its command ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio_asyncio

from coder.client import shell
from coder.client.shell import CONNECTION_LOST, LOST, OUTPUT_CLOSED, ShellRequest


@pytest.mark.parametrize(
    ("returncode", "was_read", "code", "text"),
    [
        (0, True, 0, ""),
        (7, True, 7, ""),
        (-9, True, LOST, ""),  # killed by a signal
        (None, True, LOST, CONNECTION_LOST),
        (None, False, OUTPUT_CLOSED, ""),
    ],
)
async def test_lost_connection_is_said(
    returncode: int | None,
    was_read: bool,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def closed() -> None:
        """The channel is closed already."""

    async def create_process(_command: bytes | None, **_: Any) -> Any:
        return SimpleNamespace(returncode=returncode, wait_closed=closed)

    async def drain(_process: object) -> bool:
        return was_read

    async def feed(_process: object) -> None:
        """Standard input is empty."""

    monkeypatch.setattr(shell, "_drain", drain)
    monkeypatch.setattr(shell, "_feed", feed)
    connection: Any = SimpleNamespace(create_process=create_process)
    async with trio_asyncio.open_loop():
        assert await shell._session(connection, ShellRequest("command")) == code
    assert capsys.readouterr().err == text
