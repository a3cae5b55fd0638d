"""Sessions inside containers: OpenSSH and the web terminal with an engine that records its arguments."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
import trio.testing
import trio_asyncio

from coder.agent.network.reconnecting_pty import PtyService
from coder.agent.ssh.server import SshService
from coder.agent.state import AgentState
from coder.agent.workspace.containers import Container, ContainerError
from coder.agent.workspace.environment import find_identity
from coder.rpc.proto import agent_pb2

ENGINE = """#!/bin/sh
# exec [options] NAME COMMAND ...: notes its words and what it would pass, and runs the command here.
echo "$*" >> "$0.words"
shift
while [ "${1#--}" != "$1" ]; do
  case "$1" in --user) shift ;; --env) shift; eval "echo $1=\\$$1" >> "$0.passed" ;; esac
  shift
done
echo "in $1"; shift
exec "$@"
"""
OPTIONS = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-F", "none"]


@dataclass
class EngineWorkspace:
    port: int
    engine: Path
    state: AgentState

    async def ssh(self, command: str, *options: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        sent = [f"SetEnv={' '.join(f'{name}={value}' for name, value in variables.items())}"]
        argv = ["ssh", *OPTIONS, *options, "-o", *sent, "-p", str(self.port), "u@127.0.0.1", command]
        return await trio.run_process(argv, stdin=b"typed", capture_stdout=True, capture_stderr=True, check=False)

    def recorded(self, what: str) -> list[str]:
        path = self.engine.with_name(f"docker.{what}")
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineWorkspace]:
    engine = tmp_path / "docker"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    state = AgentState(identity=find_identity(), token="secret-token", url="http://x", executable="/bin/coder")
    state.manifest = agent_pb2.Manifest(environment_variables={"COLOUR": "a secret blue"}, workspace_name="w")
    state.directory = tmp_path
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, SshService(state).serve, 0)
        yield EngineWorkspace(listeners[0].socket.getsockname()[1], engine, state)
        nursery.cancel_scope.cancel()


async def test_command_runs_inside(scene: EngineWorkspace) -> None:
    done = await scene.ssh("cat; exit 5", CODER_CONTAINER="web-1", CODER_CONTAINER_USER="app", MOOD="good")
    assert (done.returncode, done.stdout) == (5, b"in web-1\ntyped")
    (words,) = scene.recorded("words")
    assert words.startswith("exec --interactive --user app --env CODER ")
    assert "--tty" not in words
    assert "secret" not in words, "values belong in the environment, which others cannot read"
    passed = dict(line.split("=", 1) for line in scene.recorded("passed"))
    assert passed["COLOUR"] == "a secret blue"
    assert passed["MOOD"] == "good"
    assert "CODER_AGENT_TOKEN" not in passed
    assert "CODER_CONTAINER" not in passed


async def test_terminal_inside(scene: EngineWorkspace) -> None:
    done = await scene.ssh("test -t 0 && echo a $TERM", "-tt", CODER_CONTAINER="web-1")
    assert b"a " in done.stdout
    assert scene.recorded("words")[0].startswith("exec --interactive --tty --env")


@pytest.mark.parametrize(
    ("name", "user", "why"),
    [
        ("--privileged", "", "not a valid container name"),
        ("web", "-u", "not a valid user name"),
        ("a;b", "", "not a valid"),
    ],
)
async def test_invalid_names_are_rejected(scene: EngineWorkspace, name: str, user: str, why: str) -> None:
    done = await scene.ssh("true", CODER_CONTAINER=name, CODER_CONTAINER_USER=user)
    assert done.returncode == 229
    assert why in done.stderr.decode()
    assert scene.recorded("words") == []


async def test_web_terminal_runs_inside(scene: EngineWorkspace) -> None:
    init = {"ID": str(uuid.uuid4()), "Height": 24, "Width": 80, "Command": "echo sum=$((40+2))", "Container": "web-1"}
    raw = json.dumps(init).encode()
    near, far = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(PtyService(scene.state, nursery).serve, far)
        await near.send_all(len(raw).to_bytes(2, "little") + raw)
        seen = b""
        with trio.fail_after(60):
            while b"sum=42" not in seen:
                seen += await near.receive_some()
        assert b"in web-1" in seen
        nursery.cancel_scope.cancel()


def test_missing_engine_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match="neither docker nor podman"):
        Container("web").command_line("true", {"PATH": str(tmp_path)}, tty=False)
