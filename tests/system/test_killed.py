"""kill -9 of the daemon, of terraform and of the server, at each step of a build: the job ends, the state is kept.

Real processes on loopback. A stand-in for terraform stops before the step in question until the test says go.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kit.free_ports import free_port
from tests.kit.server.server_process import program_under_test

ROOT = Path(__file__).resolve().parents[2]
TERRAFORM = shutil.which("terraform") or ""
pytestmark = [pytest.mark.system, pytest.mark.skipif(not TERRAFORM, reason="terraform is not installed")]

STAND_IN = """#!/bin/sh
echo $$ > "{folder}/at-$1.tmp" && mv "{folder}/at-$1.tmp" "{folder}/at-$1"
while [ -e "{folder}/hold-$1" ]; do sleep 0.02; done
exec {terraform} "$@"
"""
TEMPLATE = """
resource "terraform_data" "good" {{}}
resource "terraform_data" "slow" {{
  depends_on = [terraform_data.good]
  provisioner "local-exec" {{
    command = <<-EOT
      echo $PPID > {folder}/at-exec.tmp
      mv {folder}/at-exec.tmp {folder}/at-exec
      while [ -e {folder}/hold-exec ]; do sleep 0.02; done
      echo done
    EOT
  }}
}}
"""
STEPS = ("plan", "apply", "exec")


@dataclass
class Place:
    """A server without daemons of its own, one external daemon, one workspace."""

    folder: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    workspaces: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, role: str) -> None:
        words = {
            "server": [
                "server",
                "--http-address",
                f"127.0.0.1:{self.port}",
                "--access-url",
                self.url,
                "--provisioner-daemons",
                "0",
                "--derp-server-stun-addresses",
                "disable",
                "--cache-dir",
                str(self.folder / "cache"),
            ],
            "daemon": [
                "provisioner",
                "start",
                "--name",
                "d",
                "--cache-dir",
                str(self.folder / "daemon"),
                "--terraform-path",
                str(self.folder / "terraform"),
            ],
        }[role]
        with (self.folder / f"{role}.log").open("ab") as log:
            self.processes[role] = subprocess.Popen(
                [*program_under_test(), *words],
                env=self.env(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if role == "server":
            self.wait(lambda: self.curl("/healthz").returncode == 0, "the server did not answer")

    def env(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(mode=0o755, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "CODER_URL": self.url,
            "CODER_CONFIG_DIR": str(home / "config"),
        }

    def curl(self, path: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["curl", "-fsS", "--max-time", "2", self.url + path], capture_output=True, check=False)

    def coder(self, *words: str, check: bool = True) -> bytes:
        done = subprocess.run(
            [*program_under_test(), *words], env=self.env(), capture_output=True, check=False, timeout=90
        )
        assert not check or done.returncode == 0, (done.stdout, done.stderr, self.logs())
        return done.stdout

    def kill(self, role: str) -> None:
        """With everything else of its process group, as `kill -9` of the whole service."""
        process = self.processes.pop(role)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)

    def wait(self, check: Callable[[], bool], problem: str, limit: float = 60) -> None:
        until = time.monotonic() + limit
        while not check():
            assert time.monotonic() < until, f"{problem}\n{self.logs()}"
            time.sleep(0.05)

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("*.log")))

    def hold(self, step: str) -> None:
        for path in self.folder.glob("at-*"):
            path.unlink()
        (self.folder / f"hold-{step}").touch()

    def reached(self, step: str) -> int:
        """Waits for the step; the process id of terraform there."""
        marker = self.folder / f"at-{step}"
        self.wait(marker.exists, f"the build never came to {step}")
        return int(marker.read_text())

    def go(self) -> None:
        for path in self.folder.glob("hold-*"):
            path.unlink()

    def build(self) -> dict[str, Any]:
        """The latest build of the workspace made last."""
        (row,) = json.loads(self.coder("list", "-o", "json", "--search", f"name:w{self.workspaces}"))
        build: dict[str, Any] = row["latest_build"]
        return build

    def create(self) -> None:
        self.workspaces += 1
        self.coder("create", f"w{self.workspaces}", "--template=t", "-y", "--no-wait")

    def ended(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def check() -> bool:
            found.append(self.build())
            return found[-1]["job"]["status"] in {"succeeded", "failed", "canceled"}

        self.wait(check, "the job never ended")
        return found[-1]

    def state(self, build: dict[str, Any]) -> set[str]:
        """Names of the resources in the build's state."""
        found = self.get(build, "state")
        return {one["name"] for one in json.loads(found)["resources"]} if found else set()

    def get(self, build: dict[str, Any], what: str) -> bytes:
        token = self.coder("login", "token").decode().strip()
        address = f"{self.url}/api/v2/workspacebuilds/{build['id']}/{what}"
        words = ["curl", "-fsS", "-H", f"Coder-Session-Token: {token}", address]
        return subprocess.run(words, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="coder-killed-", dir="/tmp"))
    folder.chmod(0o755)  # the embedded Postgres runs as another user
    found = Place(folder, free_port())
    stand_in = folder / "terraform"
    stand_in.write_text(STAND_IN.format(folder=folder, terraform=TERRAFORM))
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    (folder / "template").mkdir()
    (folder / "template" / "main.tf").write_text(TEMPLATE.format(folder=folder))
    try:
        found.start("server")
        found.coder(
            "login",
            found.url,
            "--first-user-email",
            "a@example.com",
            "--first-user-username",
            "admin",
            "--first-user-full-name",
            "A",
            "--first-user-password",
            "Killed-Password-7",
            "--first-user-trial=false",
        )
        found.start("daemon")
        found.coder("templates", "push", "t", "-d", str(folder / "template"), "-y")
        yield found
    finally:
        found.go()
        for role in list(found.processes)[::-1]:
            process = found.processes[role]
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                found.kill(role)
        shutil.rmtree(folder, ignore_errors=True)


QUICK = {("daemon", "exec"), ("server", "exec")}
"""The hardest two; the others take their time."""


@pytest.mark.parametrize(
    ("victim", "step"),
    [
        pytest.param(victim, step, marks=[] if (victim, step) in QUICK else [pytest.mark.soak])
        for victim in ("daemon", "terraform", "server")
        for step in STEPS
    ],
)
def test_killed_job_keeps_state(place: Place, victim: str, step: str) -> None:
    place.hold(step)
    place.create()
    pid = place.reached(step)
    if step == "exec":
        # The state reaches the server while the apply runs.
        place.wait(lambda: "good" in place.state(place.build()), "the server never heard of the state")
    if victim == "terraform":
        os.kill(pid, signal.SIGKILL)
    else:
        place.kill(victim)
        if victim == "server":
            place.go()  # terraform goes on without it
        place.start(victim)
    place.go()
    build = place.ended()
    if victim == "server":
        assert build["job"]["status"] == "succeeded", (build["job"], place.logs())
        assert place.state(build) == {"good", "slow"}
        # Its log went on where it stopped: nothing is missing, nothing is there twice.
        outputs = [one["output"] for one in json.loads(place.get(build, "logs"))]
        for said in ("good: Creation complete", "slow: (local-exec): done", "Apply complete!"):
            assert sum(said in output for output in outputs) == 1, (said, outputs)
        return
    assert build["job"]["status"] == "failed", (build["job"], place.logs())
    said = {"daemon": "killed while it worked", "terraform": "killed by signal 9"}[victim]
    assert said in build["job"]["error"]
    if step == "exec":
        assert "good" in place.state(build)
    # The daemon takes the next job, and what is left can be removed.
    place.coder("delete", f"w{place.workspaces}", "-y")
