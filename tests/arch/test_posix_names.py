"""Names that exist on POSIX systems only, in modules that run on Windows, too: each use has a reason.

A module with such a name imports and type-checks here, and fails on Windows when the line runs.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("agent", "api", "base", "cli", "client", "domain", "mesh", "net", "rpc", "tailnet", "wireguard")
ONLY_ON_POSIX = ("cli/server/", "cli/command_server/", "agent/platform/posix.py", "agent/devcontainers/")
MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": set(
        "chown fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getuid initgroups killpg "
        "memfd_create mkfifo openpty pidfd_open pipe2 posix_spawn pread pwrite sched_getaffinity sendfile setgid "
        "setpgid setsid setuid splice statvfs sync ttyname uname wait WNOHANG O_CLOEXEC O_DIRECTORY O_NOCTTY "
        "O_NOFOLLOW O_NONBLOCK".split()
    ),
    "signal": set(
        "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH pthread_kill "
        "pthread_sigmask setitimer siginterrupt sigpending sigwait".split()
    ),
    "socket": {"AF_UNIX", "SO_PEERCRED", "SO_REUSEPORT", "SCM_RIGHTS"},
    "trio.socket": {"AF_UNIX", "SO_PEERCRED", "SO_REUSEPORT"},
    "trio.lowlevel": {"FdStream"},
    "trio": {"open_unix_socket"},
    "asyncio": {"open_unix_connection", "start_unix_server"},
    "select": {"poll", "epoll", "kqueue"},
}
UNREACHED = "a process that only POSIX systems start"
GUARDED = "guarded in the same function or module"
REASONS = {
    "agent/reports/vitals.py": GUARDED,
    "agent/upgrade/handover.py": GUARDED,
    "agent/upgrade/signals.py": GUARDED,
    "agent/workspace/children.py": "a descriptor that a program before this one left; only execve leaves any",
    "agent/workspace/sync_socket.py": "the agent has no such socket on Windows (`HAS_SOCKET_FILES`)",
    "base/files/private_files.py": GUARDED,
    "base/host.py": GUARDED,
    "base/open_files.py": GUARDED,
    "cli/agents/reaper.py": "process 1 of a container",
    "cli/agents/sync.py": GUARDED,
    "cli/program/replacement.py": GUARDED,
    "cli/scaletest/ledger.py": GUARDED,
    "cli/templates/push_source.py": GUARDED,
    "client/overlay_wire.py": UNREACHED,
    "client/shared_link.py": UNREACHED,
    "client/standard_streams.py": GUARDED,
    "client/terminal_mode.py": GUARDED,
    "net/kept_connections.py": GUARDED,
}


def posix_names(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in NAMES.get(ast.unparse(node.value), ()):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.append(node.module)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nos.geteuid()", ["os.geteuid"]),
        ("stream = trio.lowlevel.FdStream(0)", ["trio.lowlevel.FdStream"]),
        ("import tty as terminal", ["tty"]),
        ("from pwd import getpwuid", ["pwd"]),
        ("os.getpid()\nkind.poll()\nself.signal.SIGHUP", []),
    ],
)
def test_posix_names_are_recognized(text: str, expected: list[str]) -> None:
    assert posix_names(text) == expected


def test_posix_names_have_reasons() -> None:
    found = {
        path.relative_to(ROOT / "coder").as_posix(): names
        for room in ROOMS
        for path in (ROOT / "coder" / room).rglob("*.py")
        if (names := posix_names(path.read_text()))
    }
    found = {name: names for name, names in found.items() if not name.startswith(ONLY_ON_POSIX)}
    assert {name: names for name, names in found.items() if name not in REASONS} == {}
    assert REASONS.keys() <= found.keys(), "a reason without a use"


WINDOWS_ONLY = {"msvcrt", "winreg", "_winapi", "winpty", "nt"}


def needs_windows(tree: ast.Module) -> bool:
    """Whether a module names Windows' libraries outside of its functions."""
    return any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "ctypes.WinDLL"
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
    )


def test_windows_modules_fail_as_missing() -> None:
    """The build imports every module, and passes over those that lack another one."""
    found = {
        path.relative_to(ROOT).as_posix(): tree
        for path in (ROOT / "coder").rglob("*.py")
        if "WinDLL" in (text := path.read_text()) and needs_windows(tree := ast.parse(text))
    }
    assert "coder/client/windows_console.py" in found
    for name, tree in found.items():
        imported = {each.name for node in tree.body if isinstance(node, ast.Import) for each in node.names}
        assert imported & WINDOWS_ONLY, name
