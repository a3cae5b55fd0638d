"""`coder ssh --forward-gpg`: the order of the preparation, and errors that name the unready side.

GPG is simulated: a program on PATH locally, a table of answers in the workspace.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coder.base.errors import CoderError
from coder.client.gpg import Finished, forward_gpg

SOCKET_HERE, SOCKET_THERE = "/run/user/1/S.gpg-agent.extra", "/run/user/2/S.gpg-agent"


@dataclass
class Workspace:
    """Workspace that answers every command and records it."""

    socket: str = SOCKET_THERE
    fails: str = ""
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    forwarded: list[tuple[str, str]] = field(default_factory=list)

    async def run(self, command: str, stdin: bytes) -> Finished:
        name = "make room" if "gpgconf" in command else command.rpartition(" ")[2]
        self.asked.append((name, stdin))
        if name == self.fails:
            return Finished(2, b"", b"no such thing\n")
        return Finished(0, self.socket.encode() if name == "make room" else b"", b"")

    async def forward_socket(self, remote: str, local: str) -> None:
        self.forwarded.append((remote, local))


@pytest.fixture
def local_gpg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of programs; the output of each is a file next to it."""
    for name in ("gpg", "gpgconf"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nfor last; do :; done\nexec cat "{tmp_path}/answer$last"\n')
        program.chmod(0o755)
    (tmp_path / "answeragent-extra-socket").write_text(SOCKET_HERE + "\n")
    (tmp_path / "answer--export").write_text("public keys")
    (tmp_path / "answer--export-ownertrust").write_text("trust")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


async def test_imports_keys_before_forwarding(local_gpg: Path) -> None:
    workspace = Workspace()
    await forward_gpg(workspace)
    assert workspace.asked == [
        ("make room", b""),  # otherwise gpg waits for an earlier session's socket
        ("--import", b"public keys"),
        ("--import-ownertrust", b"trust"),
        ("make room", b""),  # otherwise the agent that the import started keeps the path
    ]
    assert workspace.forwarded == [(SOCKET_THERE, SOCKET_HERE)]


async def test_no_keys_imports_nothing(local_gpg: Path) -> None:
    (local_gpg / "answer--export").write_text("")
    (local_gpg / "answer--export-ownertrust").write_text("")
    workspace = Workspace()
    await forward_gpg(workspace)
    assert [name for name, _ in workspace.asked] == ["make room", "make room"] and workspace.forwarded


async def test_error_names_unready_side(local_gpg: Path) -> None:
    with pytest.raises(CoderError, match="the workspace's GPG has no agent socket"):
        await forward_gpg(Workspace(socket=""))
    with pytest.raises(CoderError, match="gpg failed in the workspace: no such thing"):
        await forward_gpg(Workspace(fails="--import"))
    (local_gpg / "answer--export").unlink()
    with pytest.raises(CoderError, match="gpg --armor --export failed"):
        await forward_gpg(Workspace())
    (local_gpg / "answeragent-extra-socket").write_text("\n")
    with pytest.raises(CoderError, match="the local GPG has no extra socket"):
        await forward_gpg(Workspace())


async def test_no_gpg_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CoderError, match="cannot run gpgconf on this machine"):
        await forward_gpg(Workspace())
