"""File systems that do not answer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from coder.agent.reports import volumes
from coder.agent.reports.volumes import read_volumes


async def test_silent_disk_holds_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = threading.Event(), list[Path]()

    def silent(folder: Path) -> tuple[int, int]:
        asked.append(folder)
        answer.wait(60)
        return 1, 2

    monkeypatch.setattr(volumes, "disk_usage", silent)
    monkeypatch.setattr(volumes, "DISK_TIMEOUT", 0.05)
    try:
        for _ in range(20):
            assert await read_volumes([tmp_path]) == {tmp_path: (None, None)}
        assert asked == [tmp_path]
    finally:
        answer.set()
    monkeypatch.setattr(volumes, "DISK_TIMEOUT", 30)
    assert await read_volumes([tmp_path]) == {tmp_path: (1, 2)}
