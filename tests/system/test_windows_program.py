"""The built Windows program under Wine: the command line, and an agent attached to a server on this machine.

PowerShell is not to be had here; the line that attaches a machine is executed by an interpreter of the test kit.
Terminals go by WinPTY, because nothing comes out of Wine's ConPTY. Real Windows is not tested.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from coder.base.version import BUILD_VERSION
from coder.domain.agents.init_scripts import attach_command
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.paths import ROOT
from tests.kit.server.server_process import program_under_test
from tests.kit.wine.machine import COMPILER, Machine, WineHost, missing_tools, windows_path
from tests.kit.wine.powershell import Session

sys.path.insert(0, str(ROOT / "build"))
from release.keys import ReleaseKey

RELEASE_KEY = ReleaseKey(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
BUILT = os.environ.get("CODER_TEST_WINDOWS_PROGRAM", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not BUILT, reason="a built program for Windows is run there"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {', '.join(missing_tools())}"),
]


@dataclass
class Fetched:
    machine: Machine
    program: Path
    cache: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fetched]:
    """A Windows machine with the program, in a folder with a space and a letter that is not ASCII."""
    folder = tmp_path_factory.mktemp("windows")
    machine = Machine(folder)
    machine.set_up()
    program = folder / "a prögram" / "sshd.exe"
    program.parent.mkdir()
    program.write_bytes(Path(BUILT).read_bytes())
    machine.unpack(program, folder / "cache")
    yield Fetched(machine, program, folder / "cache")
    machine.run("wineserver", "-k")


@asynccontextmanager
async def attached(
    installed: Fetched, tmp_path: Path, *flags: str, scripts: Sequence[provisioner_pb2.Script] = (), **more: str
) -> AsyncIterator[AgentWorld]:
    """A workspace whose agent is the Windows program, attached by the line that the product prints."""
    (tmp_path / "site/bin").mkdir(parents=True)
    (tmp_path / "site/bin/coder-windows-amd64.exe").symlink_to(BUILT)
    fields = {"scripts": list(scripts)}
    async with workspace_world(site_dir=str(tmp_path / "site"), agent_fields=fields) as view:
        line = attach_command(view.world.url, "windows", "amd64", view.token)
        program, words, env = await trio.to_thread.run_sync(started_by, line, installed)
        assert (program, words) == (windows_path(installed.program), ["agent"])
        log = tmp_path / "log"
        given = {**env, "TEMP": "C:\\windows\\temp", **more}
        async with installed.machine.agent(installed.program, installed.cache, given, log, *flags) as process:

            async def connected() -> bool:
                assert process.poll() is None, log.read_text()
                return bool((await view.agent())["status"] == "connected")

            await eventually(connected, seconds=120)
            yield view


def started_by(line: str, installed: Fetched) -> tuple[str, list[str], dict[str, str]]:
    """Execute a line of PowerShell; returns the program that it starts, with arguments and environment."""
    folder = installed.program.parent
    host = WineHost(installed.machine, installed.cache, folder)
    session = Session(host, {"TEMP": windows_path(folder)})
    session.statics = {
        "[Net.ServicePointManager]::SecurityProtocol": 0,
        "[Net.SecurityProtocolType]::Tls12": 3072,
        "[Net.WebRequest]::DefaultWebProxy": None,
    }
    session.execute(line)
    (started,) = host.started
    return started


async def over_ssh(
    view: AgentWorld, tmp_path: Path, *words: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """OpenSSH of this machine, through our command line as its ProxyCommand."""
    env = f"CODER_URL={view.world.url} CODER_SESSION_TOKEN={view.world.token} CODER_NO_COMMAND_SERVER=1"
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host dev\n  ProxyCommand env {env} {shlex.join(program_under_test())} ssh --stdio dev\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    command = [words[0], "-F", str(config), *words[1:]]
    return await trio.run_process(command, stdin=data, capture_stdout=True, capture_stderr=True, check=False)


def test_version_runs(installed: Fetched) -> None:
    done = installed.machine.run(
        "wine", str(installed.program), "version", env={"CODER_BINARY_CACHE": windows_path(installed.cache)}
    )
    assert done.stdout.startswith(b"Coder v2.34"), done.stderr


@pytest.mark.parametrize(("content", "code"), [(b"released", 0), (b"changed", 1)])
def test_release_is_verified(content: bytes, code: int, installed: Fetched, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "file.minisig").write_text(RELEASE_KEY.minisign(b"released", "of a test"))
    command = [str(installed.program), "verify", windows_path(tmp_path / "file"), "--key", RELEASE_KEY.public_line]
    done = installed.machine.run("wine", *command, env={"CODER_BINARY_CACHE": windows_path(installed.cache)})
    assert done.returncode == code and (code or b"of a test" in done.stdout), done.stderr


def test_damaged_program_is_named(installed: Fetched, tmp_path: Path) -> None:
    data = bytearray(Path(BUILT).read_bytes())
    data[len(data) // 2] ^= 1
    damaged = tmp_path / "coder.exe"
    damaged.write_bytes(data)
    done = installed.machine.run(
        "wine", str(damaged), "version", env={"CODER_BINARY_CACHE": windows_path(tmp_path / "c")}
    )
    assert done.returncode == 127 and b"is damaged; download it again" in done.stderr
    assert not list((tmp_path / "c").glob("*/modules.bin"))


async def test_agent_runs_commands(installed: Fetched, tmp_path: Path) -> None:
    async with attached(installed, tmp_path) as view:
        done = await over_ssh(view, tmp_path, "ssh", "dev", 'echo "a b" %CODER%& echo wrong 1>&2& exit 7')
        assert done.stdout.split() == [b'"a', b'b"', b"true"] and done.stderr.strip() == b"wrong"
        assert done.returncode == 7
        shell = b"echo in a terminal %CODER%\rexit 5\r"
        terminal = await over_ssh(view, tmp_path, "ssh", "-tt", "dev", data=shell)
        assert b"in a terminal true" in terminal.stdout


COPY = """#include <fcntl.h>
#include <io.h>
#include <stdio.h>
int main(void) {
    static char block[1 << 16];
    int size;
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    while ((size = _read(0, block, sizeof block)) > 0) _write(1, block, size);
    return 3;
}
"""


async def test_agent_carries_bytes(installed: Fetched, tmp_path: Path) -> None:
    """Input and output of a command are bytes, also those that end lines or files on Windows."""
    source, program = tmp_path / "copy.c", installed.machine.drive / "copy.exe"
    source.write_text(COPY)
    await trio.run_process([COMPILER, "-o", str(program), str(source)])
    data = b"\r\n\x1a\x00\xff" + os.urandom(20_000_000)
    async with attached(installed, tmp_path) as view:
        done = await over_ssh(view, tmp_path, "ssh", "dev", "C:\\copy.exe", data=data)
        assert done.returncode == 3 and done.stdout == data, done.stderr
        host, port = view.world.url.removeprefix("http://").split(":")
        request = f"GET /healthz HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
        forwarded = await over_ssh(view, tmp_path, "ssh", "-W", f"{host}:{port}", "dev", data=request)
        assert forwarded.stdout.startswith(b"HTTP/1."), forwarded.stderr


async def test_scripts_log_and_fail(installed: Fetched, tmp_path: Path) -> None:
    scripts = [
        provisioner_pb2.Script(display_name="Good", script="echo from %CODER%", run_on_start=True),
        provisioner_pb2.Script(display_name="Bad", script="echo wrong 1>&2& exit 9", run_on_start=True),
    ]
    async with attached(installed, tmp_path, scripts=scripts) as view:

        async def failed() -> bool:
            return bool((await view.agent())["lifecycle_state"] == "start_error")

        await eventually(failed, seconds=120)
        logs = (await view.world.get(f"/api/v2/workspaceagents/{view.agent_id}/logs")).json()
        text = [line["output"].strip() for line in logs]
        assert "from true" in text and "wrong" in text, text


async def test_agent_serves_files(installed: Fetched, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(3_000_000))
    lines = [
        "pwd",
        f"put {sent} r.bin",
        f"get r.bin {tmp_path}/back",
        'mkdir "ü folder"',
        'rmdir "ü folder"',
        "rm r.bin",
    ]
    async with attached(installed, tmp_path) as view:
        batch = "".join(f"{line}\n" for line in [*lines, "cd /C:/windows", "ls win.ini"]).encode()
        done = await over_ssh(view, tmp_path, "sftp", "-b", "-", "dev", data=batch)
        assert done.returncode == 0, done.stderr
        assert b"Remote working directory: /C:/users/" in done.stdout and b"win.ini" in done.stdout
        assert (tmp_path / "back").read_bytes() == sent.read_bytes()


async def test_agent_upgrades_itself(installed: Fetched, tmp_path: Path) -> None:
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


async def test_session_is_private_and_used(installed: Fetched, tmp_path: Path) -> None:
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


def test_service_definition_is_printed(installed: Fetched) -> None:
    """Wine's scheduler runs no tasks; the steps are printed, with the token left out."""
    words = ["agent", "install", "--dry-run", "--agent-url", "https://x.example", "--agent-token", "secret-token"]
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    done = installed.machine.run("wine", str(installed.program), *words, env=cache)
    text = done.stdout.decode()
    assert done.returncode == 0 and "secret-token" not in text and "<LogonType>S4U</LogonType>" in text
    assert "run schtasks /Create /TN coder-agent /XML" in text and "AppData\\Local\\coder-agent\\coder.exe" in text


def test_script_socket_is_refused(installed: Fetched) -> None:
    cache = {"CODER_BINARY_CACHE": windows_path(installed.cache)}
    done = installed.machine.run("wine", str(installed.program), "exp", "sync", "ping", env=cache)
    assert done.returncode == 1 and b"no socket for scripts on this system" in done.stderr
