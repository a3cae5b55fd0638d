"""Process of the command server: when it exits, and which users it serves."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coder.cli.command_server.listener import IDLE_SECONDS
from tests.kit.paths import ROOT
from tests.kit.programs.single_binary import Launcher

PATIENCE = 60.0
OTHER_UID = 65534
SERVER = """
import os, sys
from pathlib import Path
from coder.cli.command_server import listener

listener.worker.run = lambda channel, *rest: os.write(channel.detach(), b"served") and 0
served = listener.Listener(Path(sys.argv[1]), "identity", float(sys.argv[2]))
print("listening", flush=True)
served.serve(lambda words: 0, lambda words: None)
"""
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


@contextmanager
def listening(idle: float) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Listener in a separate process, whose workers print one word; descriptor 3 is its lock."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ls-") as folder:
        path = Path(folder) / "sock"
        argv = ["sh", "-c", 'exec "$@" 3>"$0"', f"{folder}/lock", sys.executable, "-c", SERVER, str(path), str(idle)]
        with subprocess.Popen(argv, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == b"listening\n"
                yield server, path
            finally:
                server.kill()


def send_request(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(PATIENCE)
        channel.connect(str(path))
        try:
            return channel.recv(100)
        except ConnectionResetError:
            return b""


def test_idle_server_removes_socket() -> None:
    assert IDLE_SECONDS == 10 * 60
    with listening(idle=0.2) as (server, path):
        assert server.wait(PATIENCE) == 0
        assert not path.exists()


def test_requests_keep_server_alive() -> None:
    with listening(idle=IDLE_SECONDS) as (server, path):
        assert [send_request(path) for _ in range(3)] == [b"served"] * 3
        assert server.poll() is None


def test_idle_time_from_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coder.cli.command_server import listener

    idle_times: list[float] = []

    class AskedListener:
        def __init__(self, _path: Path, _identity: str, idle: float, _overlay: object) -> None:
            idle_times.append(idle)

        def serve(self, *_: object) -> None:
            pass

    class Overlay:
        def __init__(self, path: Path) -> None:
            pass

    monkeypatch.setattr(listener, "Listener", AskedListener)
    monkeypatch.setattr(listener, "OverlayChild", Overlay)
    monkeypatch.setattr("coder.cli.command_server.preload.load_everything", lambda modules: None)
    monkeypatch.setattr(os, "set_inheritable", lambda *_: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    place = {"CODER_COMMAND_SERVER_SOCKET": str(tmp_path / "s"), "CODER_COMMAND_SERVER_IDENTITY": "i"}
    for env in ({}, {"CODER_COMMAND_SERVER_IDLE": "1.5"}):
        assert listener.serve({**place, **env}, {}, lambda _: 0, lambda _: None) == 0
    assert idle_times == [IDLE_SECONDS, 1.5]


@NEEDS_ROOT
def test_other_user_is_rejected() -> None:
    with listening(idle=IDLE_SECONDS) as (_, path):
        path.chmod(0o666)
        path.parent.chmod(0o755)
        os.seteuid(OTHER_UID)  # a connection has the credentials of the moment of connect
        try:
            assert send_request(path) == b""
        finally:
            os.seteuid(0)
        assert send_request(path) == b"served"


@NEEDS_ROOT
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the launcher is C")
def test_launcher_checks_socket_owner() -> None:
    """Arguments and environment contain tokens, so the launcher checks the listener's owner before sending."""
    launcher = Launcher(Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp")))
    try:
        launcher.start_server()
        (path,) = launcher.sockets()
        with socket.socket(socket.AF_UNIX) as impostor:
            impostor.settimeout(PATIENCE)
            path.unlink()
            impostor.bind(str(path))
            os.seteuid(OTHER_UID)  # the kernel records the socket's owner now
            try:
                impostor.listen()
            finally:
                os.seteuid(0)
            launcher.ways()
            done = subprocess.run(
                [launcher.path, "probe", "exit", "3"], env=launcher.warm, check=False, stderr=subprocess.DEVNULL
            )
            assert (done.returncode, launcher.ways()) == (3, ["cold"])
            channel, _ = impostor.accept()
            with channel:
                channel.settimeout(PATIENCE)
                assert channel.recv(1) == b""
    finally:
        launcher.close()
