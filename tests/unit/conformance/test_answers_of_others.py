"""Clients of a server retry, or fail with a message, when something else answers: a reverse proxy, a login page.

The functions that dial are tested in this process with every status and body; the agent as a separate program is tested
with two of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig
from coder.base import log, retry
from coder.base.errors import CoderError, causes, explain_error
from coder.base.secret import Secret
from coder.cli.core.failures import error_text
from coder.cli.provisioning.provisioner_daemons import _DaemonCredentials
from coder.client.link import open_link
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.daemon import run_daemon
from tests.kit.programs.command_line import run_cli
from tests.kit.stand_ins.scripted_http_servers import OddServer, Reply, odd_server, reply
from tests.unit.cli.test_odd_answers import flawed_answer

STATUSES = ["302 Found", "403 Forbidden", "404 Not Found", "502 Bad Gateway", "503 Service Unavailable"]
BODIES = {
    "page": ("<html><h1>Bad Gateway</h1></html>", "text/html"),
    "JSON": ('{"error": "upstream", "code": 7}', "application/json"),
    "empty": ("", "text/plain"),
}
REFUSALS = {f"{status[:3]} {kind}": (status, *body) for status in STATUSES for kind, body in BODIES.items()}
TRIES = 3
AGENT = UUID("00000000-0000-4000-8000-000000000001")


@pytest.fixture(params=REFUSALS)
def refusal(request: pytest.FixtureRequest) -> bytes:
    status, body, kind = REFUSALS[request.param]
    return reply(body, status=status, kind=kind)


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server(patience=10**9) as server:
        yield server


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between retries, which take no time here."""
    taken: list[float] = []
    ask = retry.Backoff.next_delay

    def next_delay(self: retry.Backoff, attempt: float = 0.0) -> float:
        taken.append(self._delay)  # varied by up to a half, delays need not grow
        ask(self, attempt)
        return 0.0

    monkeypatch.setattr(retry.Backoff, "next_delay", next_delay)
    return taken


def always(response: bytes) -> Reply:
    return lambda _method, _path: response


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def dials(server: OddServer, path: str) -> int:
    return sum(method == "GET" and path in asked for method, asked in server.asked)


async def wait_until(condition: Any) -> None:
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.01)


def grows(delays: list[float]) -> bool:
    return all(before < after for before, after in pairwise(delays[: TRIES - 1]))


@asynccontextmanager
async def ended_by(task: Any) -> AsyncIterator[None]:
    """Run `task` during the block, and cancel it afterwards."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        yield
        nursery.cancel_scope.cancel()


async def test_dialling_raises_the_status(refusal: bytes, server: OddServer) -> None:
    server.answer = always(refusal)
    with pytest.raises(HttpError) as refused:
        await connect_websocket(DialPolicy(server.url), "/api/v2/workspaceagents/me/rpc")
    error = refused.value
    assert error.status == status_of(refusal)
    assert error not in [item.__cause__ for item in causes(error)]
    assert explain_error(error).startswith(f"unexpected status {error.status}")


async def test_agent_retries_and_logs(refusal: bytes, server: OddServer, delays: list[float], tmp_path: Path) -> None:
    server.answer = always(refusal)
    lines: list[str] = []
    policy = DialPolicy(server.url, token=Secret("x"))
    agent = AgentRole(AgentConfig(policy, Secret("x"), tmp_path, tmp_path, executable="coder", socket_enabled=False))
    sink: Any = lambda _level, _at, _name, message, fields: lines.append(f"{message}: {fields.get('error')}")  # noqa: E731
    with log.also(sink):
        async with ended_by(agent.run):
            await wait_until(lambda: dials(server, "/me/rpc") >= TRIES)
    retries = [line for line in lines if line.startswith("the connection to the server closed; redialling")]
    assert len(retries) >= TRIES - 1 and all(f"unexpected status {status_of(refusal)}" in line for line in retries)
    assert grows(delays)


async def test_link_retries_or_explains(refusal: bytes, server: OddServer, delays: list[float]) -> None:
    """Connect as `coder ssh` does. The API answers, the coordinator does not, as behind proxies that refuse
    WebSockets.
    """
    whole = flawed_answer("whole", 0)
    server.answer = lambda method, path: refusal if "/coordinate" in path else whole(method, path)
    errors: list[CoderError] = []

    async def link() -> None:
        try:
            async with open_link(DialPolicy(server.url, token=Secret("x")), AGENT, direct=False):
                await trio.sleep_forever()
        except* CoderError as group:
            errors.extend(item for item in group.exceptions if isinstance(item, CoderError))

    async with ended_by(link):
        await wait_until(lambda: errors or dials(server, "/coordinate") >= TRIES)
    is_final = status_of(refusal) in {403, 404}
    assert bool(errors) is is_final and (is_final or grows(delays))
    assert all(f"status {status_of(refusal)}" in error_text(item, is_terminal=False) for item in errors)


async def test_ssh_without_websockets_fails(server: OddServer, tmp_path: Path) -> None:
    whole = flawed_answer("whole", 0)
    forbidden = reply("<html>forbidden</html>", status="403 Forbidden", kind="text/html")
    server.answer = lambda method, path: forbidden if "/coordinate" in path else whole(method, path)
    env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "CODER_DISABLE_DIRECT_CONNECTIONS": "true"}
    result = await run_cli(["ssh", "--wait=no", "w", "true"], home=tmp_path, env=env)
    assert result.code == 1 and "unexpected status 403: <html>forbidden</html>" in result.stderr


async def test_provisioner_retries_or_explains(
    refusal: bytes, server: OddServer, delays: list[float], tmp_path: Path
) -> None:
    server.answer = always(refusal)
    knock = _DaemonCredentials(DialPolicy(server.url), "default", "d", {}, Secret(""), Secret("psk"))
    errors: list[CoderError] = []

    async def daemon() -> None:
        try:
            await run_daemon(knock.connect, DaemonConfig(name="d", work_dir=tmp_path / "work"), {})
        except CoderError as error:
            errors.append(error)

    async with ended_by(daemon):
        await wait_until(lambda: errors or dials(server, "/serve") >= TRIES)
    is_final = status_of(refusal) in {403, 404}
    assert bool(errors) is is_final and (is_final or grows(delays))
    assert all(f"status {status_of(refusal)}" in error_text(item, is_terminal=False) for item in errors)


@pytest.mark.parametrize("cell", ["502 page", "403 JSON"])
def test_agent_program_stops_on_sigterm(cell: str, server: OddServer, tmp_path: Path) -> None:
    status, body, kind = REFUSALS[cell]
    server.answer = always(reply(body, status=status, kind=kind))
    env = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
    env |= {
        "CODER_AGENT_URL": server.url,
        "CODER_AGENT_TOKEN": str(AGENT),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "CODER_AGENT_SCRIPT_DATA_DIR": str(tmp_path),
        "CODER_AGENT_LOG_DIR": str(tmp_path),
    }
    with subprocess.Popen([sys.executable, "-m", "coder", "agent"], env=env, stderr=subprocess.PIPE) as agent:
        assert agent.stderr is not None
        said: list[bytes] = []
        for line in agent.stderr:
            said += [line] if b"redialling" in line else []
            if len(said) == TRIES:
                agent.send_signal(signal.SIGTERM)
        assert agent.wait() == 0
    assert len(said) >= TRIES and all(f"unexpected status {status[:3]}".encode() in line for line in said)
