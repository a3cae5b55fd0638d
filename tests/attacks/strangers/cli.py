"""Driver of the tries against the command line: commands in forked processes, and a command server of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from coder.cli.core.command import load
from tests.attacks.strangers.kinds import Kind
from tests.attacks.strangers.place import HostileApp, reset
from tests.attacks.strangers.tables.cli import IDENTITY
from tests.kit.paths import ROOT

TOKEN = "abcdefghij-SecretSecretSecretSecr"
LIMIT = 30.0
MOST_MEMORY = 600 << 20
COMMANDS = (["whoami"], ["users", "show", "me"])
FORBIDDEN = (b"\x1b]", b"\x1b[2J", b"\x07", "\u202e".encode(), b"\x00", TOKEN.encode())
"""Nothing of these may reach the output of a command."""


@dataclass
class Done:
    code: int
    output: bytes
    seconds: float
    memory: int

    def explain(self) -> str:
        """Return what is wrong; empty if nothing."""
        if self.code < 0 or self.code > 2:
            return f"exit {self.code}: {self.output[-500:]!r}"
        if b"Traceback" in self.output:
            return f"a traceback: {self.output[-800:]!r}"
        wrong = [text for text in FORBIDDEN if text in self.output]
        if wrong:
            return f"prints {wrong}: {self.output[:300]!r}"
        return "" if self.memory < MOST_MEMORY else f"takes {self.memory >> 20} MiB"


def run_command(words: list[str], url: str, folder: Path) -> Done:
    """Run a command on a terminal, in a forked process, which has the modules already."""
    import coder.cli.main

    env = {
        "CODER_URL": url,
        "CODER_SESSION_TOKEN": TOKEN,
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
    }
    began = time.monotonic()
    ours, terminal = pty.openpty()
    output = bytearray()
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    pid = os.fork()
    if not pid:
        code = 99
        try:
            os.environ.clear()
            os.environ.update(env)
            os.close(ours)
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in ((0, null), (1, terminal), (2, terminal)):
                os.dup2(source, target)
            sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)  # type: ignore[misc]
            sys.stderr = sys.__stderr__ = os.fdopen(2, "w", errors="backslashreplace", closefd=False)  # type: ignore[misc]
            signal.alarm(int(LIMIT))
            sys.argv[:] = ["coder", *words]
            code = coder.cli.main.main(words)
            sys.stdout.flush()
            sys.stderr.flush()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            os.write(2, traceback.format_exc().encode(errors="replace"))
        finally:
            os._exit(code)  # nothing of the driver may run in the child
    os.close(terminal)
    with os.fdopen(ours, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # EIO is a terminal's end
        while piece := screen.read(65536):
            output += piece
    _, status, usage = os.wait4(pid, 0)
    took = max(0, (usage.ru_maxrss << 10) - before)  # it begins with the memory of the driver
    return Done(os.waitstatus_to_exitcode(status), bytes(output), time.monotonic() - began, took)


@dataclass
class CliAttacker:
    """A hostile server, a second one that must not learn the token, and a command server."""

    folder: Path
    path: Path
    server: subprocess.Popen[bytes]
    hostile: HostileApp = field(default_factory=HostileApp)
    other: HostileApp = field(default_factory=HostileApp)
    held: list[socket.socket] = field(default_factory=list)

    def run(self, one: Kind) -> str:
        """Make one try; return what is wrong, empty if nothing."""
        if one.stage != "answer":
            return self._socket(one)
        self.hostile.pieces = tuple(piece.replace(b"OTHER", b"127.0.0.1:%d" % self.other.port) for piece in one.pieces)
        self.hostile.then = one.then if one.then != "read" else "close"
        self.other.received.clear()
        for words in COMMANDS:
            done = run_command(words, f"http://127.0.0.1:{self.hostile.port}", self.folder)
            if wrong := done.explain():
                return f"{' '.join(words)}: {wrong}"
            if any(TOKEN.encode() in received for received in self.other.received):
                return f"{' '.join(words)}: sent its token to another server"
        return ""

    def close(self) -> None:
        for stream in self.held:
            stream.close()
        self.held.clear()

    def works(self) -> bool:
        """Whether the command server serves its user."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(LIMIT)
            channel.connect(str(self.path))
            from tests.attacks.strangers.tables.cli import request

            with _descriptors("") as numbers:
                socket.send_fds(channel, [request()], numbers)
            head = channel.recv(100)
            if not head.startswith(b"R"):
                return False
            channel.send(b"G")
            return channel.recv(100).startswith(b"X")

    def _socket(self, one: Kind) -> str:
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(LIMIT)
        channel.connect(str(self.path))
        with contextlib.suppress(OSError), _descriptors(one.stage, channel) as numbers:
            for piece in one.pieces:
                if piece:
                    # One byte more than the header at first, as a launcher does it.
                    sent = socket.send_fds(channel, [piece], numbers[:250]) if numbers else channel.send(piece)
                    channel.sendall(piece[sent:])
        if one.then == "hold":
            self.held.append(channel)
        elif one.then == "reset":
            reset(channel)
        else:
            with channel, contextlib.suppress(OSError):
                if one.then == "read":
                    channel.shutdown(socket.SHUT_WR)
                    while channel.recv(4096):
                        pass
        if self.server.poll() is not None:
            return "the command server ended"
        return ""


@contextlib.contextmanager
def _descriptors(stage: str, channel: socket.socket | None = None) -> Iterator[list[int]]:
    """The caller's files, its folder and its life pipe, or what `stage` sends instead."""
    with contextlib.ExitStack() as stack:

        def opened(path: str, flags: int = os.O_RDWR) -> int:
            number = os.open(path, flags)
            stack.callback(os.close, number)
            return number

        null = opened(os.devnull)
        read, write = os.pipe()
        stack.callback(os.close, read)
        if stage == "closed pipe":
            os.close(write)
        else:
            stack.callback(os.close, write)
        folder = opened("/tmp", os.O_RDONLY)
        if stage == "no descriptors":
            yield []
        elif stage == "one descriptor":
            yield [null]
        elif stage == "folder is a file":
            yield [null, null, null, null, read]
        elif stage == "200 descriptors":
            yield [null] * 200
        elif stage == "sockets":
            one, two = socket.socketpair()
            with one, two:
                yield [one.fileno()] * 4 + [read]
        elif stage == "deleted folder":
            with tempfile.TemporaryDirectory() as gone:
                number = opened(gone, os.O_RDONLY)
            yield [null, null, null, number, read]
        elif stage == "own socket" and channel is not None:
            yield [channel.fileno()] * 3 + [folder, read]
        else:
            yield [null, null, null, folder, read]


SERVER = """
import sys
from pathlib import Path
from coder.cli.command_server import listener
from coder.cli.main import main
served = listener.Listener(Path(sys.argv[1]), sys.argv[2], 600)
print("listening", flush=True)
served.serve(main, lambda words: " ".join(words))
"""


@contextlib.contextmanager
def open_attacker() -> Iterator[CliAttacker]:
    """A command server of these sources, whose standard error is a file `log`."""
    for module in ("coder.cli.main", "coder.net.blocking", "coder.net.blocking_http", "coder.cli.ui.error_output"):
        import_module(module)  # once here instead of in each forked process
    for command in ("whoami", "users show"):
        load(command)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="coder-test-") as name:
        folder = Path(name)
        path = folder / "sock"
        argv = [
            "sh",
            "-c",
            'exec "$@" 3>"$0"',
            f"{folder}/lock",
            sys.executable,
            "-c",
            SERVER,
            str(path),
            IDENTITY.decode(),
        ]
        env = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": name}
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=log) as server,
        ):
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == b"listening\n"
                attacker = CliAttacker(folder, path, server)
                with contextlib.closing(attacker.hostile), contextlib.closing(attacker.other):
                    yield attacker
                attacker.close()
            finally:
                server.kill()
