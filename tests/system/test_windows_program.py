"""The built Windows program under Wine: the command line, and an agent attached to a server on this machine.

PowerShell is not to be had here; the line that attaches a machine is executed by an interpreter of the test kit.
Terminals go by WinPTY, because nothing comes out of Wine's ConPTY. Real Windows is not tested.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import trio

from coder.base.version import BUILD_VERSION
from coder.net.websocket import WebSocketStream
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.agents.terminals import open_terminal, read_until, resize, type_text
from tests.kit.paths import ROOT
from tests.kit.programs.releases import KEY, NEWER, Mirror
from tests.kit.server.server_process import Loopback, open_loopback, program_under_test
from tests.kit.wine.attached_program import attached, over_ssh, ssh_words
from tests.kit.wine.machine import BUILT, InstalledProgram, missing_tools, windows_path
from tests.kit.wine.programs import install_program

sys.path.insert(0, str(ROOT / "build"))
from desktop.hot_modules import hot_modules

PROGRAM = "coder-windows-amd64.exe"
CLIENTS = {"ours": program_under_test(), "original": [os.environ.get("CODER_TEST_ORIGINAL_CLI", "")]}
"""Command lines of this machine. The original's is not part of this project: the variable names a program."""
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BUILT, reason="a built program for Windows is run there"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}"),
]


def test_version_runs(installed: InstalledProgram) -> None:
    done = installed.machine.run(
        "wine", str(installed.program), "version", env={"CODER_BINARY_CACHE": windows_path(installed.cache)}
    )
    assert done.stdout.startswith(b"Coder v2.34"), done.stderr


def test_mesh_is_compiled(installed: InstalledProgram) -> None:
    """All modules in one process, and some of them first in their own, because compiled modules import in cycles."""
    names = [name.removesuffix(".py").replace("/", ".") for name in hot_modules()]
    for given in (names, *([name] for name in names[:: len(names) // 4])):
        env = {"CODER_BINARY_CACHE": windows_path(installed.cache), "WINE_IMPORTS": " ".join(given)}
        done = installed.machine.run("wine", str(installed.program), "version", env=env)
        found = done.stdout.decode().split()
        plain = [path for path in found if not path.endswith(".pyd")]
        assert (len(found), plain) == (len(given), []), done.stderr


@pytest.mark.parametrize(("content", "code"), [(b"released", 0), (b"changed", 1)])
def test_release_is_verified(content: bytes, code: int, installed: InstalledProgram, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "file.minisig").write_text(KEY.minisign(b"released", "of a test"))
    command = [str(installed.program), "verify", windows_path(tmp_path / "file"), "--key", KEY.public_line]
    done = installed.machine.run("wine", *command, env={"CODER_BINARY_CACHE": windows_path(installed.cache)})
    assert done.returncode == code and (code or b"of a test" in done.stdout), done.stderr


def test_damaged_program_is_named(installed: InstalledProgram, tmp_path: Path) -> None:
    data = bytearray(Path(BUILT).read_bytes())
    data[len(data) // 2] ^= 1
    damaged = tmp_path / "coder.exe"
    damaged.write_bytes(data)
    done = installed.machine.run(
        "wine", str(damaged), "version", env={"CODER_BINARY_CACHE": windows_path(tmp_path / "c")}
    )
    assert done.returncode == 127 and b"is damaged; download it again" in done.stderr
    assert not list((tmp_path / "c").glob("*/modules.bin"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted by root")
def test_full_disk_is_named(installed: InstalledProgram, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(tmp_path)], check=True)
    try:
        env = {"CODER_BINARY_CACHE": windows_path(tmp_path)}
        done = installed.machine.run("wine", str(installed.program), "version", env=env)
        assert done.returncode == 127 and b"free some space, or set CODER_BINARY_CACHE" in done.stderr, done.stderr
        assert not list(tmp_path.glob("*/.complete"))
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


async def test_windows_amd64_attaches_under_wine(installed: InstalledProgram, tmp_path: Path) -> None:
    async with attached(installed, tmp_path) as view:
        done = await over_ssh(view, tmp_path, "ssh", "dev", 'echo "a b" %CODER%& echo wrong 1>&2& exit 7')
        assert done.stdout.split() == [b'"a', b'b"', b"true"] and done.stderr.strip() == b"wrong"
        assert done.returncode == 7
        # Its program lies in a folder with a space and a letter that is not ASCII.
        own = await over_ssh(view, tmp_path, "ssh", "dev", "echo %GIT_SSH_COMMAND%& coder version")
        assert b"/sshd.exe' gitssh --" in own.stdout and b"\\" not in own.stdout.splitlines()[0], own
        assert b"Coder v2.34" in own.stdout, own
        shell = b"echo in a terminal %CODER%\rexit 5\r"
        terminal = await over_ssh(view, tmp_path, "ssh", "-tt", "dev", data=shell)
        assert b"in a terminal true" in terminal.stdout
        session = {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token}
        ping = [*program_under_test(), "ping", "dev", "-n", "1"]
        pinged = await trio.run_process(ping, env={**os.environ, **session}, capture_stdout=True, check=False)
        assert pinged.returncode == 0 and b"pong from dev" in pinged.stdout, pinged.stdout
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(echo, view, tmp_path / str(number), str(number))


async def echo(view: AgentWorld, folder: Path, word: str) -> None:
    """One of several sessions at a time."""
    folder.mkdir()
    done = await over_ssh(view, folder, "ssh", "dev", f"echo {word}")
    assert done.stdout.split() == [word.encode()], done


async def test_lost_agents_have_causes(installed: InstalledProgram, tmp_path: Path) -> None:
    """A killed agent says so when it is back, by its flight record; a frozen one goes on."""
    machine = installed.machine
    for path in machine.drive.glob("users/*/AppData/Local/coder-agent/*.flight"):
        path.unlink()  # of agents of other tests

    def agents() -> list[int]:
        return machine.processes(installed.program.name)

    async with attached(installed, tmp_path) as view:

        async def recorded() -> bool:
            return any(
                any(path.read_bytes()) for path in machine.drive.glob("users/*/AppData/Local/coder-agent/*.flight")
            )

        async def told(count: int) -> list[dict[str, Any]]:
            found = (await view.world.get(f"/api/v2/workspaceagents/{view.agent_id}/disconnects")).json()
            return found if len(found) == count and found[0]["told"] else []

        await eventually(recorded)
        for pid in agents():
            os.kill(pid, signal.SIGKILL)
        env = {"CODER_AGENT_TOKEN": view.token, "CODER_AGENT_URL": view.world.url, "TEMP": "C:\\windows\\temp"}
        async with machine.agent(installed.program, installed.cache, env, tmp_path / "second"):
            (killed,) = await eventually(partial(told, 1), seconds=120)
            assert (killed["cause"], killed["ended"]) == ("killed", "closed"), killed
            for pid in agents():
                os.kill(pid, signal.SIGSTOP)
            await until_status(view, "disconnected")
            for pid in agents():
                os.kill(pid, signal.SIGCONT)
            frozen, _ = await eventually(partial(told, 2), seconds=120)
            assert (frozen["cause"], frozen["ended"]) == ("slept", "silent"), frozen
            await until_status(view, "connected")


async def until_status(view: AgentWorld, status: str) -> None:
    async def reached() -> bool:
        return bool((await view.agent())["status"] == status)

    await eventually(reached, seconds=120)


async def test_agent_carries_100_megabytes(installed: InstalledProgram, tmp_path: Path) -> None:
    """Input and output of a command are bytes, also those that end lines or files on Windows."""
    program = install_program(installed.machine, "copy")
    data = b"\r\n\x1a\x00\xff" + os.urandom(100_000_000)
    async with attached(installed, tmp_path) as view:
        done = await over_ssh(view, tmp_path, "ssh", "dev", program, data=data)
        assert done.returncode == 3, done.stderr
        assert hashlib.sha256(done.stdout).hexdigest() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("client", CLIENTS)
async def test_client_runs_commands_on_windows(client: str, installed: InstalledProgram, tmp_path: Path) -> None:
    """`coder ssh` of this machine, without OpenSSH: bytes both ways, both outputs, the exit code."""
    if not CLIENTS[client][0]:
        pytest.skip("CODER_TEST_ORIGINAL_CLI does not name the original's command line")
    program, data = install_program(installed.machine, "copy"), b"\r\n\x1a\x00\xff" + os.urandom(5_000_000)
    async with attached(installed, tmp_path) as view:
        session = {"CODER_URL": view.world.url, "CODER_SESSION_TOKEN": view.world.token, "HOME": str(tmp_path)}
        env = {**os.environ, **session, "CODER_CONFIG_DIR": str(tmp_path / "config")}

        async def run(command: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
            words = [*CLIENTS[client], "ssh", "dev", command]
            return await trio.run_process(
                words, stdin=data, env=env, capture_stdout=True, capture_stderr=True, check=False
            )

        copied = await run(program, data)
        assert copied.returncode == 3, copied.stderr
        assert hashlib.sha256(copied.stdout).hexdigest() == hashlib.sha256(data).hexdigest()
        both = await run("echo right& echo wrong 1>&2& exit 7")
        assert (both.returncode, both.stdout.split()) == (7, [b"right"]) and b"wrong" in both.stderr


async def test_agent_forwards_both_ways(installed: InstalledProgram, tmp_path: Path) -> None:
    """`ssh -W` and `-R`. The machine shares this one's loopback; with `-R` the agent listens, never the client."""
    async with attached(installed, tmp_path) as view:
        host, port = view.world.url.removeprefix("http://").split(":")
        request = f"GET /healthz HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
        forwarded = await over_ssh(view, tmp_path, "ssh", "-W", f"{host}:{port}", "dev", data=request)
        assert forwarded.stdout.startswith(b"HTTP/1."), forwarded.stderr
        words = ssh_words(tmp_path, view.world.url, view.world.token)
        options = ["-o", "LogLevel=INFO", "-o", "ExitOnForwardFailure=yes"]
        command = [*words, *options, "-N", "-R", f"127.0.0.1:0:{host}:{port}", "dev"]
        process = await trio.lowlevel.open_process(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            said = b""
            with trio.fail_after(60):
                while not (allocated := re.search(rb"Allocated port (\d+) for remote forward", said)):
                    piece = await process.stderr.receive_some()
                    assert piece, said
                    said += piece
                async with await trio.open_tcp_stream("127.0.0.1", int(allocated[1])) as stream:
                    await stream.send_all(request)
                    answer = b"".join([bytes(piece) async for piece in stream])
            assert answer.startswith(b"HTTP/1.1 200"), answer
        finally:
            process.terminate()
            await process.wait()


async def test_terminal_is_resized_and_kept(installed: InstalledProgram, tmp_path: Path) -> None:
    """A terminal of the dashboard: its program sees a new size, and is still there for the next viewer."""
    program, ident = install_program(installed.machine, "size"), uuid4()
    async with attached(installed, tmp_path) as view:
        first = await open_terminal(view, ident, program)
        await type_text(first, "\r")
        await read_until(first, b"80x24 is the size")
        await resize(first, height=40, width=120)
        await shows(first, b"120x40 is the size")
        await trio.aclose_forcefully(first)
        second = await open_terminal(view, ident)
        await read_until(second, b"80x24 is the size")  # what was shown before
        await resize(second, height=30, width=100)
        await shows(second, b"100x30 is the size")
        await trio.aclose_forcefully(second)


async def shows(stream: WebSocketStream, marker: bytes) -> None:
    """Ask the program for its size until it says this one: the console learns it in a thread of its own."""
    seen = b""
    with trio.fail_after(60):
        while marker not in seen:
            await type_text(stream, "\r")
            seen += await read_until(stream, b"is the size")


async def test_agent_returns_after_server_kill(installed: InstalledProgram, tmp_path: Path) -> None:
    """A server of its own is killed and started again: an open session goes on, and a new one connects."""
    program = install_program(installed.machine, "copy")
    with open_loopback() as server:
        token = await trio.to_thread.run_sync(create_machine, server)
        env = {"CODER_AGENT_TOKEN": token, "CODER_AGENT_URL": server.url, "TEMP": "C:\\windows\\temp"}
        async with installed.machine.agent(installed.program, installed.cache, env, tmp_path / "log"):
            words = ssh_words(tmp_path, server.url, server.token)
            pipe = subprocess.PIPE
            session = await trio.lowlevel.open_process([*words, "dev", program], stdin=pipe, stdout=pipe)
            await repeats(session, b"before")
            assert server.server is not None
            os.killpg(server.server.pid, signal.SIGKILL)
            server.server.wait(60)
            await trio.to_thread.run_sync(server.start_server)
            done = await trio.run_process([*words, "dev", "exit 5"], check=False)
            assert done.returncode == 5, (tmp_path / "log").read_text()
            await repeats(session, b"after")
            assert session.stdin is not None
            await session.stdin.aclose()
            assert await session.wait() == 3


def create_machine(server: Loopback) -> str:
    """Create a user and the external workspace `dev`; return the token of its agent."""
    password = "Killed-Password-7"
    server.request("POST", "/api/v2/users/first", {"email": "a@b.c", "username": "ana", "password": password})
    server.sign_in("a@b.c", password)
    server.push_external_template()
    server.create_external("dev")
    shown = json.loads(server.coder("external-workspaces", "agent-instructions", "dev", "--output=json"))
    return str(shown["auth_token"])


async def repeats(session: trio.Process, line: bytes) -> None:
    """Send a line to a program that returns it."""
    assert session.stdin is not None and session.stdout is not None
    await session.stdin.send_all(line)
    seen = b""
    with trio.fail_after(180):
        while seen != line:
            piece = await session.stdout.receive_some()
            assert piece, seen
            seen += piece


async def test_scripts_log_and_fail(installed: InstalledProgram, tmp_path: Path) -> None:
    oem = install_program(installed.machine, "oem")
    scripts = [
        provisioner_pb2.Script(display_name="Good", script=f"echo from %CODER%& {oem}", run_on_start=True),
        provisioner_pb2.Script(display_name="Bad", script="echo wrong 1>&2& exit 9", run_on_start=True),
    ]
    async with attached(installed, tmp_path, scripts=scripts) as view:
        await until_lifecycle(view, "start_error")
        text = await log_lines(view)
        assert {"from true", "wrong", "café is written"} <= set(text), text


async def until_lifecycle(view: AgentWorld, state: str) -> None:
    async def reached() -> bool:
        return bool((await view.agent())["lifecycle_state"] == state)

    await eventually(reached, seconds=120)


async def log_lines(view: AgentWorld) -> list[str]:
    logs = (await view.world.get(f"/api/v2/workspaceagents/{view.agent_id}/logs")).json()
    return [line["output"].strip() for line in logs]


async def test_interrupted_agent_runs_stop_script(installed: InstalledProgram, tmp_path: Path) -> None:
    """Ctrl-C: the stop script runs and is logged, and no process of the workspace outlives the agent."""
    outlast, machine = install_program(installed.machine, "outlast"), installed.machine
    scripts = [provisioner_pb2.Script(display_name="Stop", script="echo stopped by %CODER%", run_on_stop=True)]
    async with attached(installed, tmp_path, scripts=scripts) as view:
        await until_lifecycle(view, "ready")
        started = await over_ssh(view, tmp_path, "ssh", "dev", outlast)
        assert started.returncode == 0 and machine.processes("outlast.exe")
        for pid in machine.processes(installed.program.name):
            os.kill(pid, signal.SIGINT)  # Wine makes it a Ctrl-C
        await until_lifecycle(view, "off")
        assert "stopped by true" in await log_lines(view)

        async def alone() -> bool:
            return not machine.processes(installed.program.name) and not machine.processes("outlast.exe")

        await eventually(alone)


async def test_agent_serves_files(installed: InstalledProgram, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(3_000_000))
    lines = [
        "pwd",
        f"put {sent} r.bin",
        f"get r.bin {tmp_path}/back",
        'mkdir "ü folder"',
        'rmdir "ü folder"',
        "rm r.bin",
        f"put {sent} /C:/windows/temp/r.bin",
        "rm /C:/windows/temp/r.bin",
    ]
    async with attached(installed, tmp_path) as view:
        batch = "".join(f"{line}\n" for line in [*lines, "cd /C:/windows", "ls win.ini"]).encode()
        done = await over_ssh(view, tmp_path, "sftp", "-b", "-", "dev", data=batch)
        assert done.returncode == 0, done.stderr
        assert b"Remote working directory: /C:/users/" in done.stdout and b"win.ini" in done.stdout
        assert (tmp_path / "back").read_bytes() == sent.read_bytes()


async def test_agent_upgrades_itself(installed: InstalledProgram, tmp_path: Path) -> None:
    """An older agent starts the server's program, and waits for it."""
    before = BUILD_VERSION.replace("v2.34", "v2.33")
    async with attached(installed, tmp_path, "--self-upgrade", WINE_OLD_VERSION=before) as view:

        async def upgraded() -> bool:
            return bool((await view.agent())["version"] == BUILD_VERSION)

        await eventually(upgraded, seconds=180)
        log = (tmp_path / "log").read_text()
        assert "took over from another program" in log and before in log
        done = await over_ssh(view, tmp_path, "ssh", "dev", "exit 3")
        assert done.returncode == 3


async def test_session_is_private_and_used(installed: InstalledProgram, tmp_path: Path) -> None:
    """`coder login` writes a file that only its owner can read; Wine shows access lists as modes."""
    (tmp_path / "site/bin").mkdir(parents=True)
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return installed.machine.run("wine", str(installed.program), *words, env=cache)

    async with workspace_world(site_dir=str(tmp_path / "site")) as view:
        done = await trio.to_thread.run_sync(run, "login", view.world.url, "--token", view.world.token)
        assert done.returncode == 0, done.stderr
        (folder,) = installed.machine.drive.glob("users/*/AppData/Roaming/coderv2")
        assert len((folder / "session").read_text()) > 20
        assert stat.S_IMODE((folder / "session").stat().st_mode) & 0o007 == 0
        listed = await trio.to_thread.run_sync(run, "list", "--column", "workspace")
        assert b"dev" in listed.stdout, listed.stderr
        written = await trio.to_thread.run_sync(run, "config-ssh", "--yes")
        assert written.returncode == 0, written.stderr
    (config,) = installed.machine.drive.glob("users/*/.ssh/config")
    text = config.read_text()
    assert (
        f'ProxyCommand "{windows_path(installed.program)}" --global-config "C:\\users\\' in text and "Match" not in text
    )
    assert b"\r" not in config.read_bytes() and stat.S_IMODE(config.stat().st_mode) & 0o007 == 0


def test_service_definition_is_printed(installed: InstalledProgram) -> None:
    """Wine's scheduler runs no tasks; the steps are printed, with the token left out."""
    words = ["agent", "install", "--dry-run", "--agent-url", "https://x.example", "--agent-token", "secret-token"]
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    done = installed.machine.run("wine", str(installed.program), *words, env=cache)
    text = done.stdout.decode()
    assert done.returncode == 0 and "secret-token" not in text and "<LogonType>S4U</LogonType>" in text
    assert "run schtasks /Create /TN coder-agent /XML" in text and "AppData\\Local\\coder-agent\\coder.exe" in text


def test_script_socket_is_refused(installed: InstalledProgram) -> None:
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    done = installed.machine.run("wine", str(installed.program), "exp", "sync", "ping", env=cache)
    assert done.returncode == 1 and b"no socket for scripts on this system" in done.stderr


def test_upgrade_replaces_running_program(installed: InstalledProgram, tmp_path: Path) -> None:
    """`coder upgrade` renames its own file, which runs; the program before puts itself back."""
    machine, program = installed.machine, tmp_path / "my tööls" / "coder.exe"
    program.parent.mkdir()
    program.write_bytes(Path(BUILT).read_bytes())
    install_program(machine, "newer")
    newer = (machine.drive / "newer.exe").read_bytes()
    mirror = Mirror(tmp_path / "mirror")
    mirror.add(NEWER, newer, name=PROGRAM)
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    words = ["--release-list", windows_path(mirror.folder), "--key", KEY.public_line, "--yes"]
    done = machine.run("wine", str(program), "upgrade", *words, env=cache)
    assert done.returncode == 0, done.stderr
    previous = program.with_name("coder.previous.exe")
    assert program.read_bytes() == newer and previous.read_bytes() == Path(BUILT).read_bytes()
    back = machine.run("wine", str(previous), "upgrade", "--rollback", "--yes", env=cache)
    assert back.returncode == 0, back.stderr
    assert program.read_bytes() == Path(BUILT).read_bytes() and previous.read_bytes() == newer


def test_upgrade_names_missing_list(installed: InstalledProgram) -> None:
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    done = installed.machine.run("wine", str(installed.program), "upgrade", env=cache)
    assert done.returncode == 1 and b"no list of releases is named" in done.stderr, done.stderr
