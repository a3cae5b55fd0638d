"""Commands behave the same in the command server and in a process of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coder.cli.command_server.handover import HIGH
from coder.cli.command_server.served import NEVER_SERVED
from coder.cli.command_table import ALIASES, COMMANDS
from tests.kit.programs.command_line import Terminal
from tests.kit.programs.single_binary import Launcher

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the launcher is C")
WAYS = ("cold", "warm")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    # Socket paths must be short.
    created = Launcher(Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp")))
    created.start_server()
    created.ways()
    yield created
    created.close()


def _run(launcher: Launcher, way: str, *words: str | bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    env = {**launcher.env(way), **more.pop("env", {})}
    return subprocess.run(
        [launcher.path, "probe", *words], env=env, capture_output=True, check=False, timeout=60, **more
    )


def _run_both(launcher: Launcher, *words: str | bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command both ways, check that the results are the same, and return the result."""
    cold, warm = (_run(launcher, way, *words, **more) for way in WAYS)
    assert launcher.ways() == list(WAYS), (cold, warm)
    if b"Traceback" not in cold.stderr:
        assert warm.stderr == cold.stderr
    assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout.replace(b"CODER_NO_COMMAND_SERVER", b"?"))
    return warm


@pytest.mark.parametrize("code", [0, 1, 3, 130, 255, 256])
def test_exit_codes(launcher: Launcher, code: int) -> None:
    assert _run_both(launcher, "exit", str(code), stdin=subprocess.DEVNULL).returncode == code & 0xFF


def test_owner_of_command(launcher: Launcher) -> None:
    """Editors find the log and the network file of their connection by the pid of their SSH client."""
    assert _run_both(launcher, "parent", stdin=subprocess.DEVNULL).stdout == f"{os.getpid()}\n".encode()


def test_defect_text(launcher: Launcher) -> None:
    done = _run_both(launcher, "raise", stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert b"internal error: on purpose" in done.stderr and b"Traceback" not in done.stderr
    done = _run_both(launcher, "raise", stdin=subprocess.DEVNULL, env={"CODER_VERBOSE": "true"})
    assert b"LookupError: on purpose" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP, signal.SIGABRT])
def test_command_killed_by_signal(launcher: Launcher, number: signal.Signals) -> None:
    assert _run_both(launcher, "die", str(int(number)), stdin=subprocess.DEVNULL).returncode == -number


def _ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.umask(0o27)


@pytest.mark.parametrize("prepare", [None, _ignore_hangups], ids=["plain", "nohup"])
def test_process_state_is_inherited(launcher: Launcher, tmp_path: Path, prepare: Callable[[], None] | None) -> None:
    words: list[str | bytes] = ["place", "a b", "--", b"\xff\xfe", "ü"]
    env = {
        "TZ": "Asia/Tokyo",
        "ODD": "line\nline",
        "PROBE_X": "=",
        "CODER_SESSION_TOKEN": "t",
        "CODER_NO_COMMAND_SERVER": "",
    }
    output = []
    for way in WAYS:
        if way == "cold":
            env["CODER_NO_COMMAND_SERVER"] = "1"
        done = _run(launcher, way, *words, cwd=tmp_path, preexec_fn=prepare, env=env, stdin=subprocess.DEVNULL)
        output.append(done.stdout.replace(b"b'CODER_NO_COMMAND_SERVER', b'1'", b"b'CODER_NO_COMMAND_SERVER', b''"))
        env["CODER_NO_COMMAND_SERVER"] = ""
    assert launcher.ways() == list(WAYS)
    assert output[0] == output[1]
    assert str(tmp_path).encode() in output[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_signals_are_forwarded(launcher: Launcher, number: signal.Signals) -> None:
    codes = []
    for way in WAYS:
        argv: list[Path | str] = [launcher.path, "probe", "wait"]
        with subprocess.Popen(argv, env=launcher.env(way), stdout=subprocess.PIPE, preexec_fn=_listen_again) as it:  # noqa: PLW1509
            assert it.stdout is not None
            assert it.stdout.readline() == b"waiting\n"
            it.send_signal(number)
            codes.append(it.wait(60))
    assert launcher.ways() == list(WAYS)
    assert codes[0] == codes[1] == (130 if number in (signal.SIGINT, signal.SIGTERM) else -number)


def _listen_again() -> None:
    """A background runner ignores SIGINT and SIGQUIT, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def test_reader_closes_early(launcher: Launcher) -> None:
    codes = []
    for way in WAYS:
        argv: list[Path | str] = [launcher.path, "probe", "flood"]
        with subprocess.Popen(argv, env=launcher.env(way), stdout=subprocess.PIPE) as it:
            assert it.stdout is not None
            it.stdout.read(100)
            it.stdout.close()
            codes.append(it.wait(60))
    assert launcher.ways() == list(WAYS)
    assert codes == [141, 141]


def test_100_mb_of_input(launcher: Launcher) -> None:
    size = 100 << 20
    for way in WAYS:
        with subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as source:
            done = _run(launcher, way, "read", stdin=source.stdout)
        assert done.stdout == f"{size}\n".encode()
    assert launcher.ways() == list(WAYS)


@pytest.mark.parametrize(("number", "ways"), [(9, WAYS), (HIGH, ("cold", "cold"))])
def test_files_beyond_the_standard_ones(launcher: Launcher, number: int, ways: tuple[str, ...]) -> None:
    """A process substitution has such descriptors. The command runs cold if they collide with the command server's."""
    for way in WAYS:
        read, write = os.pipe()
        os.write(write, b"from a process substitution")
        os.close(write)
        moved = "" if read == number else f"{number}<&{read} {read}<&-"
        argv: list[str | os.PathLike[str]] = [
            "bash",
            "-c",
            f'exec "$@" {moved}',
            "bash",
            launcher.path,
            "probe",
            "descriptor",
            str(number),
        ]
        done = subprocess.run(
            argv, env=launcher.env(way), capture_output=True, check=False, timeout=60, pass_fds=[read]
        )
        os.close(read)
        assert done.stdout == b"b'from a process substitution'\n", done.stderr
    assert launcher.ways() == list(ways)


# ---- terminals


class Shell(Terminal):
    """A shell with job control."""

    def __init__(self, env: dict[str, str]) -> None:
        # The probe's session shows how it runs; the shell has a separate session.
        super().__init__(["sh", "-c", "PROBE_SID=$$ exec bash --norc -i"], {**env, "PS1": "$ "})
        self.expect(rb"\$ ")  # earlier input can be lost


@pytest.fixture(params=WAYS)
def terminal(request: pytest.FixtureRequest, launcher: Launcher) -> Iterator[Shell]:
    created = Shell({**launcher.env(request.param), "PATH": f"{launcher.folder}:{os.environ['PATH']}"})
    try:
        yield created
    finally:
        created.close()
    assert set(launcher.ways()) == {request.param}


def test_ctrl_c(terminal: Shell) -> None:
    terminal.type("coder-first probe wait; echo code=$?\n")
    terminal.expect(rb"waiting\r\n")
    terminal.type("\x03")
    terminal.expect(rb"code=130\r\n")


def test_ctrl_z_and_fg(terminal: Shell) -> None:
    terminal.type("coder-first probe line; echo code=$?\n")
    terminal.expect(rb"ready\r\n")
    terminal.type("\x1a")
    terminal.expect(rb"Stopped")
    terminal.type("jobs | sed s/Stopped/asleep/\n")
    terminal.expect(rb"asleep +coder-first")
    terminal.type("fg\n")
    terminal.expect(rb"coder-first probe line")
    terminal.type("hello\n")
    terminal.expect(rb"got hello\r\n")


def test_the_size_of_the_window(terminal: Shell) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("4H", 33, 101, 0, 0))
    terminal.type("coder-first probe size\n")
    terminal.expect(rb"33x101\r\n")
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("4H", 44, 99, 0, 0))
    terminal.expect(rb"44x99\r\n")
    terminal.type("\x03")


def test_background_command_runs_cold(launcher: Launcher) -> None:
    created = Shell({**launcher.warm, "PATH": f"{launcher.folder}:{os.environ['PATH']}"})
    created.type("coder-first probe exit 0 & wait; echo do''ne\n")
    created.expect(rb"done\r\n")
    created.close()
    assert launcher.ways() == ["cold"]


# ---- life cycle of the server


def test_killed_server_keeps_commands(launcher: Launcher) -> None:
    argv: list[Path | str] = [launcher.path, "probe", "line"]
    with subprocess.Popen(argv, env=launcher.warm, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as it:
        assert it.stdout is not None and it.stdin is not None
        assert it.stdout.readline() == b"ready\n"
        for pid in launcher.servers():
            os.kill(pid, signal.SIGKILL)
        output, _ = it.communicate(b"hello\n", timeout=60)
    assert (output, it.returncode) == (b"got hello\n", 0)
    assert launcher.ways() == ["warm"]
    launcher.until(lambda: not launcher.servers())
    launcher.start_server()  # the next command runs cold, despite the stale socket
    launcher.until(lambda: bool(launcher.servers()))
    assert launcher.ways() == ["cold"]
    launcher.until(lambda: _run(launcher, "warm", "exit", "0").returncode == 0 and launcher.ways() == ["warm"])


def test_killed_launcher_kills_command(launcher: Launcher) -> None:
    argv: list[Path | str] = [launcher.path, "probe", "wait"]
    with subprocess.Popen(argv, env=launcher.warm, stdout=subprocess.PIPE) as it:
        assert it.stdout is not None
        it.stdout.readline()
        it.kill()
        assert it.stdout.read() == b""  # when the last process that could write exits
    assert launcher.ways() == ["warm"]


def test_version_has_separate_server(launcher: Launcher) -> None:
    """During an upgrade, a running command continues, and the new program does not use the old server."""
    argv: list[Path | str] = [launcher.path, "probe", "line"]
    with subprocess.Popen(argv, env=launcher.warm, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as it:
        assert it.stdout is not None
        it.stdout.readline()
        assert launcher.ways() == ["warm"]
        newer = launcher.compile("second")
        newer.replace(launcher.path)
        _run(launcher, "warm", "exit", "0")
        assert launcher.ways() == ["cold"]
        output, _ = it.communicate(b"still\n", timeout=60)
        assert output == b"got still\n"
    launcher.until(lambda: len(launcher.sockets()) == 2)
    launcher.compile("first")


@pytest.mark.parametrize("change", ["configuration", "limits", "locale"])
def test_other_identity_is_rejected(launcher: Launcher, change: str, tmp_path: Path) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))

    changes: dict[str, dict[str, Any]] = {
        "configuration": {"env": {"CODER_CONFIG_DIR": str(tmp_path)}},
        "locale": {"env": {"LC_ALL": "C"}},
        "limits": {"preexec_fn": limit},
    }
    more = changes[change]
    more.setdefault("env", {})["XDG_RUNTIME_DIR"] = str(launcher.runtime)
    before = set(launcher.sockets())
    _run(launcher, "warm", "exit", "0", **more)
    assert launcher.ways() == ["cold"]
    launcher.until(lambda: len(launcher.sockets()) == len(before) + 1)


def test_shared_directory_is_rejected(launcher: Launcher, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    _run(launcher, "warm", "exit", "0", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert launcher.ways() == ["cold"]
    assert not (tmp_path / "coder").exists()


def _without_runtime(launcher: Launcher, **changes: str) -> dict[str, str]:
    return {name: value for name, value in launcher.warm.items() if name != "XDG_RUNTIME_DIR"} | changes


@pytest.fixture
def homes() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cs-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("named", ["CODER_CONFIG_DIR", "XDG_CONFIG_HOME", "HOME"])
def test_configuration_folder_replaces_runtime(launcher: Launcher, homes: Path, named: str) -> None:
    """A user without a runtime directory, as in a container, has a command server, too."""
    program = launcher.compile("homes", f'-DRUNTIME_ROOT="{homes}/none"')
    below = {"CODER_CONFIG_DIR": "", "XDG_CONFIG_HOME": "coderv2", "HOME": ".config/coderv2"}[named]
    env = _without_runtime(launcher, CODER_CONFIG_DIR="", XDG_CONFIG_HOME="", HOME=str(homes / "h"))
    env |= {named: str(homes / "x"), "CODER_COMMAND_SERVER_IDLE": "60"}
    folder = homes / "x" / below
    words = [str(program), "probe", "exit", "0"]
    subprocess.run(words, env=env, check=True, stderr=subprocess.DEVNULL)
    assert not folder.exists() and launcher.ways() == ["cold"], "no configuration, no directory"
    folder.mkdir(parents=True, mode=0o755)
    try:
        subprocess.run(words, env=env, check=True, stderr=subprocess.DEVNULL)
        launcher.until(lambda: len(launcher.sockets(folder / "run")) == 1)
        subprocess.run(words, env=env, check=True, stderr=subprocess.DEVNULL)
        assert launcher.ways() == ["cold", "warm"]
        [path] = launcher.sockets(folder / "run")
        assert (folder / "run").stat().st_mode & 0o777 == 0o700 and path.stat().st_mode & 0o777 == 0o600
    finally:
        for path in launcher.sockets(folder / "run"):
            path.unlink()  # ends its server


@pytest.mark.parametrize("case", ["writable", "shared", "link", "long"])
def test_unsafe_configuration_folder_is_rejected(launcher: Launcher, homes: Path, case: str) -> None:
    program = launcher.compile("homes", f'-DRUNTIME_ROOT="{homes}/none"')
    folder = homes / ("x" * (80 if case == "long" else 1))
    folder.mkdir(mode=0o700)
    if case == "writable":
        folder.chmod(0o777)
    elif case == "shared":
        (folder / "run").mkdir()
        (folder / "run").chmod(0o755)
    elif case == "link":
        (homes / "elsewhere").mkdir(mode=0o700)
        (folder / "run").symlink_to(homes / "elsewhere")
    env = _without_runtime(launcher, CODER_CONFIG_DIR=str(folder))
    for _ in range(2):
        subprocess.run([program, "probe", "exit", "0"], env=env, check=True, stderr=subprocess.DEVNULL)
    assert launcher.ways() == ["cold", "cold"]
    assert not launcher.sockets(folder / "run") and not launcher.sockets(homes / "elsewhere")


def test_sockets_are_private(launcher: Launcher) -> None:
    for path in launcher.sockets():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_server_holds_no_token(launcher: Launcher) -> None:
    _run(launcher, "warm", "exit", "0", env={"CODER_SESSION_TOKEN": "very-secret"})
    for pid in launcher.servers():
        assert b"very-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    launcher.ways()


def test_launcher_selects_served_commands(tmp_path: Path) -> None:
    launcher = Launcher(Path(tempfile.mkdtemp(prefix="cs-", dir="/tmp")))
    asks_all = launcher.program.read_text().replace("export ", "export PROBE_SERVE_ALL=1 ")
    launcher.program.write_text(asks_all)
    try:
        launcher.start_server()
        launcher.program.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/cold\n')
        words = {name.split(" ")[0] for name in [*COMMANDS, *ALIASES]}
        for word in sorted(words):
            subprocess.run(
                [launcher.path, word, "--help"], env=launcher.warm, capture_output=True, check=True, timeout=60
            )
    finally:
        launcher.close()
    assert words >= NEVER_SERVED
    assert set((tmp_path / "cold").read_text().split()) == NEVER_SERVED
