"""A server of several processes over real networks: each process is killed, and all are replaced, under sessions."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator

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
REPLACED = "all processes were replaced"
SESSION = "i=0; while [ ! -e {enough} ]; do i=$((i+1)); echo line $i; sleep 0.1; done; echo end"


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with open_deployment({"CODER_PROCESSES": "2"}) as found:
        found.world.drop_udp()  # every packet passes the relay
        yield found


@contextlib.contextmanager
def open_session(deployment: Deployment) -> Iterator[None]:
    """A session that has begun, and goes on until the end of the block; it must end with every line."""
    enough = deployment.folder / "enough"
    enough.unlink(missing_ok=True)
    session = subprocess.Popen(
        deployment.world.argv("client", [*deployment.program(), "ssh", WORKSPACE, SESSION.format(enough=enough)]),
        env=deployment.env("client"),
        bufsize=0,  # `communicate` would lose what `readline` had read ahead
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"line 1\n"
        yield
        enough.touch()
        rest, _ = session.communicate(timeout=180)
        assert session.returncode == 0, deployment.log_ends()
        lines = rest.decode().split("\n")
        assert lines == [*(f"line {number}" for number in range(2, len(lines))), "end", ""], "bytes are missing"
    finally:
        session.kill()


def test_terminal_is_served(deployment: Deployment) -> None:
    done = deployment.coder("exp", "rpty", WORKSPACE, "echo", "through-the-terminal")
    assert b"through-the-terminal" in done.stdout, done.stderr


def test_session_survives_each_lost_process(deployment: Deployment) -> None:
    with open_session(deployment):
        for name in PROCESSES:
            before = deployment.server_processes()
            os.kill(before[name], signal.SIGKILL)

            def replaced(name: str = name, before: int = before[name]) -> bool:
                return deployment.server_processes().get(name, before) != before and deployment.answers()

            deployment.wait(replaced, SOON, f"{name} was not replaced")
    deployment.wait_agent("connected", SOON)
    wait_processes(deployment)


def wait_processes(deployment: Deployment) -> None:
    """A process that is starting while the database goes away fails, and is replaced once more after a second."""
    deployment.wait(lambda: set(deployment.server_processes()) == set(PROCESSES), SOON, "a process is missing")


def test_session_survives_reload(deployment: Deployment) -> None:
    wait_processes(deployment)
    before = deployment.server_processes()
    with open_session(deployment):
        reload(deployment)
    after = deployment.server_processes()
    assert after.pop("keeper") == before.pop("keeper")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert deployment.coder("ssh", WORKSPACE, "echo back").stdout == b"back\n"


@pytest.mark.soak
@pytest.mark.parametrize("path", ["relayed", "direct"])
def test_session_survives_repeated_reloads(deployment: Deployment, path: str) -> None:
    """`scripts/bench replacements` measures how long a session pauses."""
    if path == "direct":
        deployment.world.allow_udp()
    try:
        deployment.wait(lambda: path_of(deployment) == path, SOON, f"the path is not {path}")
        with open_session(deployment):
            for _ in range(3):
                reload(deployment)
        assert path_of(deployment) == path
    finally:
        deployment.world.drop_udp()


def path_of(deployment: Deployment) -> str:
    """The path of the last of some pings: the first ones pass the relay until a direct path is found."""
    done = deployment.coder("ping", WORKSPACE, "-n", "5")
    ways = re.findall(rb"p2p via|proxied via DERP", done.stdout)
    return "none" if not ways else "direct" if ways[-1] == b"p2p via" else "relayed"


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
def test_reload_finishes_running_build(deployment: Deployment) -> None:
    """The process of the built-in provisioners stays until its job has ended; its successor takes the next one. The
    processes that serve the build's log are replaced meanwhile."""
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
        deployment.wait((folder / "runs").exists, SOON, "the build did not begin")
        before = deployment.server_processes()["loops"]
        for _ in range(2):
            reload(deployment)
            assert before in loops(deployment)
        (folder / "hold").unlink()
        output = build.communicate(timeout=180)[0].decode()
        assert build.returncode == 0, (output, deployment.log_ends())
        assert (folder / "runs").read_text() == "run\n", "the build ran twice"
        stored = deployment.coder("logs", "held", check=True).stdout.decode()
        for text in (output, stored):
            lines = re.findall(r"local-exec\): tick (\w+)", text)
            assert lines == [*map(str, range(1, len(lines))), "end"], text
            assert len(lines) > 10
        deployment.wait(lambda: before not in loops(deployment), SOON, "the former process stays")
        deployment.coder("delete", "held", "-y", check=True)
    finally:
        (folder / "hold").unlink(missing_ok=True)
        build.kill()


HELD = """
resource "terraform_data" "held" {{
  provisioner "local-exec" {{
    command = <<-EOT
      echo run >> {folder}/runs
      i=0
      while [ -e {folder}/hold ]; do i=$((i+1)); echo tick $i; sleep 0.2; done
      echo tick end
    EOT
  }}
}}
"""


def loops(deployment: Deployment) -> set[int]:
    assert deployment.server is not None
    return {pid for pid in descendants(deployment.server.pid) if name_of(pid) == "loops"}


def reload(deployment: Deployment) -> None:
    """Replace all processes, as `systemctl reload` does."""
    assert deployment.server is not None
    log = deployment.folder / "server.log"
    log.write_text("")
    os.kill(deployment.server.pid, signal.SIGHUP)
    deployment.wait(lambda: REPLACED in log.read_text() and deployment.answers(), SOON, "nothing was replaced")
