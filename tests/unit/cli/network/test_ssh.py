"""Start of `coder ssh`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio_asyncio

from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.parsing import parse
from coder.cli.declarations.network.ssh import SSH
from coder.cli.network import ssh_session
from coder.client import shell
from coder.client.standard_streams import StandardOutput
from coder.net.ssh_library import asyncssh
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import odd_server

COUNT = """
import gc, trio
seen = []
def run(*_):
    gc.callbacks.append(lambda phase, found: seen.append(found["generation"]) if phase == "stop" else None)
    import coder.client.link, coder.client.ready, coder.client.shell
    return 0
trio.run = run
from coder.cli.network import ssh
assert ssh._run(None) == 0
print(len(seen), gc.isenabled())
"""


def test_imports_without_garbage_collection() -> None:
    result = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["0", "True"]  # 130 with Python's own thresholds


class _ChosenTarget(Exception):  # noqa: N818 - ends the session where its link would be opened
    pass


@pytest.mark.parametrize(
    ("argv", "env", "link"),
    [
        ([], {}, "shared"),
        (["--force-new-tunnel"], {}, "own"),
        ([], {"CODER_SSH_FORCE_NEW_TUNNEL": "true"}, "own"),
        (["--force-new-tunnel=false"], {"CODER_SSH_FORCE_NEW_TUNNEL": "true"}, "shared"),
        (["--network-info-dir=/nowhere"], {}, "own"),
        (["--log-dir=/nowhere"], {}, "own"),
    ],
)
async def test_session_selects_tunnel(
    argv: list[str], env: dict[str, str], link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opening(name: str) -> Any:
        @asynccontextmanager
        async def open_connection(*_: Any, **__: Any) -> Any:
            raise _ChosenTarget(name)
            yield

        return open_connection

    monkeypatch.setattr("coder.cli.network.ssh_session.open_link", opening("own"))
    monkeypatch.setattr("coder.cli.network.ssh_session.open_link_for_command", opening("shared"))
    monkeypatch.setattr(session, "config_dir", lambda _invocation: "/nowhere")
    target = cast("Any", SimpleNamespace(agent=SimpleNamespace(id="a")))
    absent: Any = None
    with pytest.raises(_ChosenTarget, match=link):
        await ssh_session.run_session(parse(SSH, ["dev", *argv], env), absent, absent, target)


async def test_undecodable_words_are_passed_unchanged() -> None:
    """A file name can have any encoding."""
    commands: list[Any] = []

    class Connection:
        async def create_process(self, command: object, **options: Any) -> None:
            commands.append((command, options["env"]))
            raise asyncssh.ChannelOpenError(1, "no")

    words = [
        os.fsdecode(word) for word in (b"w", b"--env", b"A=caf\xe9", b"--", b"cat", b"gr\xc3\xbc\xc3\x9fe", b"caf\xe9")
    ]
    async with trio_asyncio.open_loop():
        with pytest.raises(CoderError, match="rejected"):
            await shell._session(cast("Any", Connection()), ssh_session._request(parse(SSH, words, {})))
    assert commands == [(b"cat gr\xc3\xbc\xc3\x9fe caf\xe9", {b"A": b"caf\xe9"})]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--env=A", "must have the form name=value"),
        ("--remote-forward=x", "invalid"),
        ("--remote-forward=99999:localhost:1", "invalid"),
        ("--remote-forward=1:localhost:\u00b2", "invalid"),
        ("--remote-forward=1:localhost", "invalid"),
        ("--remote-forward=/a.sock", "invalid"),
    ],
)
async def test_invalid_flag_starts_no_workspace(flag: str, message: str, tmp_path: Path) -> None:
    with odd_server() as server:
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x"}
        result = await run_cli(["ssh", flag, "dev", "true"], home=tmp_path, env=env)
    assert result.code == 1 and message in result.stderr and not server.asked


SILENT = """
import asyncio, os, sys, trio, trio_asyncio
from coder.client import shell
class Silent:
    async def read(self, _): await asyncio.get_running_loop().create_future()
class Process:
    stdout = stderr = Silent()
    def terminate(self): os.write(2, b"terminated, ")
async def main():
    os.write(1, b"ready\\n")
    async with trio_asyncio.open_loop():
        return await shell._drain(Process())
os.write(2, b"read" if trio.run(main) else b"unread")
"""


def test_closed_output_ends_silent_command() -> None:
    with subprocess.Popen([sys.executable, "-c", SILENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as session:
        assert session.stdout is not None and session.stderr is not None
        assert session.stdout.readline() == b"ready\n"
        session.stdout.close()
        assert (session.stderr.read(), session.wait(60)) == (b"terminated, unread", 0)


@pytest.mark.parametrize("kind", ["pipe", "socket", "file"])
async def test_open_reader_is_detected(kind: str, tmp_path: Path) -> None:
    if kind == "file":
        near = far = os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    elif kind == "pipe":
        far, near = os.pipe()
    else:
        ends = socket.socketpair()
        near, far = ends[0].detach(), ends[1].detach()
    sink = StandardOutput(near)
    with trio.move_on_after(60) as waiting:
        async with trio.open_nursery() as nursery:
            abandoned = trio.Event()

            async def wait() -> None:
                await sink.wait_abandoned()
                abandoned.set()

            nursery.start_soon(wait)
            await sink.send_all(b"x")
            assert os.read(far, 1) == (b"" if kind == "file" else b"x")
            for _ in range(20):
                await trio.lowlevel.checkpoint()
            assert not abandoned.is_set()
            if kind == "pipe":
                os.close(far)
                await abandoned.wait()
            nursery.cancel_scope.cancel()
    assert not waiting.cancelled_caught
    await sink.aclose()
    for descriptor in {near, far} - ({far} if kind == "pipe" else set()):
        os.close(descriptor)
