"""The main job over real networks: server, agent and client on machines of their own, both sides behind NAT.

Every test runs twice: with UDP allowed (direct path) and with all UDP dropped (relay).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kit.network.namespace_deployment import SSH_OPTIONS, URL, WORKSPACE, Deployment, open_deployment
from tests.kit.network.network_namespaces import missing_tools

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-")]
HOST = f"coder.{WORKSPACE}"
SIZE = 100 << 20


@pytest.fixture(scope="module", params=["direct", "relay"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Deployment, str]]:
    with open_deployment() as deployment:
        if request.param == "relay":
            deployment.world.drop_udp()
        yield deployment, request.param


@pytest.fixture
def deployment(place: tuple[Deployment, str]) -> Deployment:
    return place[0]


def test_ping_reports_the_path(place: tuple[Deployment, str]) -> None:
    deployment, kind = place
    said: list[str] = []

    def answered_that_way() -> bool:
        """Every way begins at the relay; how many pings go by before a direct one is found is the machine's affair."""
        done = deployment.coder("ping", WORKSPACE, "-n", "6", "--wait", "500ms")
        said.append(done.stdout.decode())
        assert done.returncode == 0, said[-1] + deployment.log_ends()
        return ("p2p via" if kind == "direct" else "proxied via DERP") in said[-1]

    deployment.wait(answered_that_way, 60, f"no ping was answered that way: {said}")
    assert kind == "direct" or "p2p via" not in "".join(said)


def test_agent_listens_nowhere(deployment: Deployment) -> None:
    done = deployment.world.run("agent", "ss", "-Hltn")
    assert done.returncode == 0
    assert done.stdout.strip() == b""


def test_command_by_coder_ssh(deployment: Deployment) -> None:
    done = deployment.coder("ssh", WORKSPACE, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"out\n"), done.stderr
    assert b"err" in done.stderr
    assert deployment.coder("ssh", WORKSPACE, "cat", stdin=b"hello\n").stdout == b"hello\n"
    assert deployment.coder("ssh", WORKSPACE, "--env", "A=b", "echo $A").stdout == b"b\n"


def test_command_by_openssh(deployment: Deployment) -> None:
    done = deployment.ssh(HOST, "uname -s; exit 3")
    assert (done.returncode, done.stdout) == (3, b"Linux\n"), done.stderr
    assert deployment.ssh(f"{WORKSPACE}.coder", "true").returncode == 0


def test_terminal(deployment: Deployment) -> None:
    done = deployment.ssh("-tt", HOST, "test -t 0 && stty size")
    assert done.returncode == 0
    assert re.search(rb"\d+ \d+", done.stdout)


def test_scp_100_megabytes_each_way(deployment: Deployment) -> None:
    source = deployment.folder / "source.bin"
    source.write_bytes(os.urandom(SIZE))
    wanted = hashlib.sha256(source.read_bytes()).hexdigest()
    there, back = deployment.folder / "agent" / "there.bin", deployment.folder / "back.bin"
    up = deployment.ssh(str(source), f"{HOST}:{there}", tool="scp", timeout=300)
    assert up.returncode == 0, up.stderr
    assert hashlib.sha256(there.read_bytes()).hexdigest() == wanted
    down = deployment.ssh(f"{HOST}:{there}", str(back), tool="scp", timeout=300)
    assert down.returncode == 0, down.stderr
    assert hashlib.sha256(back.read_bytes()).hexdigest() == wanted
    for path in (source, there, back):
        path.unlink()


def test_sftp(deployment: Deployment) -> None:
    local = deployment.folder / "small"
    local.write_text("content")
    target = deployment.folder / "agent" / "sftp-target"
    batch = f"put {local} {target}\nchmod 600 {target}\nls -l {target}\nrm {target}\n"
    done = deployment.ssh("-b", "-", HOST, tool="sftp", stdin=batch.encode())
    assert done.returncode == 0, done.stderr
    assert not target.exists()


def test_forwarded_port(deployment: Deployment) -> None:
    """Each step is waited for by itself, so that a slow machine is not taken for a port that does not answer."""
    folder, log = deployment.folder / "agent", deployment.folder / "tunnel.log"
    (folder / "page.txt").write_text("through the tunnel")
    log.unlink(missing_ok=True)
    web = deployment.world.spawn(
        "agent", sys.executable, "-m", "http.server", "18080", "--bind", "127.0.0.1", "--directory", str(folder)
    )
    deployment.wait(lambda: listens(deployment, "agent", 18080), 60, "the workspace's web server did not start")
    tunnel = deployment.world.spawn(
        "client",
        "ssh",
        "-F",
        str(deployment.ssh_config),
        *SSH_OPTIONS,
        "-o",
        "ExitOnForwardFailure=yes",
        "-N",
        "-L",
        "18081:127.0.0.1:18080",
        HOST,
        env=deployment.env("client"),
        log=str(log),
    )
    deployment.wait(
        lambda: tunnel.poll() is not None or listens(deployment, "client", 18081), 60, "ssh did not get through"
    )
    assert tunnel.poll() is None, log.read_text() + deployment.log_ends()
    # ssh forwards from now on: the first request must be answered.
    done = deployment.world.run("client", "curl", "-fsS", "--max-time", "60", "http://127.0.0.1:18081/page.txt")
    assert done.stdout == b"through the tunnel", f"{done.stderr!r}\n{log.read_text()}{deployment.log_ends()}"
    for process in (tunnel, web):
        process.terminate()
        process.wait(60)


def listens(deployment: Deployment, host: str, port: int) -> bool:
    done = deployment.world.run(host, "ss", "-Hltn", f"sport = :{port}")
    return done.returncode == 0 and bool(done.stdout.strip())


def test_twenty_sessions_at_once(deployment: Deployment) -> None:
    def one(index: int) -> tuple[bytes, bytes]:
        result = deployment.ssh(HOST, f"echo {index}; sleep 1", timeout=180)
        return result.stdout, b"" if result.stdout else result.stderr

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(one, range(20))) == [(f"{index}\n".encode(), b"") for index in range(20)]


def test_external_workspaces_match_documents(deployment: Deployment) -> None:
    table = deployment.coder("external-workspaces", "list", check=True).stdout.decode().splitlines()
    assert re.split(r"\s{2,}", table[0]) == [
        "WORKSPACE",
        "TEMPLATE",
        "STATUS",
        "HEALTHY",
        "LAST BUILT",
        "CURRENT VERSION",
        "OUTDATED",
    ]
    assert re.split(r"\s{2,}", table[1])[1:4] == ["externally-managed-workspace", "Started", "true"]
    text = deployment.coder("external-workspaces", "agent-instructions", WORKSPACE, check=True).stdout.decode()
    assert f"Please run the following command to attach external agent to the workspace {WORKSPACE}:" in text
    shown = json.loads(
        deployment.coder("external-workspaces", "agent-instructions", WORKSPACE, "--output=json", check=True).stdout
    )
    assert list(shown) == ["workspace_name", "agent_name", "auth_type", "auth_token", "init_script"]
    assert shown["init_script"] == (
        f'curl -fsSL "{URL}/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="{shown["auth_token"]}" sh'
    )
    assert shown["init_script"] in text
