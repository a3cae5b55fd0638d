"""The container image, built by scripts/image without a registry and run by podman with runc, as root and rootless.

`./scripts/test --binary` runs it. Containers share the machine's network, so that every address is loopback.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coder.base.version import __version__
from tests.kit.free_ports import free_port
from tests.kit.programs.containers import Engine, image_skip, open_engine, ordinary_user
from tests.kit.programs.image_facts import archive_facts, dockerfile_facts
from tests.kit.server.server_process import Loopback, end

pytestmark = [pytest.mark.system, image_skip()]
ROOT = Path(__file__).resolve().parents[2]
IMAGE = f"localhost/coder:{__version__}"
EMAIL, PASSWORD = "ana@example.com", "SomeSecurePassword!1"
TEMPLATE = 'resource "terraform_data" "box" {}\n'


def build_image(folder: Path) -> Path:
    program = os.environ["CODER_TEST_BINARY"]
    out = folder / "image.tar"
    subprocess.run([ROOT / "scripts/image", "--program", program, "--out", str(out)], check=True, timeout=1200)
    return out


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module", params=["root", "rootless"])
def engine(archive: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    user = None if request.param == "root" else ordinary_user()
    if request.param == "rootless" and user is None:
        pytest.skip("no ordinary user has ranges in /etc/subuid and /etc/subgid")
    with open_engine(archive, user) as found:
        yield found


@dataclass
class Contained(Loopback):
    """A deployment whose server, provisioners and agents are containers; the command line is this machine's."""

    engine: Engine | None = None

    def start_container(self, role: str, *words: str) -> subprocess.Popen[bytes]:
        assert self.engine is not None
        with (self.folder / f"{role}.log").open("ab") as log:
            return subprocess.Popen(
                self.engine.container("--name", role, *words),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self, condition: Callable[[], bool], message: str, seconds: float = 120) -> None:
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, f"{message}\n{self.log_ends()}"
            time.sleep(0.2)

    @contextmanager
    def running(self, role: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A container until the block ends; `podman stop` ends it with SIGTERM, and its status is 0."""
        assert self.engine is not None
        process = self.start_container(role, *words)
        try:
            yield process
            self.engine.run("stop", "--time", "60", role)
            assert process.wait(60) == 0, self.log_ends()
        finally:
            end(process)


def variables(**values: str) -> list[str]:
    return [word for name, value in values.items() for word in ("-e", f"{name}={value}")]


@pytest.fixture(scope="module")
def deployment(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contained]:
    """The image's own command, `server`, with the PostgreSQL of the program."""
    port = free_port()
    found = Contained(tmp_path_factory.mktemp("contained"), f"http://127.0.0.1:{port}", engine=engine)
    settings = variables(
        CODER_HTTP_ADDRESS=f"127.0.0.1:{port}",
        CODER_ACCESS_URL=found.url,
        CODER_PROVISIONER_DAEMONS="0",
        CODER_DERP_SERVER_STUN_ADDRESSES="disable",
        CODER_STUN_ADDRESS="127.0.0.1:0",
    )
    # The chart makes the root file system read-only; what is written lies in the home and in /tmp.
    writable = ["--read-only", "--tmpfs", "/tmp", "--volume", "/home/coder"]
    with found.running("server", *writable, *settings, IMAGE) as process:
        found.wait(lambda: process.poll() is not None or found.answers(), "the server did not start")
        first = {"email": EMAIL, "username": "ana", "password": PASSWORD}
        found.request("POST", "/api/v2/users/first", first)
        found.sign_in(EMAIL, PASSWORD)
        yield found


def test_image_has_the_dockerfile_facts(archive: Path) -> None:
    described = dockerfile_facts(ROOT / "build/docker/Dockerfile")
    described["Labels"]["org.opencontainers.image.version"] = __version__
    configuration, layers = archive_facts(archive)
    config = configuration["config"]
    assert set(config.pop("Env")) == set(described.pop("Env"))
    labels = config.pop("Labels")
    assert described.pop("Labels").items() <= labels.items()
    assert {key: config[key] for key in described} == described
    assert (configuration["os"], configuration["architecture"]) == ("linux", "amd64")
    # A new version of the program changes the last layer only.
    assert "opt/coder" in layers[-1] and not any("opt/coder" in layer for layer in layers[:-1])
    assert any("usr/local/bin/terraform" in layer for layer in layers[:-1])


@pytest.mark.soak
def test_two_builds_are_identical(archive: Path, tmp_path: Path) -> None:
    assert build_image(tmp_path).read_bytes() == archive.read_bytes()


def test_programs_of_the_image_run(engine: Engine) -> None:
    script = "id -u; id -g; git --version; ssh -V 2>&1; curl --version; terraform version; coder version; touch /x"
    done = subprocess.run(
        engine.container("--entrypoint", "/bin/sh", IMAGE, "-c", script), capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["1000", "1000"] and done.returncode == 1, "user 1000 writes to its home only"
    said = "\n".join(lines[2:])
    assert all(word in said for word in ("git version", "OpenSSH", "curl ", "Terraform v", f"Coder v{__version__}"))


def test_server_offers_the_program(deployment: Contained) -> None:
    found = deployment.request("GET", "/api/v2/buildinfo", None)
    assert found["version"] == f"v{__version__}"


def test_documented_provisioner_command(deployment: Contained) -> None:
    """`docker run --rm -e … --entrypoint /opt/coder IMAGE provisionerd start`, as the guide has it."""
    login = variables(CODER_URL=f"{deployment.url}/", CODER_SESSION_TOKEN=deployment.token)
    template = deployment.folder / "plain"
    template.mkdir()
    (template / "main.tf").write_text(TEMPLATE)
    with deployment.running("provisioner", *login, "--entrypoint", "/opt/coder", IMAGE, "provisionerd", "start"):
        deployment.wait(lambda: "idle" in deployment.coder("provisioner", "list"), "no provisioner connected")
        deployment.coder("templates", "push", "plain", "-d", str(template), "-y")
        deployment.coder("create", "box", "--template=plain", "-y")
        assert "Started" in deployment.coder("list")
        deployment.push_external_template()
        deployment.create_external("machine")


def test_agent_in_a_container(deployment: Contained) -> None:
    """Runs after the provisioner's test, whose workspace it attaches."""
    shown: Any = deployment.request("GET", "/api/v2/workspaces?q=name:machine", None, deployment.token)
    if not shown["workspaces"]:
        pytest.skip("the provisioner created no workspace")
    workspace = shown["workspaces"][0]["id"]
    found = deployment.request(
        "GET", f"/api/v2/workspaces/{workspace}/external-agent/main/credentials", None, deployment.token
    )
    login = variables(CODER_AGENT_URL=deployment.url, CODER_AGENT_TOKEN=found["agent_token"])
    with deployment.running("agent", *login, IMAGE, "agent"):
        deployment.coder("ping", "machine", "-n", "1", "--wait", "60s")
        assert deployment.coder("ssh", "machine", "--", "cat", "/etc/debian_version").startswith("12")


def test_compose_starts_both_services(tmp_path: Path) -> None:
    """podman-compose reads the file and fills in what a person has to choose; a recorder is in podman's place, because
    the database's image comes from a registry."""
    if not shutil.which("podman-compose"):
        pytest.skip("podman-compose is not installed")
    recorder = tmp_path / "podman"
    recorder.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n[ "$1" = --version ] && echo podman version 4\nexit 0\n'
    )
    recorder.chmod(0o755)
    env = {**os.environ, "CODER_ACCESS_URL": "https://coder.example.com", "POSTGRES_PASSWORD": "secret"}
    command = ["podman-compose", "-f", str(ROOT / "build/docker/compose.yaml"), "--podman-path", str(recorder)]
    subprocess.run([*command, "up", "--detach"], env=env, check=True, capture_output=True, timeout=60)
    calls = (tmp_path / "calls").read_text().splitlines()
    database, server = [call for call in calls if " --name=" in call]
    assert "pg_isready -U coder -d coder" in database and "POSTGRES_PASSWORD=secret" in database
    assert "postgresql://coder:secret@database/coder?sslmode=disable" in server and "-p 3000:3000" in server
