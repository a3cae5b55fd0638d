"""Secrets that are files."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
import trio

from coder.agent.state import AgentState, Identity
from coder.agent.workspace import secret_files
from coder.agent.workspace.secret_files import write_secret_files
from coder.rpc.proto import agent_pb2
from tests.kit.event_loop_probes import no_threads


async def test_unwritable_file_spares_others(tmp_path: Path) -> None:
    """A pipe without a reader, a folder, a folder that is a file; then a file below a missing folder."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").write_bytes(b"a longer one, from before")
    paths = ["~/pipe", "~/folder", "~/old/below", "", "~/new/deep/secret", str(tmp_path / "old")]
    state = AgentState(identity=Identity("me", tmp_path, "/bin/sh"), token="t", url="http://x", executable="coder")
    secrets = [agent_pb2.WorkspaceSecret(file_path=path, value=b"\x00s3cret") for path in paths]
    with trio.fail_after(60):
        await write_secret_files(state, agent_pb2.Manifest(secrets=secrets))
    written = tmp_path / "new/deep/secret"
    assert written.read_bytes() == (tmp_path / "old").read_bytes() == b"\x00s3cret"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert stat.S_IMODE(written.parent.stat().st_mode) == 0o700


async def test_thread_shortage_spares_start(tmp_path: Path) -> None:
    state = AgentState(identity=Identity("me", tmp_path, "/bin/sh"), token="t", url="http://x", executable="coder")
    with no_threads():
        await write_secret_files(state, agent_pb2.Manifest(secrets=[agent_pb2.WorkspaceSecret(file_path="~/a")]))
    assert not (tmp_path / "a").exists()


async def test_silent_disk_spares_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does the start of the workspace wait for it."""
    answer, plain = threading.Event(), Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False) -> None:
        if path.name == "away":
            answer.wait(60)
        plain(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(secret_files, "DISK_TIMEOUT", 0.05)
    state = AgentState(identity=Identity("me", tmp_path, "/bin/sh"), token="t", url="http://x", executable="coder")
    secrets = [agent_pb2.WorkspaceSecret(file_path=path, value=b"s") for path in ("~/away/one", "~/there/two")]
    try:
        with trio.fail_after(60):
            await write_secret_files(state, agent_pb2.Manifest(secrets=secrets))
            while not (tmp_path / "there/two").exists():  # a busy machine needed longer, too
                await trio.sleep(0.01)
    finally:
        answer.set()
