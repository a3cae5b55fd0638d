"""Killed processes and pulled cables: noticed, recovered from by themselves, sessions going on.

How soon is asked of simulated clocks (tests/unit/coderd/services/agents/test_agent_connections.py); here, by what it
was noticed: a closed connection tells at once, silence after a while.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.network.namespace_deployment import URL, WORKSPACE, Deployment, open_deployment
from tests.kit.network.network_namespaces import missing_tools

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-")]
SOON = 60
SESSION = "for i in $(seq 1 60); do echo line $i; sleep 0.25; done"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with open_deployment() as found:
        yield found


def test_killed_agent_is_detected_and_reconnects(deployment: Deployment) -> None:
    assert deployment.agent is not None
    deployment.kill(deployment.agent)
    deployment.wait_agent("disconnected", SOON)
    assert disconnects(deployment)[0]["ended"] == "closed"
    deployment.start_agent()
    deployment.wait_agent("connected", SOON)


def test_frozen_agent_is_detected_and_resumes(deployment: Deployment) -> None:
    assert deployment.agent is not None
    deployment.kill(deployment.agent, signal.SIGSTOP)
    deployment.wait_agent("disconnected", SOON)
    assert disconnects(deployment)[0]["ended"] == "silent"
    deployment.kill(deployment.agent, signal.SIGCONT)
    deployment.wait_agent("connected", SOON)
    deployment.wait(lambda: disconnects(deployment)[0]["told"], SOON, "the agent reports nothing")
    assert disconnects(deployment)[0]["cause"] == "slept", disconnects(deployment)[0]


def test_pulled_cable_is_seen(deployment: Deployment) -> None:
    deployment.world.unplug("agent")
    deployment.wait_agent("disconnected", SOON)
    assert disconnects(deployment)[0]["ended"] == "silent"
    deployment.world.unplug("agent", plugged=True)
    deployment.wait_agent("connected", SOON)
    deployment.wait(lambda: disconnects(deployment)[0]["told"], SOON, "the agent reports nothing")
    assert disconnects(deployment)[0]["cause"] == "network_lost", disconnects(deployment)[0]


def test_changed_address_has_its_name(deployment: Deployment) -> None:
    """The machine goes into another network, as a laptop does; the session it had goes on over the new address."""
    session = subprocess.Popen(
        deployment.world.argv("client", [*deployment.program(), "ssh", WORKSPACE, SESSION]),
        env=deployment.env("client"),
        bufsize=0,  # `communicate` would lose what `readline` had read ahead
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        known = len(disconnects(deployment))
        deployment.world.move("agent", "192.168.71.99")

        def named() -> bool:
            found = disconnects(deployment)
            return len(found) > known and found[0]["cause"] == "network_changed"

        deployment.wait(named, SOON, "the cause was not named")
        assert "192.168.71.99" in disconnects(deployment)[0]["detail"]
        rest, _ = session.communicate(timeout=120)
        assert session.returncode == 0
        assert rest.decode().split("\n")[:-1] == [f"line {index}" for index in range(2, 61)]
    finally:
        session.kill()
        deployment.world.move("agent", "192.168.71.2")
        deployment.wait_agent("connected", SOON)


def disconnects(deployment: Deployment) -> list[dict[str, Any]]:
    """What the server knows of the agent's absences, newest first."""
    [row] = deployment.json("list", "-o", "json", "--search", f"name:{WORKSPACE}")
    agent = row["latest_build"]["resources"][0]["agents"][0]["id"]
    token = (Path(deployment.env("client")["CODER_CONFIG_DIR"]) / "session").read_text().strip()
    asked = deployment.world.run(
        "client",
        "curl",
        "-fsS",
        "-H",
        f"Coder-Session-Token: {token}",
        f"{URL}/api/v2/workspaceagents/{agent}/disconnects",
    )
    assert asked.returncode == 0, asked.stderr
    found: list[dict[str, Any]] = json.loads(asked.stdout)
    return found


@pytest.mark.parametrize("path", ["direct", "relay"])
def test_killed_server_loses_nothing(deployment: Deployment, path: str) -> None:
    if path == "relay":
        deployment.world.drop_udp()
    try:
        before = deployment.json("list", "-o", "json")
        session = subprocess.Popen(
            deployment.world.argv("client", [*deployment.program(), "ssh", WORKSPACE, SESSION]),
            env=deployment.env("client"),
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        assert deployment.server is not None
        deployment.kill(deployment.server)
        kill_postgres(deployment)
        time.sleep(1)
        deployment.start_server()
        deployment.wait_agent("connected", SOON)
        rest, _ = session.communicate(timeout=120)
        assert session.returncode == 0
        assert rest.decode().split("\n")[:-1] == [f"line {index}" for index in range(2, 61)]
        after = deployment.json("list", "-o", "json")
        assert [row["id"] for row in after] == [row["id"] for row in before]
    finally:
        deployment.world.allow_udp()


def kill_postgres(deployment: Deployment) -> None:
    """Every process of the deployment's own database."""
    subprocess.run(["pkill", "-9", "-f", str(deployment.folder / "srv")], check=False)


def test_terminated_roles_leave_nothing(deployment: Deployment) -> None:
    assert deployment.agent is not None
    assert deployment.server is not None
    deployment.kill(deployment.agent, signal.SIGTERM)
    assert deployment.agent.wait(60) == 0
    deployment.kill(deployment.server, signal.SIGTERM)
    assert deployment.server.wait(60) == 0
    for host in ("srv", "agent"):
        left = deployment.world.run("core", "ip", "netns", "pids", deployment.world.name(host)).stdout.split()
        assert left == []
