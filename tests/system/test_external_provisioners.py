"""The examples of the guide to external provisioners, as written: daemons on a machine of their own, behind NAT."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.network.namespace_deployment import PASSWORD, URL, Deployment, sign_in
from tests.kit.network.network_namespaces import missing_tools, open_nat_network

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-"),
    pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed"),
]
TEMPLATE = 'resource "terraform_data" "box" {}\n'


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    folder = Path(tempfile.mkdtemp(prefix="coder-system-", dir="/tmp"))
    folder.chmod(0o755)  # the embedded Postgres runs as another user
    try:
        with open_nat_network() as world:
            found = Deployment(world, folder, extra={"CODER_PROVISIONER_DAEMONS": "0"})
            found.start_server()
            sign_in(found)
            (folder / "template").mkdir()
            (folder / "template" / "main.tf").write_text(TEMPLATE)
            yield found
            assert found.server is not None
            found.kill(found.server, signal.SIGTERM)
            found.server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def daemon(deployment: Deployment, *words: str, token: str) -> Iterator[subprocess.Popen[bytes]]:
    """`coder …` on the machine `agent`, signed in by environment as the guide has it, until the block ends."""
    env = deployment.env("agent") | {"CODER_URL": URL}
    if token:
        env["CODER_SESSION_TOKEN"] = token
    log = deployment.folder / "agent.log"
    log.write_bytes(b"")
    process = deployment.world.spawn("agent", *deployment.program(), *words, env=env, log=str(log))
    deployment.wait(lambda: b"connected" in log.read_bytes(), 60, "the daemon did not connect")
    try:
        yield process
    finally:
        if process.poll() is None:
            deployment.kill(process, signal.SIGTERM)
        assert process.wait(60) == 0


def create(deployment: Deployment, name: str, *tags: str) -> None:
    flags = [word for tag in tags for word in ("--provisioner-tag", tag)]
    deployment.coder("templates", "create", name, *flags, "-d", str(deployment.folder / "template"), "-y", check=True)


def admin_token(deployment: Deployment) -> str:
    return deployment.coder("login", "token", check=True).stdout.decode().strip()


def test_generic(deployment: Deployment) -> None:
    with daemon(deployment, "provisionerd", "start", token=admin_token(deployment)):
        create(deployment, "generic")
        (row,) = deployment.json("provisioner", "list", "-o", "json")
        assert (row["status"], row["key_name"]) == ("idle", "user-auth")


def test_tagged(deployment: Deployment) -> None:
    tags = ("--tag", "environment=on_prem", "--tag", "data_center=chicago")
    with daemon(deployment, "provisionerd", "start", *tags, token=admin_token(deployment)):
        create(deployment, "on-prem", "environment=on_prem")
        create(deployment, "on-prem-chicago", "environment=on_prem", "data_center=chicago")
        # "Tagged provisioners can also pick jobs from untagged templates."
        deployment.coder("create", "plain", "--template=generic", "-y", check=True)
        jobs = deployment.json("provisioner", "jobs", "list", "-o", "json")
        assert [job["status"] for job in jobs[-3:]] == ["succeeded"] * 3, "the newest are last"
        assert jobs[-2]["tags"]["data_center"] == "chicago"


def test_user(deployment: Deployment) -> None:
    start = ("provisionerd", "start", "--tag", "scope=user")
    with daemon(deployment, *start, token=admin_token(deployment)):
        create(deployment, "personal", "scope=user")
    alice = member(deployment, "alice")
    with daemon(deployment, *start, "--name", "alices", token=alice):
        deployment.coder("--token", alice, "create", "own", "--template=personal", "-y", check=True)
        (*_, job) = deployment.json("provisioner", "jobs", "list", "-o", "json")
        assert (job["worker_name"], job["metadata"]["workspace_name"], job["status"]) == ("alices", "own", "succeeded")


def test_key(deployment: Deployment) -> None:
    made = deployment.coder("provisioner", "keys", "create", "moon", "--tag", "place=moon", check=True)
    key = made.stdout.decode().splitlines()[-1]
    env = deployment.env("agent") | {"CODER_URL": URL, "CODER_PROVISIONER_DAEMON_KEY": key}
    log = deployment.folder / "agent.log"
    log.write_bytes(b"")
    process = deployment.world.spawn("agent", *deployment.program(), "provisioner", "start", env=env, log=str(log))
    deployment.wait(lambda: b"connected" in log.read_bytes(), 60, "the daemon did not connect")
    create(deployment, "lunar", "place=moon")
    deployment.coder("provisioner", "keys", "delete", "moon", "-y", check=True)
    assert process.wait(60) == 1
    assert re.search(rb"provisioner daemon key invalid", log.read_bytes())


def member(deployment: Deployment, name: str) -> str:
    """A new user's session token, by the API: the client stays who it is."""
    token = admin_token(deployment)
    person = (
        f'{{"email": "{name}@example.com", "username": "{name}", "password": "{PASSWORD}", "organization_ids": '
        f'["{deployment.json("templates", "list", "-o", "json")[0]["Template"]["organization_id"]}"]}}'
    )
    post(deployment, "/api/v2/users", person, token)
    entry = f'{{"email": "{name}@example.com", "password": "{PASSWORD}"}}'
    found = re.search(r'"session_token": ?"([^"]+)"', post(deployment, "/api/v2/users/login", entry))
    assert found is not None
    return found.group(1)


def post(deployment: Deployment, path: str, body: str, token: str = "") -> str:
    command = ["curl", "-fsS", "-H", "Content-Type: application/json", "--data-binary", "@-", f"{URL}{path}"]
    if token:
        command[1:1] = ["-H", f"Coder-Session-Token: {token}"]
    done = deployment.world.run("client", *command, stdin=body.encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()
