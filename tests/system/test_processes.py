"""A server of several processes over real networks: each process is killed, and all are replaced, under sessions."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.network.namespace_deployment import (
    PROCESSES,
    WORKSPACE,
    Deployment,
    descendants,
    name_of,
    open_deployment,
)
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


def start_session(deployment: Deployment) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        deployment.world.argv("client", [*deployment.program(), "ssh", WORKSPACE, SESSION]),
        env=deployment.env("client"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def relayed_session(deployment: Deployment) -> Iterator[None]:
    """A session that has begun; it must end with every line."""
    session = start_session(deployment)
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        yield
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


@pytest.mark.soak
def test_reload_pauses_relayed_session_shortly(deployment: Deployment) -> None:
    """Three seconds are what docs/reliability.md promises for a session that moves to another relay."""
    session = start_session(deployment)
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        hang_up(deployment)
        lines, longest, last = ["line 1"], 0.0, time.monotonic()
        for line in session.stdout:
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            lines.append(line.decode().strip())
        assert session.wait(60) == 0
    finally:
        session.kill()
    assert "all processes were replaced" in (deployment.folder / "server.log").read_text()
    assert lines == [f"line {index}" for index in range(1, LINES + 1)]
    assert longest <= 3.0


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
def test_reload_finishes_running_build(deployment: Deployment) -> None:
    """The process of the built-in provisioners stays until its job has ended; its successor takes the next one."""
    folder = deployment.folder / "held"
    (folder / "template").mkdir(parents=True)
    folder.chmod(0o777)
    (folder / "template" / "main.tf").write_text(HELD.format(folder=folder))
    (folder / "hold").touch()
    deployment.coder("templates", "push", "held", "-d", str(folder / "template"), "-y", check=True)
    build = subprocess.Popen(
        deployment.world.argv("client", [*deployment.program(), "create", "held", "--template=held", "-y"]),
        env=deployment.env("client"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    try:
        deployment.wait((folder / "held").exists, SOON, "the build did not begin")
        before = deployment.server_processes()["loops"]
        hang_up(deployment)
        deployment.wait(lambda: loops(deployment) - {before} != set(), SOON, "there is no successor")
        assert before in loops(deployment)
        (folder / "hold").unlink()
        output = build.communicate(timeout=180)[0].decode()
        assert build.returncode == 0, (output, deployment.log_ends())
        assert output.count("the-build-went-on") == 1
        deployment.wait(lambda: before not in loops(deployment), SOON, "the former process stays")
        deployment.coder("delete", "held", "-y", check=True)
    finally:
        (folder / "hold").unlink(missing_ok=True)
        build.kill()


HELD = """
resource "terraform_data" "held" {{
  provisioner "local-exec" {{
    command = "touch {folder}/held; while [ -e {folder}/hold ]; do sleep 0.05; done; echo the-build-went-on"
  }}
}}
"""


def loops(deployment: Deployment) -> set[int]:
    assert deployment.server is not None
    return {pid for pid in descendants(deployment.server.pid) if name_of(pid) == "loops"}


def hang_up(deployment: Deployment) -> None:
    assert deployment.server is not None
    (deployment.folder / "server.log").write_text("")
    os.kill(deployment.server.pid, signal.SIGHUP)
