"""Log file of a script: bounded, and its failure or delay affects nothing else."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.workspace import script_log
from coder.agent.workspace.script_log import MAX_QUEUED


async def test_log_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "folder/log"
    async with script_log.script_log(path, limit=1000) as log:
        for _ in range(100):
            log.write(b"x" * 99)
    kept = path.read_bytes()
    assert kept.startswith(b"x" * 1000 + b"\n[the rest") and len(kept) < 1100


async def test_file_exists_at_start(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / str(number)
        async with script_log.script_log(path):
            assert path.read_bytes() == b""
        assert path.read_bytes() == b""


async def test_late_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, answer = script_log._open, threading.Event()

    def late(path: Path) -> Any:
        answer.wait(60)
        return plain(path)

    monkeypatch.setattr(script_log, "_open", late)
    monkeypatch.setattr(script_log, "DISK_TIMEOUT", 0.01)
    async with script_log.script_log(tmp_path / "log") as log:
        assert not (tmp_path / "log").exists()
        monkeypatch.setattr(script_log, "DISK_TIMEOUT", 60)
        answer.set()
    assert (tmp_path / "log").read_bytes() == b"" and log.opened.is_set()


async def test_failed_log_is_abandoned(tmp_path: Path) -> None:
    with trio.fail_after(60):
        for path in (Path("/dev/full"), Path("/proc/nowhere/log"), tmp_path):
            async with script_log.script_log(path) as log:
                for _ in range(3):
                    log.write(b"one" * MAX_QUEUED)
                    await log.wait_for_room()


async def test_block_errors_keep_output(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no such program"):
        async with script_log.script_log(tmp_path / "log") as log:
            log.write(b"before")
            raise OSError("no such program")
    with trio.CancelScope() as scope:
        async with script_log.script_log(tmp_path / "log") as log:
            log.write(b" and after")
            scope.cancel()
            await trio.sleep_forever()
    assert (tmp_path / "log").read_bytes() == b"before and after"


async def test_writes_run_in_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that writes faster than the disk waits for it."""
    plain, mine, path = os.write, threading.get_ident(), tmp_path / "log"
    most = 0

    def write(descriptor: int, data: Any) -> int:
        nonlocal most
        if Path(f"/proc/self/fd/{descriptor}").readlink() == path:
            assert threading.get_ident() != mine
            most = max(most, len(data))
        return plain(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    async with script_log.script_log(path) as log:
        for _ in range(50):
            log.write(b"x" * (64 << 10))
            await log.wait_for_room()
    assert path.stat().st_size == 50 << 16
    assert 0 < most <= MAX_QUEUED + (64 << 10)


@pytest.mark.parametrize("silent", ["open_for_writing", "append"])
async def test_silent_disk_costs_file_only(silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    owner: Any = script_log if silent == "open_for_writing" else script_log._File
    plain = getattr(owner, silent)

    def late(*arguments: Any) -> Any:
        answer.wait(60)
        return plain(*arguments)

    monkeypatch.setattr(owner, silent, late)
    monkeypatch.setattr(script_log, "DISK_TIMEOUT", 0.05)
    before = _open_below(tmp_path)
    try:
        with trio.fail_after(60):
            async with script_log.script_log(tmp_path / "log") as log:
                for _ in range(100):
                    log.write(b"x" * MAX_QUEUED)
                    await log.wait_for_room()
    finally:
        answer.set()
    with trio.fail_after(60):
        while _open_below(tmp_path) != before:  # the late thread has closed it
            await trio.sleep(0.01)


def _open_below(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith(str(folder)):
            found.append(target)
    return found
