"""Sessions: a command or shell of the user, with or without a terminal, its pumps and its exit code.

asyncssh's own `redirect` loses data after flow control (two readers on one pipe), so the pumps are ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import trio
from trio_asyncio import trio_as_aio

from coder.agent.disk import DISK_TIMEOUT, Threads, on_disk
from coder.agent.platform import system
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.children import KILL_GRACE, UNKNOWN_STATUS
from coder.agent.workspace.containers import Container
from coder.agent.workspace.files import read_regular, workdir
from coder.base.log import get_logger
from coder.base.threads import NoThreadError
from coder.net.ssh_library import asyncssh

log = get_logger("agent.ssh")

CHUNK = 256 << 10
AGENT_FAILURE = 229
"Exit code for a failure of the agent itself, as clients expect it."
TRANSFER_BLOCKED = 65
KILLED = 255
"Exit code of a command that a signal ended."
REAP_GRACE = 5.0
"""Seconds (ours) a program has to exit after SIGHUP from its terminal."""
BLOCKED_PROGRAMS = {"nc", "rsync", "scp", "sftp"}

_MESSAGE_THREADS = Threads(1)
"Thread for messages of the day: on a disk that does not answer they wait for each other, not before other disk access."
_VSCODE = {
    "vscode",
    "vscode_insiders",
    "vscode_web",
    "code_server",
    "cursor",
    "windsurf",
    "positron",
    "vscodium",
    "codium",
    "antigravity",
    "trae",
    "kiro",
    "devin",
}

Process = asyncssh.SSHServerProcess[bytes]


def session_kind(name: str) -> str:
    """Return the family of an application name: vscode, jetbrains or ssh."""
    normal = name.strip()[:64].lower().replace("-", "_").replace("\0", "")
    if normal in _VSCODE:
        return "vscode"
    return "jetbrains" if normal == "jetbrains" else "ssh"


class SessionRunner:
    """Runner of all connections' sessions; tracks every child, so that a shutdown leaves none."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._children: set[int] = set()
        self._orphans: set[asyncio.Future[None]] = set()

    async def run(self, process: Process) -> None:
        """Run one session and send its exit status. An exception here would close the whole connection, so none is
        raised."""
        env = {_text(key): _text(value) for key, value in process.channel.get_environment_bytes().items()}
        kind = session_kind(env.get("CODER_SSH_SESSION_TYPE", "ssh"))
        ident = self._state.open_session(kind)
        has_terminal = "no" if process.term_type is None else "yes"
        self._state.counters.count("agent_sessions_total", magic_type=kind, pty=has_terminal)
        code = AGENT_FAILURE
        try:
            code = await self._dispatch(process, env)
            process.exit(code)
        except (asyncssh.Error, BrokenPipeError, ConnectionError):
            pass  # the peer disconnected
        except OSError as error:
            log.warn("session could not be started", error=error)
            file_name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
            _report_failure(
                process, f"coder agent: the session could not be started: {file_name}{error.strerror or error}\n"
            )
        except ValueError as error:  # a zero byte, which no command line can hold
            log.warn("session could not be started", error=error)
            _report_failure(process, f"coder agent: the session could not be started: {error}\n")
        finally:
            self._state.close_session(ident, kind, code)

    @property
    def running(self) -> int:
        """Number of running commands and shells, including commands without a peer."""
        return len(self._children)

    def terminate_all(self) -> None:
        """Send SIGHUP to every running process group."""
        for pid in list(self._children):
            _signal_group(pid, system.HANGUP)

    async def _dispatch(self, process: Process, session: dict[str, str]) -> int:
        if process.subsystem:
            return 1
        command = _text(process.command) if process.command else None
        if command and self._state.block_file_transfer and _program(command) in BLOCKED_PROGRAMS:
            process.stdout.write(b"\x02File transfer has been disabled.\n")
            return TRANSFER_BLOCKED
        env = environment.command_environment(self._state, session | _connection_variables(process))
        is_terminal = process.term_type is not None  # empty when the client has no TERM, and still a terminal
        if process.term_type is not None:
            env["TERM"] = _text(process.term_type) or "dumb"
        container = Container.from_request(session.get("CODER_CONTAINER", ""), session.get("CODER_CONTAINER_USER", ""))
        if container is None:
            argv = environment.command_line(self._state.identity, command)
        else:
            passed = [*environment.container_variables(self._state), *session, *(["TERM"] if is_terminal else [])]
            argv = container.command_line(command, env, tty=is_terminal, passed=dict.fromkeys(passed))
        cwd = await trio_as_aio(workdir)(self._state)
        if is_terminal:
            return await self._with_terminal(process, argv, env, cwd, command)
        return await self._without_terminal(process, argv, env, cwd)

    async def _with_terminal(
        self, process: Process, argv: list[str] | str, env: dict[str, str], cwd: Path, command: str | None
    ) -> int:
        width, height, _, _ = process.term_size
        if command is None:
            await self._greet(process)
        child, master, _ = system.spawn_terminal(argv, env, cwd, height=height, width=width)
        self._children.add(child.pid)
        reader = asyncio.ensure_future(_terminal_input(process, master, child.pid))
        output = asyncio.ensure_future(_terminal_output(process, master))
        # A silent command writes nothing that could fail, so the channel's close is awaited separately.
        channel_closed = asyncio.ensure_future(process.channel.wait_closed())
        try:
            both: set[asyncio.Future[None]] = {output, channel_closed}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not output.done():
                return KILLED
            output.result()
            return _exit_code(await trio_as_aio(_wait)(child))
        finally:
            for task in (reader, output, channel_closed):
                task.cancel()
            # No task may still hold the descriptor that is closed here.
            await asyncio.gather(reader, output, channel_closed, return_exceptions=True)
            # A terminal session's processes end with it: the kernel sends SIGHUP once, as for any disconnected line.
            system.close_terminal(master)
            if child.poll() is None:
                asyncio.get_running_loop().trio_as_future(_reap, child)  # type: ignore[attr-defined]
            self._children.discard(child.pid)

    async def _without_terminal(self, process: Process, argv: list[str] | str, env: dict[str, str], cwd: Path) -> int:
        child = await system.start_piped(argv, env, cwd, CHUNK)
        self._children.add(child.pid)
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise OSError("the command has no pipes")
        feeder = asyncio.ensure_future(_pipe_input(process, child.stdin, child.pid))
        outputs = asyncio.gather(_pipe_output(child.stdout, process.stdout), _pipe_output(child.stderr, process.stderr))
        channel_closed = asyncio.ensure_future(process.channel.wait_closed())
        try:
            both: set[asyncio.Future[None] | asyncio.Future[tuple[None, None]]] = {outputs, channel_closed}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not outputs.done():
                # The peer disconnected: the session ends, its command continues (docs/protocol/agent-services.md#ssh).
                self._detach(child, outputs)
                return KILLED
            await outputs
            return _exit_code(await child.wait())
        except asyncio.CancelledError:  # the whole connection broke
            self._detach(child, outputs)
            raise
        finally:
            feeder.cancel()
            channel_closed.cancel()
            if child.returncode is not None:
                self._children.discard(child.pid)

    def _detach(self, child: asyncio.subprocess.Process, outputs: asyncio.Future[tuple[None, None]]) -> None:
        """Let a command without a peer continue; its further writes hit a closed pipe (EPIPE, SIGPIPE).

        Reading its output instead would keep a command that writes without end (`yes`) forever.
        """
        system.close_outputs(child)

        async def finish() -> None:
            await outputs
            await child.wait()
            self._children.discard(child.pid)

        task = asyncio.ensure_future(finish())
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)

    async def _greet(self, process: Process) -> None:
        """Write the banners and the message of the day, for users at a terminal."""
        for banner in self._state.banners:
            if banner.enabled and banner.message.strip():
                process.stdout.write((banner.message.strip() + "\n\n").replace("\n", "\r\n").encode())
        manifest = self._state.manifest
        if manifest is not None and manifest.motd_path:
            text = await trio_as_aio(_message_of_the_day)(self._state.identity.home, Path(manifest.motd_path))
            process.stdout.write(text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


async def _message_of_the_day(home: Path, path: Path) -> bytes:
    """Return the message of the day; empty for a user with `.hushlogin`, or when the disk does not answer: no shell
    waits for it."""
    with trio.move_on_after(DISK_TIMEOUT), contextlib.suppress(NoThreadError):
        return await on_disk(_read_message, home, path, limiter=_MESSAGE_THREADS)
    return b""


def _read_message(home: Path, path: Path) -> bytes:
    try:
        return b"" if (home / ".hushlogin").exists() else read_regular(path, 64 << 10)
    except (OSError, ValueError):  # a zero byte, which no path can hold
        return b""


async def _terminal_output(process: Process, master: int) -> None:
    """Copy the terminal's output until its last writer has exited."""
    readable = _Readiness(master, asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader)
    try:
        while True:
            try:
                data = system.read_terminal(master, 65536)
            except BlockingIOError:
                await readable.wait()
                continue
            except OSError:
                return  # EIO: every process has closed the terminal
            if not data:
                return
            process.stdout.write(data)
            await process.stdout.drain()
    finally:
        readable.close()


async def _terminal_input(process: Process, master: int, pid: int) -> None:
    loop = asyncio.get_running_loop()
    while True:
        data = await _next_input(process, pid, master)
        if data is None:
            continue
        if not data:
            data = b"\x04"  # the peer sent EOF, which a terminal expresses as Ctrl-D
        while data:
            try:
                data = data[system.write_terminal(master, data) :]
            except BlockingIOError:
                writable = _Readiness(master, loop.add_writer, loop.remove_writer)
                await writable.wait()
                writable.close()
            except OSError:
                return
        if process.stdin.at_eof():
            return


async def _pipe_input(process: Process, pipe: asyncio.StreamWriter, pid: int) -> None:
    try:
        while True:
            data = await _next_input(process, pid, None)
            if data is None:
                continue
            if not data:
                break
            pipe.write(data)
            await pipe.drain()
    except (ConnectionError, asyncssh.Error):
        pass  # the command closed its input, or the peer disconnected
    finally:
        pipe.close()


async def _next_input(process: Process, pid: int, master: int | None) -> bytes | None:
    """Return bytes of standard input; b'' at its end; None after a resize, signal or break, which is handled here."""
    try:
        return await process.stdin.read(CHUNK)
    except asyncssh.TerminalSizeChanged as change:
        if master is not None:
            system.resize_terminal(master, change.height, change.width)
    except asyncssh.SignalReceived as received:
        number = getattr(signal, f"SIG{received.signal}", None)
        if number is not None:
            _signal_group(pid, number)
    except asyncssh.BreakReceived:
        pass  # our terminals have no line to break
    return None


async def _pipe_output(pipe: asyncio.StreamReader, channel: asyncssh.SSHWriter[bytes]) -> None:
    """Copy to the peer until either end closes; then the session ends and closes the pipe."""
    while data := await pipe.read(CHUNK):
        try:
            channel.write(data)
            await channel.drain()
        except (asyncssh.Error, BrokenPipeError, ConnectionError):
            return


class _Readiness:
    """Waiter for a descriptor's readiness on the running loop."""

    def __init__(
        self, descriptor: int, add: Callable[[int, Callable[[], None]], None], remove: Callable[[int], bool]
    ) -> None:
        self._descriptor, self._add, self._remove = descriptor, add, remove
        self._future: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        self._future = asyncio.get_running_loop().create_future()
        self._add(self._descriptor, self._on_ready)
        try:
            await self._future
        finally:
            self._remove(self._descriptor)

    def close(self) -> None:
        self._remove(self._descriptor)

    def _on_ready(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


async def _wait(child: subprocess.Popen[bytes]) -> int:
    """Return the child's exit code, without a thread of its own."""
    code = child.poll()
    if code is None:
        try:
            code = await system.wait_for_child(child.pid)
        except ChildProcessError:
            code = UNKNOWN_STATUS
        child.returncode = code
    return code


async def _reap(child: subprocess.Popen[bytes]) -> None:
    """Wait for a child that received SIGHUP; kill it when it stays, or when the agent ends first."""
    try:
        with trio.move_on_after(REAP_GRACE):
            await _wait(child)
    finally:
        if child.poll() is None:
            _signal_group(child.pid, system.KILL)
            with trio.CancelScope(deadline=trio.current_time() + KILL_GRACE, shield=True):
                await _wait(child)


def _signal_group(pid: int, number: int) -> None:
    system.kill_group(pid, number)


def _exit_code(code: int) -> int:
    return code if code >= 0 else KILLED


def _connection_variables(process: Process) -> dict[str, str]:
    variables = {"SSH_CLIENT": "0.0.0.0 0 0", "SSH_CONNECTION": "0.0.0.0 0 0.0.0.0 0"}
    agent = process.channel.get_agent_path()
    if agent:
        variables["SSH_AUTH_SOCK"] = agent
    display = process.channel.get_x11_display()
    if display:
        variables["DISPLAY"] = display
    return variables


def _program(command: str) -> str:
    parts = command.split(maxsplit=1)
    return Path(parts[0]).name if parts else ""


def _report_failure(process: Process, text: str) -> None:
    try:
        process.stderr.write(text.encode(errors="surrogateescape"))  # file names may not be UTF-8
        process.exit(AGENT_FAILURE)
    except (asyncssh.Error, OSError):
        pass  # the peer disconnected


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
