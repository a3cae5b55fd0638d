"""Environment of a workspace's commands, name by name, in every place where the agent starts one
(docs/protocol/agents.md#environment)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing
import trio_asyncio
from trio_asyncio import aio_as_trio

from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.reports.metadata import MetadataCollector
from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace.environment import expand, find_identity
from coder.agent.workspace.logs import LogQueue
from coder.agent.workspace.processes import Processes
from coder.agent.workspace.scripts import ScriptRunner, Stage
from coder.net.ssh_library import asyncssh
from coder.rpc.proto import agent_pb2

WORKSPACE = uuid.UUID("6f2f7f5c-7a3d-4b9c-9a53-2f5f3a1d2c10")
SOURCE = uuid.UUID("b1c0ffee-7a3d-4b9c-9a53-2f5f3a1d2c10")
PORTS = "http://{{port}}--main.example"
EVERYWHERE: dict[str, object] = {
    "CODER": "true",
    "CODER_WORKSPACE_NAME": "wanda",
    "CODER_WORKSPACE_AGENT_NAME": "main",
    "CODER_WORKSPACE_OWNER_NAME": "olga",
    "CODER_WORKSPACE_ID": str(WORKSPACE),
    "CODER_AGENT_TOKEN": "agent-token",
    "CODER_AGENT_URL": "http://server.example",
    "CS_DISABLE_GETTING_STARTED_OVERRIDE": "true",
    "VSCODE_PROXY_URI": PORTS,
    "FROM_TEMPLATE": "wanda of olga",
    "FROM_SECRET": "$not expanded",
    "CODER_SELF": None,
    "CODER_AGENT_AUTH": None,
    "CODER_SESSION_TOKEN": None,
}
TERMINAL: dict[str, object] = {"TERM": "xterm-256color", "SSH_TTY": ...}
SCRIPT: dict[str, object] = {"CODER_SCRIPT_DATA_DIR": ..., "CODER_SCRIPT_BIN_DIR": ...}
SSH: dict[str, object] = {"SSH_CLIENT": "0.0.0.0 0 0", "SSH_CONNECTION": "0.0.0.0 0 0.0.0.0 0"}
AGENTS = ("CODER", "GIT_", "CS_", "SSH_", "VSCODE")
"Beginnings of the names that an agent adds."


@dataclass(slots=True)
class Workspace:
    """Agent's services on one workspace. `program` is the agent's own program."""

    state: AgentState
    scripts: ScriptRunner
    data: Path
    program: Path
    port: int
    nursery: trio.Nursery


@pytest.fixture
async def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workspace]:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))  # without files of a shell that change the environment
    monkeypatch.setenv("SHELL", "/bin/sh")
    for name in [name for name in os.environ if name.startswith(AGENTS)]:
        monkeypatch.delenv(name)
    for name in ("CODER_SELF", "CODER_AGENT_AUTH", "CODER_SESSION_TOKEN"):
        monkeypatch.setenv(name, "private")
    program = tmp_path / "a folder/coder"
    program.parent.mkdir(mode=0o755)
    program.write_text("#!/bin/sh\necho own program\n")
    program.chmod(0o755)
    state = AgentState(
        identity=replace(find_identity(), shell="/bin/sh"),  # noqa: S604 - a field
        token="agent-token",
        url="http://server.example",
        executable=str(program),
    )
    state.manifest = agent_pb2.Manifest(
        workspace_name="wanda",
        agent_name="main",
        owner_username="olga",
        workspace_id=WORKSPACE.bytes,
        vs_code_port_proxy_uri=PORTS,
        environment_variables={"FROM_TEMPLATE": "$CODER_WORKSPACE_NAME of ${CODER_WORKSPACE_OWNER_NAME}"},
    )
    state.manifest.secrets.add(env_name="FROM_SECRET", value=b"$not expanded")
    state.directory = tmp_path
    queue = LogQueue(lambda: datetime.now(UTC))
    runner = ScriptRunner(state, queue, _ignore, tmp_path / "logs", tmp_path / "data")
    runner.prepare()
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, SshService(state).serve, 0)
        port = listeners[0].socket.getsockname()[1]
        yield Workspace(state, runner, tmp_path / "data/coder-script-data", program, port, nursery)
        nursery.cancel_scope.cancel()


async def _ignore(_: agent_pb2.Timing) -> None:
    pass


async def _script(workspace: Workspace, command: str) -> None:
    await workspace.scripts.run(agent_pb2.WorkspaceAgentScript(script=command, log_source_id=SOURCE.bytes), Stage.START)


async def _metadata(workspace: Workspace, command: str) -> None:
    description = agent_pb2.WorkspaceAgentMetadata.Description(key="k", script=command)
    await MetadataCollector(workspace.state)._collect(description, 60)


async def _session(workspace: Workspace, command: str) -> None:
    await _ssh(workspace, command, None)


async def _session_with_terminal(workspace: Workspace, command: str) -> None:
    await _ssh(workspace, command, "xterm-256color")


async def _ssh(workspace: Workspace, command: str, term_type: str | None) -> None:
    connection = await aio_as_trio(asyncssh.connect)(
        "127.0.0.1", workspace.port, username="u", known_hosts=None, config=None, client_keys=None
    )
    await aio_as_trio(connection.run)(command, term_type=term_type)
    connection.abort()


async def _web_terminal(workspace: Workspace, command: str) -> None:
    """A web terminal; an app with a `command` is one, too."""
    near, far = trio.testing.memory_stream_pair()
    init = json.dumps({"ID": str(uuid.uuid4()), "Height": 24, "Width": 80, "Command": command}).encode()
    workspace.nursery.start_soon(PtyService(workspace.state, workspace.nursery).serve, far)
    await near.send_all(len(init).to_bytes(2, "little") + init)
    async for _ in near:
        pass


async def _process(workspace: Workspace, command: str) -> None:
    processes = Processes(workspace.state)
    workspace.nursery.start_soon(processes.run, ())
    await trio.testing.wait_all_tasks_blocked()
    started = await processes.start(command, "", {}, background=False)
    await started.ended.wait()


Place = Callable[[Workspace, str], Awaitable[None]]
PLACES: dict[str, tuple[Place, dict[str, object]]] = {
    "script": (_script, SCRIPT),
    "metadata": (_metadata, {}),
    "session": (_session, SSH),
    "session with terminal": (_session_with_terminal, SSH | TERMINAL),
    "web terminal and app": (_web_terminal, TERMINAL),
    "process of the API": (_process, {}),
}


async def environment_in(workspace: Workspace, place: str) -> dict[str, str]:
    """Return the environment that a command in that place has."""
    path = workspace.program.with_name("environment")
    with trio.fail_after(60):
        await PLACES[place][0](workspace, f"env -0 >'{path}'")
    return dict(item.split("=", 1) for item in path.read_text().split("\0") if item)


@pytest.mark.parametrize("place", PLACES)
async def test_every_name_has_its_value(workspace: Workspace, place: str) -> None:
    env = await environment_in(workspace, place)
    program = str(workspace.program)
    expected: dict[str, object] = {
        **EVERYWHERE,
        "GIT_SSH_COMMAND": f"'{program}' gitssh --",
        "GIT_ASKPASS": program,
        "HOME": str(workspace.state.identity.home),
        "USER": workspace.state.identity.name,
        "LOGNAME": workspace.state.identity.name,
        "SHELL": workspace.state.identity.shell,
        "PATH": f"{workspace.data}/bin:/usr/bin:/bin:{workspace.program.parent}",
        **PLACES[place][1],
    }
    shown = {name: ... if value is ... and name in env else env.get(name) for name, value in expected.items()}
    assert shown == expected
    added = {name for name in env if name.startswith(AGENTS)}
    assert added - {name for name, value in expected.items() if value is not None} == set()


@pytest.mark.parametrize("place", PLACES)
async def test_own_program_runs_as_coder(workspace: Workspace, place: str) -> None:
    result = workspace.program.with_name("result")
    with trio.fail_after(60):
        await PLACES[place][0](workspace, f"coder >'{result}' 2>&1")
    assert result.read_text() == "own program\n"


async def test_other_file_name_gets_link(workspace: Workspace) -> None:
    renamed = workspace.program.rename(workspace.program.with_name("coder-linux-amd64"))
    workspace.state.executable = str(renamed)
    workspace.scripts.prepare()
    result = renamed.with_name("result")
    await _script(workspace, f"coder >'{result}'; command -v coder >>'{result}'")
    said, path = result.read_text().splitlines()
    assert said == "own program" and Path(path).readlink() == renamed
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700


async def test_writable_folder_gets_link(workspace: Workspace) -> None:
    workspace.program.parent.chmod(0o777)
    workspace.scripts.prepare()
    assert workspace.state.program_folder is not None
    assert workspace.state.program_folder.parent == workspace.data
    workspace.program.parent.chmod(0o755)


async def test_workspace_program_wins_over_own(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    other = workspace.program.with_name("other")
    other.mkdir()
    (other / "coder").write_text("#!/bin/sh\necho another program\n")
    (other / "coder").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}:/usr/bin:/bin")
    result = workspace.program.with_name("result")
    await _script(workspace, f"coder >'{result}'")
    assert result.read_text() == "another program\n"


async def test_template_path_keeps_own_program(workspace: Workspace) -> None:
    assert workspace.state.manifest is not None
    workspace.state.manifest.environment_variables["PATH"] = "/opt/tools:$PATH"
    env = await environment_in(workspace, "metadata")
    assert env["PATH"] == f"{workspace.data}/bin:/opt/tools:/usr/bin:/bin:{workspace.program.parent}"


async def test_old_server_sends_no_workspace_id(workspace: Workspace) -> None:
    assert workspace.state.manifest is not None
    workspace.state.manifest.workspace_id = b""
    assert "CODER_WORKSPACE_ID" not in await environment_in(workspace, "session")


def test_expansion_is_bounded() -> None:
    assert expand("$A$A", {"A": "x" * 10}, 20) == "x" * 20
    assert expand("$A$A", {"A": "x" * 10}, 19) == ""
    assert expand("$A" * 1_000_000, {"A": "x" * 1_000_000}) == ""
    assert expand("y" * 30, {}, 20) == ""
