"""A server of several processes over real networks: each process is killed, and all are replaced, under sessions."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.network.namespace_deployment import PROCESSES, WORKSPACE, Deployment, open_deployment
from tests.kit.network.network_namespaces import missing_tools

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-")]
SOON = 90
LINES = 400
SESSION = f"for i in $(seq 1 {LINES}); do echo line $i; sleep 0.1; done"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with open_deployment({"CODER_PROCESSES": "2"}) as found:
        found.world.drop_udp()  # every packet passes the relay
        yield found


@contextlib.contextmanager
def relayed_session(deployment: Deployment) -> Iterator[subprocess.Popen[bytes]]:
    """A session that has begun; it must end with every line."""
    session = subprocess.Popen(
        deployment.world.argv("client", [*deployment.program(), "ssh", WORKSPACE, SESSION]),
        env=deployment.env("client"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        yield session
        rest, _ = session.communicate(timeout=180)
        assert session.returncode == 0, deployment.log_ends()
        assert rest.decode().split("\n")[:-1] == [f"line {index}" for index in range(2, LINES + 1)]
    finally:
        session.kill()


def test_terminal_is_served(deployment: Deployment) -> None:
    done = deployment.coder("exp", "rpty", WORKSPACE, "echo", "through-the-terminal")
    assert b"through-the-terminal" in done.stdout, done.stderr


def test_session_survives_each_lost_process(deployment: Deployment) -> None:
    with relayed_session(deployment):
        for name in PROCESSES:
            before = deployment.server_processes()
            os.kill(before[name], signal.SIGKILL)

            def replaced(name: str = name, before: int = before[name]) -> bool:
                return deployment.server_processes().get(name, before) != before and deployment.answers()

            deployment.wait(replaced, SOON, f"{name} was not replaced")
    deployment.wait_agent("connected", SOON)


def test_session_survives_reload(deployment: Deployment) -> None:
    before = deployment.server_processes()
    with relayed_session(deployment):
        supervisor = int(Path(f"/proc/{before['api-1']}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(supervisor, signal.SIGHUP)

        def all_replaced() -> bool:
            log = (deployment.folder / "server.log").read_text()
            return "all processes were replaced" in log and deployment.answers()

        deployment.wait(all_replaced, SOON, "the processes were not replaced")
    after = deployment.server_processes()
    assert after.pop("keeper") == before.pop("keeper")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert deployment.coder("ssh", WORKSPACE, "echo back").stdout == b"back\n"
