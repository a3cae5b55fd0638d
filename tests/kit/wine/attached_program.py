"""The built Windows program as an agent on a machine by Wine, attached by the product's line, and SSH into it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from coder.domain.agents.init_scripts import attach_command
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.server.server_process import program_under_test
from tests.kit.wine.machine import BUILT, InstalledProgram, WineHost, windows_path
from tests.kit.wine.powershell import Session


@asynccontextmanager
async def attached(
    installed: InstalledProgram,
    tmp_path: Path,
    *flags: str,
    scripts: Sequence[provisioner_pb2.Script] = (),
    **more: str,
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


def started_by(line: str, installed: InstalledProgram) -> tuple[str, list[str], dict[str, str]]:
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


def ssh_words(tmp_path: Path, url: str, token: str, tool: str = "ssh") -> list[str]:
    """OpenSSH of this machine, with our command line as its ProxyCommand for the host `dev`."""
    env = f"CODER_URL={url} CODER_SESSION_TOKEN={token} CODER_NO_COMMAND_SERVER=1"
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host dev\n  ProxyCommand env {env} {shlex.join(program_under_test())} ssh --stdio dev\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    return [tool, "-F", str(config)]


async def over_ssh(
    view: AgentWorld, tmp_path: Path, tool: str, *words: str, data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [*ssh_words(tmp_path, view.world.url, view.world.token, tool), *words]
    return await trio.run_process(command, stdin=data, capture_stdout=True, capture_stderr=True, check=False)
