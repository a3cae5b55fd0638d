# mypy: disable-error-code="attr-defined,import-untyped,import-not-found,name-defined"
"""Users, processes, terminals and files of Windows 10 and later.

Processes end with the agent by a job object, and one by one with their descendants: Windows has no process groups.
"""

from __future__ import annotations

import _winapi
import codecs
import contextlib
import ctypes
import msvcrt
import ntpath
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from pathlib import Path
from typing import Any

import psutil
import trio
import winpty
from trio_asyncio import trio_as_aio

from coder.agent.platform.batch_file import batch_file
from coder.base.files.windows_access import foreign_writer

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)


def _start_flags() -> int:
    """Return the creation flags of children: no window appears, and Ctrl-Break can reach a child of a console."""
    has_console = bool(_kernel32.GetConsoleWindow())
    return int(subprocess.CREATE_NEW_PROCESS_GROUP | (0 if has_console else subprocess.CREATE_NO_WINDOW))


START: dict[str, Any] = {"creationflags": _start_flags()}
"""Arguments of subprocess calls that make a child the leader of its own group."""
KILL, HANGUP, TERMINATE = 9, 1, int(signal.SIGTERM)
HAS_SOCKET_FILES = False
"Python for Windows has no socket files."
HAS_EXECVE = False
"Windows has no execve that keeps the process: a newer program is a child (coder/agent/upgrade/supervisor.py)."
PROGRAM_SUFFIX = ".exe"
SHELL_OPTION = "/c"
SHELLS = ("pwsh.exe", "powershell.exe", "cmd.exe")
"""Shells in the order of preference, as the original's agent has them (usershell_windows.go)."""
_KILLED = 1
"Exit code of a process that is ended from outside."
_CANCELLED = 0xC000013A - (1 << 32)
"STATUS_CONTROL_C_EXIT, as subprocess returns it."
_SYNCHRONIZE, _QUERY = 0x100000, 0x1000


def find_user() -> tuple[str, Path, str]:
    """Return name, home and shell."""
    name = os.environ.get("USERNAME") or "user"
    home = Path(os.environ.get("USERPROFILE") or Path.home())
    shell = next((found for shell in SHELLS if (found := shutil.which(shell))), os.environ.get("COMSPEC", "cmd.exe"))
    return name, home, shell


def user_variables(name: str, home: Path, shell: str) -> dict[str, str]:
    """Return the variables of the user; HOME is for programs from POSIX systems, as git and ssh."""
    return {"HOME": str(home), "USERPROFILE": str(home), "USERNAME": name, "USER": name, "LOGNAME": name}


def shell_command(shell: str, command: str | None) -> list[str] | str:
    """Return the command line of a shell, or of a shell with a command. cmd.exe does not split its arguments as other
    programs do, so its command stays as it is."""
    if not command:
        return [shell]
    if ntpath.basename(shell).lower() == "cmd.exe":
        return f'"{shell}" /d /s /c "{command}"'
    return [shell, SHELL_OPTION, command]


# Processes


class _BasicLimits(ctypes.Structure):
    _fields_ = [
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    ]


class _ExtendedLimits(ctypes.Structure):
    _fields_ = [
        ("Basic", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    ]


_KILL_ON_CLOSE, _EXTENDED = 0x2000, 9


def contain_children() -> None:
    """Put this process into a job whose processes end with it, however it ends. Raises OSError."""
    _kernel32.CreateJobObjectW.restype = wintypes.HANDLE
    job = wintypes.HANDLE(_kernel32.CreateJobObjectW(None, None))  # open as long as the process
    limits = _ExtendedLimits()
    limits.Basic.LimitFlags = _KILL_ON_CLOSE
    _kernel32.GetCurrentProcess.restype = wintypes.HANDLE
    set_limits = _kernel32.SetInformationJobObject(job, _EXTENDED, ctypes.byref(limits), ctypes.sizeof(limits))
    if not set_limits or not _kernel32.AssignProcessToJobObject(job, wintypes.HANDLE(_kernel32.GetCurrentProcess())):
        raise ctypes.WinError(ctypes.get_last_error())


def kill_group(pid: int, number: int) -> None:
    """End a child with its descendants; interrupt it for SIGINT, where it shares our console."""
    if number == signal.SIGINT and not START["creationflags"] & subprocess.CREATE_NO_WINDOW:
        try:
            os.kill(pid, signal.CTRL_BREAK_EVENT)
        except OSError:
            pass  # already exited
        return
    try:
        process = psutil.Process(pid)
        group = [*process.children(recursive=True), process]
    except psutil.Error:
        return  # already exited
    for each in reversed(group):  # the child first, so that it starts no further ones
        try:
            each.kill()
        except psutil.Error:
            continue


async def wait_for_child(pid: int) -> int:
    """Wait for a process; return its exit code. Raises ChildProcessError when it does not exist."""
    try:
        handle = _winapi.OpenProcess(_SYNCHRONIZE | _QUERY, False, pid)
    except OSError as error:
        raise ChildProcessError(f"no child process {pid}") from error
    try:
        await trio.lowlevel.WaitForSingleObject(handle)
        return int(_winapi.GetExitCodeProcess(handle))
    finally:
        _winapi.CloseHandle(handle)


class _Input:
    """Standard input of a command, as asyncio's StreamWriter."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream, self._pending = stream, bytearray()

    def write(self, data: bytes) -> None:
        self._pending += data

    async def drain(self) -> None:
        data, self._pending = bytes(self._pending), bytearray()
        try:
            await trio_as_aio(self._stream.send_all)(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise BrokenPipeError(str(error)) from error

    def close(self) -> None:
        self._stream.close()


class _Output:
    """Output of a command, as asyncio's StreamReader."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream

    async def read(self, size: int) -> bytes:
        try:
            return bytes(await trio_as_aio(self._stream.receive_some)(size))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def close(self) -> None:
        self._stream.close()


class _Piped:
    """Command with pipes, as asyncio's Process: trio-asyncio starts no processes on Windows."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: S101
        self._process = process
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = _Input(process.stdin), _Output(process.stdout), _Output(process.stderr)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return int(await trio_as_aio(self._process.wait)())


async def start_piped(argv: Sequence[str] | str, env: Mapping[str, str], cwd: Path, limit: int) -> _Piped:
    """Start a command with three pipes, on the asyncio loop. Raises OSError."""

    async def start() -> trio.Process:
        pipe = subprocess.PIPE
        return await trio.lowlevel.open_process(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, **START)

    return _Piped(await trio_as_aio(start)())


def close_outputs(process: _Piped) -> None:
    """Close our ends of a command's output; its further writes fail."""
    process.stdout.close()
    process.stderr.close()


def output_encoding(data: bytes | bytearray, *, is_cut: bool = False) -> str:
    """Return the encoding of a program's output: UTF-8 where it is valid, else the code page of consoles ("oem"), which
    cmd.exe and most programs of Windows use for pipes. `is_cut`: the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, not is_cut)
    except UnicodeDecodeError:
        return "oem"
    return "utf-8"


def read_available(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    """Return nothing: a read of the pipe is already under way."""
    return b""


# Terminals. A terminal is a socket, which threads connect to the pseudo-console: Trio waits for sockets.


class _Terminal:
    """Pseudo-console with its program."""

    def __init__(self, console: winpty.PTY, ours: socket.socket, theirs: socket.socket) -> None:
        self.console, self.ours, self._theirs = console, ours, theirs
        for run in (self._copy_output, self._copy_input):
            threading.Thread(target=run, daemon=True).start()

    def _copy_output(self) -> None:
        try:
            while text := self.console.read(blocking=True):
                self._theirs.sendall(text.encode("utf-8", "replace"))
        except (winpty.WinptyError, OSError):
            pass  # the program has exited, or the terminal was closed
        finally:
            self._shut(socket.SHUT_WR)

    def _copy_input(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while data := self._theirs.recv(65536):
                if text := decoder.decode(data):
                    self.console.write(text)
        except (winpty.WinptyError, OSError):
            pass
        finally:
            self._shut(socket.SHUT_RD)

    def _shut(self, how: int) -> None:
        try:
            self._theirs.shutdown(how)
        except OSError:
            pass  # both ends are closed

    def close(self) -> None:
        self.ours.close()
        self.console.cancel_io()


class _Spawned:
    """Program of a terminal, as subprocess.Popen."""

    def __init__(self, console: winpty.PTY) -> None:
        self._console = console
        self.pid = int(console.pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and not self._console.isalive():
            self.returncode = int(self._console.get_exitstatus() or 0)
        return self.returncode


_terminals: dict[int, _Terminal] = {}
BACKEND: int | None = None
"""Back end of pywinpty; None chooses ConPTY, which every supported Windows has."""


def spawn_terminal(
    argv: Sequence[str] | str, env: Mapping[str, str], cwd: Path, *, height: int, width: int
) -> tuple[_Spawned, int, str]:
    """Start a program on a new pseudo-console. Returns (process, terminal, terminal's name). Raises OSError."""
    line = argv if isinstance(argv, str) else subprocess.list2cmdline(argv)
    program, rest = _split(line)
    found = shutil.which(program, path=env.get("PATH") or env.get("Path"))
    if found is None:
        raise FileNotFoundError(2, "no such program", program)
    variables = "".join(f"{name}={value}\0" for name, value in {**env, "SSH_TTY": "windows-pty"}.items())
    try:
        console = winpty.PTY(width or 80, height or 24, backend=BACKEND)
        console.spawn(found, cmdline=rest, cwd=str(cwd), env=variables)
    except winpty.WinptyError as error:
        raise OSError(5, f"no pseudo-console: {error}") from error
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    terminal = _terminals[ours.fileno()] = _Terminal(console, ours, theirs)
    return _Spawned(console), terminal.ours.fileno(), "windows-pty"


def _split(line: str) -> tuple[str, str]:
    """Return the program of a command line, and the rest with the space before it."""
    if line.startswith('"'):
        program, _, rest = line[1:].partition('"')
        return program, rest
    program, space, rest = line.partition(" ")
    return program, space + rest


def resize_terminal(master: int, height: int, width: int) -> None:
    """Set the size of the pseudo-console. Sizes are clamped to the call's range."""
    height, width = (max(1, min(number, 0x7FFF)) for number in (height, width))
    _terminals[master].console.set_size(width, height)


def read_terminal(master: int, size: int) -> bytes:
    """Return output; empty or OSError once the program has exited. Raises BlockingIOError."""
    return _terminals[master].ours.recv(size)


def write_terminal(master: int, data: bytes) -> int:
    """Return the number of accepted bytes. Raises BlockingIOError, OSError."""
    return _terminals[master].ours.send(data)


def close_terminal(master: int) -> None:
    _terminals.pop(master).close()


# Newer programs of this agent


def adopt_inherited(number: int, flags: int) -> int:
    """Return a descriptor of the handle that the parent process passed as `number`; children do not inherit it."""
    os.set_handle_inheritable(number, False)
    return int(msvcrt.open_osfhandle(number, flags | os.O_NOINHERIT))


def start_successor(
    argv: Sequence[str], env: Mapping[str, str], variable: str, descriptor: int, outputs: tuple[int, int]
) -> subprocess.Popen[bytes]:
    """Start a program with a pipe as its input, and with `descriptor`, whose handle for it is in `variable`. It shares
    our console, if there is one. Raises OSError."""
    handle = msvcrt.get_osfhandle(descriptor)
    os.set_handle_inheritable(handle, True)
    given = {**env, variable: str(handle)}
    flags = START["creationflags"] & subprocess.CREATE_NO_WINDOW
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": outputs[0], "stderr": outputs[1]}
    return subprocess.Popen(argv, env=given, close_fds=False, creationflags=flags, **pipes)


def why_not_private(folder: Path) -> str:
    """Return why other users could replace what is in a folder; "" if they cannot. Raises OSError."""
    return foreign_writer(folder)


def lock(descriptor: int) -> None:
    """Lock a file until its descriptor is closed. Raises BlockingIOError when another process holds it."""
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(error.errno, error.strerror) from error


def retire_program(path: Path, target: str) -> None:
    """Remove an earlier program: shells end with their agent on Windows. One that still runs stays."""
    with contextlib.suppress(PermissionError):
        path.unlink(missing_ok=True)


# Files. A user's folders are closed to other users by their access lists, which new files inherit.


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for state that outlives a user's programs."""
    return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "coder-agent"


def user_mark() -> str:
    """Return a text that names this user in file names."""
    return "".join(letter for letter in os.environ.get("USERNAME", "user") if letter.isalnum())


def is_own(status: os.stat_result) -> bool:
    """Return True: `stat` has no owners on Windows."""
    return True


def others_can_replace(folder: os.stat_result) -> bool:
    """Return False: `stat` shows no access lists."""
    return False


def is_protected(folder: os.stat_result) -> bool:
    """Return False: `stat` shows no access lists, so a private folder is used."""
    return False


def close_to_others(path: Path, status: os.stat_result) -> None:
    """Do nothing: the folder has the access list of the one above, of the user."""


def link_program(program: Path, link: Path) -> None:
    """Give a program another name; links need a privilege on Windows, so it is a batch file."""
    batch, content = link.with_suffix(".cmd"), batch_file(str(program), "oem")
    if not batch.exists() or batch.read_bytes() != content:
        batch.write_bytes(content)


_places = threading.Lock()
"Held between moving a file's position and using it."


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    with _places:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    with _places:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


def sftp_path(path: bytes, base: bytes) -> bytes:
    """Return the local path of a path on the wire, where drives are folders of the root: /C:/Users."""
    if path[:1] == b"/" and path[2:3] == b":" and path[1:2].isalpha():
        return path[1:] if len(path) > 3 else path[1:3] + b"/"
    if path[1:2] == b":":
        return path
    return base[:2] + path if path.startswith(b"/") else base.replace(b"\\", b"/") + b"/" + path


def wire_path(path: bytes) -> bytes:
    """Return the path on the wire of a local one."""
    path = path.replace(b"\\", b"/")
    return b"/" + path if path[1:2] == b":" else path


def load_average() -> float | None:
    """Return None: Windows has no load average."""
    return None
