"""The command line of the built Windows program under Wine, against a server and an agent on this machine.

Its console is that of Wine in a terminal of this machine, which turns keys and sizes into those of Windows.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import shlex
import struct
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.wine.machine import BUILT, InstalledProgram, missing_tools

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BUILT, reason="a built program for Windows is run there"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}"),
]


@dataclass
class Client:
    command: list[str]
    env: dict[str, str]


@asynccontextmanager
async def client(installed: InstalledProgram, tmp_path: Path) -> AsyncIterator[Client]:
    """A user of the Windows program, with a workspace on this machine."""
    async with (
        workspace_world() as view,
        running_agent(view, DialPolicy(view.world.url), tmp_path / "agent"),
    ):
        session = {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token}
        yield Client(["wine", str(installed.program)], {**installed.variables, **session})


async def test_windows_shell_carries_bytes(installed: InstalledProgram, tmp_path: Path) -> None:
    """`coder ssh` with pipes: bytes both ways, both outputs, the exit code."""
    data = b"\r\n\x1a\x00\xff" + os.urandom(5_000_000)
    async with client(installed, tmp_path) as user:
        command = [*user.command, "ssh", "dev", "cat; echo wrong >&2; exit 7"]
        done = await trio.run_process(
            command, stdin=data, env=user.env, capture_stdout=True, capture_stderr=True, check=False
        )
        assert done.returncode == 7 and b"wrong" in done.stderr, done.stderr
        assert hashlib.sha256(done.stdout).hexdigest() == hashlib.sha256(data).hexdigest()


async def test_windows_program_is_proxy_command(installed: InstalledProgram, tmp_path: Path) -> None:
    """`coder ssh --stdio`, as OpenSSH runs it for the entries of `coder config-ssh`."""
    data = os.urandom(5_000_000)
    async with client(installed, tmp_path) as user:
        options = [f"ProxyCommand={shlex.join(user.command)} ssh --stdio dev", "StrictHostKeyChecking=no"]
        options += ["UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        command = ["ssh", *(word for option in options for word in ("-o", option)), "dev", "cat; exit 4"]
        done = await trio.run_process(
            command, stdin=data, env=user.env, capture_stdout=True, capture_stderr=True, check=False
        )
        assert done.returncode == 4 and done.stdout == data, done.stderr


async def test_windows_terminal_is_raw(installed: InstalledProgram, tmp_path: Path) -> None:
    """Ctrl-C goes to the workspace. Wine's console does not follow the size of a terminal of this machine; that a size
    is told is in `tests/unit/client/test_terminal_mode.py`."""
    async with client(installed, tmp_path) as user:
        with terminal(80, 24) as (ours, theirs):
            process = await trio.lowlevel.open_process(
                [*user.command, "ssh", "dev"],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env={**user.env, "TERM": "xterm"},
                start_new_session=True,
                preexec_fn=take_terminal,
            )
            screen = Screen(ours)
            await screen.send(b"echo $(stty size) is the size; echo sum=$((40+2)); sleep 600\r")
            seen = await screen.read_until(b"sum=42")
            assert b"24 80 is the size" in seen, seen
            await screen.send(b"\x03echo again=$((1+1))\r")
            await screen.read_until(b"again=2")
            await screen.send(b"exit 6\r")
            with trio.fail_after(60):
                while process.poll() is None:
                    await screen.read()
            assert process.returncode == 6


class Screen:
    """What a terminal shows, as bytes with escape sequences."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)

    async def send(self, keys: bytes) -> None:
        await trio.lowlevel.wait_writable(self._descriptor)
        os.write(self._descriptor, keys)

    async def read(self) -> bytes:
        """What is shown within half a second."""
        with trio.move_on_after(0.5):
            await trio.lowlevel.wait_readable(self._descriptor)
            try:
                return os.read(self._descriptor, 65536)
            except OSError:  # the program has closed it
                await trio.sleep_forever()
        return b""

    async def read_until(self, marker: bytes) -> bytes:
        seen = b""
        with trio.move_on_after(180):
            while marker not in seen:
                seen += await self.read()
            return seen
        raise AssertionError(seen)


@contextmanager
def terminal(columns: int, lines: int) -> Iterator[tuple[int, int]]:
    """A terminal that makes no signals of keys: a Windows console decides by its own mode."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    set_size(ours, columns, lines)
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def set_size(descriptor: int, columns: int, lines: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
