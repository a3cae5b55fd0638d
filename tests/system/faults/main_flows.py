"""The main flows of a deployment while something fails, and the claims about them (docs/reliability.md).

    with scene.flows() as flows:
        … a fault is injected, and ends …
    # every claim has been checked

A build of an external provisioner is held in the middle of its apply, and its log is followed; an SSH session passes
the relay and counts; secrets are written one after another, and those that were acknowledged are noted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.network.namespace_deployment import (
    PROCESSES,
    URL,
    WORKSPACE,
    Deployment,
    StepFailedError,
    descendants,
    name_of,
)

FAKED = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
SOON = 90
TAG = "runs=here"
TEMPLATE = """
resource "terraform_data" "held" {{
  provisioner "local-exec" {{
    command = <<-EOT
      echo run >> {folder}/runs
      echo the-build-is-held
      touch {folder}/held
      while [ -e {folder}/hold ]; do sleep 0.05; done
      echo the-build-went-on
    EOT
  }}
}}
"""
SESSION = "i=0; while [ ! -e {folder}/enough ]; do i=$((i+1)); echo line $i; sleep 0.1; done; echo end"


@dataclass
class Writer:
    """Writes secrets until it is stopped."""

    deployment: Deployment
    prefix: str
    token: str
    acknowledged: list[str] = field(default_factory=list)
    tries: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(60)

    def _run(self) -> None:
        while not self._stopping.is_set():
            time.sleep(0.2)
            name = f"{self.prefix}{self.tries}"
            body = {"name": name, "value": "v", "env_name": name.upper()}
            done = self.curl("-X", "POST", "-d", json.dumps(body), f"{URL}/api/v2/users/me/secrets")
            if done.returncode == 0:
                self.acknowledged.append(name)
            self.tries += 1

    def curl(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        headers = ("-H", f"Coder-Session-Token: {self.token}", "-H", "Content-Type: application/json")
        return self.deployment.world.run("client", "curl", "-fsS", "--max-time", "2", *headers, *words)

    def remove(self) -> None:
        """Delete all secrets: a user may have so many only, and a failed case leaves its own."""
        names = [secret["name"] for secret in self.get("/api/v2/users/me/secrets")]
        if names:
            self.curl("-X", "DELETE", *(f"{URL}/api/v2/users/me/secrets/{name}" for name in names))

    def get(self, path: str) -> Any:
        """The answer's JSON, once there is one."""
        answers: list[bytes] = []

        def answered() -> bool:
            done = self.curl(f"{URL}{path}")
            answers.append(done.stdout)
            return done.returncode == 0

        self.deployment.wait(answered, SOON, f"{path} was not answered")
        return json.loads(answers[-1])


@dataclass
class Flows:
    """What goes on while something fails."""

    writer: Writer
    session: subprocess.Popen[bytes]
    build: subprocess.Popen[bytes]

    def wait_writes(self, count: int) -> None:
        """Until so many more were tried: a measure of time that needs a living client only."""
        until = self.writer.tries + count
        self.writer.deployment.wait(lambda: self.writer.tries >= until, 300, "the client stands still")


@dataclass
class Scene:
    """A deployment with an external provisioner daemon of its own host."""

    deployment: Deployment
    daemon: subprocess.Popen[bytes] | None = None
    count: int = 0

    @property
    def folder(self) -> Path:
        return self.deployment.folder / "flows"

    @property
    def work(self) -> Path:
        return self.deployment.folder / "daemon-cache"

    def start_daemon(self) -> None:
        words = ["provisioner", "start", "--name", "d", "--tag", TAG, "--cache-dir", str(self.work)]
        env = self.deployment.env("client") | {"CODER_URL": URL} | self.faked_clock()
        log = str(self.deployment.folder / "daemon.log")
        self.daemon = self.deployment.world.spawn("daemon", *self.deployment.program(), *words, env=env, log=log)

    def faked_clock(self) -> dict[str, str]:
        """Variables of a process whose clock `set_clock` sets; none without the tool for it."""
        if FAKED is None:
            return {}
        self.set_clock(0)
        return {
            "LD_PRELOAD": str(FAKED),
            "FAKETIME_TIMESTAMP_FILE": str(self.folder / "clock"),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set_clock(self, seconds: int) -> None:
        """Set the daemon's clock so far ahead."""
        (self.folder / "clock.new").write_text(f"{seconds:+d}")
        (self.folder / "clock.new").replace(self.folder / "clock")

    def prepare(self) -> None:
        """Start the daemon and create the template of the builds."""
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.start_daemon()
        template = self.folder / "template"
        template.mkdir()
        (template / "main.tf").write_text(TEMPLATE.format(folder=self.folder))
        self.deployment.coder(
            "templates", "push", "held", "-d", str(template), "--provisioner-tag", TAG, "-y", check=True
        )

    def token(self) -> str:
        return (Path(self.deployment.env("client")["CODER_CONFIG_DIR"]) / "session").read_text().strip()

    @contextlib.contextmanager
    def flows(self) -> Iterator[Flows]:
        """Begin the flows; at the end of the block, let them end, and check the claims."""
        self.count += 1
        for name in ("runs", "held", "enough"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "hold").touch()
        writer = Writer(self.deployment, f"case{self.count}x", self.token())
        session = self._start("ssh", WORKSPACE, SESSION.format(folder=self.folder))
        build = self._start("create", f"held{self.count}", "--template=held", "-y")
        try:
            assert session.stdout is not None
            assert session.stdout.readline() == b"line 1\n"
            self.deployment.wait((self.folder / "held").exists, SOON, "the build did not begin")
            writer.start()
            self.deployment.wait(lambda: bool(writer.acknowledged), SOON, "nothing could be written")
            flows = Flows(writer, session, build)
            yield flows
            self._finish(flows)
        finally:
            (self.folder / "hold").unlink(missing_ok=True)
            writer.stop()
            for process in (session, build):
                process.kill()
            writer.remove()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.deployment.world.argv("client", [*self.deployment.program(), *words]),
            env=self.deployment.env("client"),
            bufsize=0,  # `communicate` would lose what `readline` had read ahead
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if words[0] == "create" else subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )

    # ---- claims

    def _finish(self, flows: Flows) -> None:
        before = len(flows.writer.acknowledged)
        self.deployment.wait(
            lambda: len(flows.writer.acknowledged) > before + 1, SOON, "nothing can be written afterwards"
        )
        flows.writer.stop()
        (self.folder / "hold").unlink()
        self._check_build(flows)
        (self.folder / "enough").touch()
        self._check_session(flows)
        stored = {secret["name"] for secret in flows.writer.get("/api/v2/users/me/secrets")}
        assert set(flows.writer.acknowledged) <= stored, "an acknowledged write is lost"
        self.deployment.wait_agent("connected", SOON)
        self._check_nothing_left()

    def _check_build(self, flows: Flows) -> None:
        """The build ran once and succeeded, and who followed its log missed nothing."""
        output = flows.build.communicate(timeout=180)[0].decode()
        assert flows.build.returncode == 0, (output, self.logs())
        for text in (r"local-exec\): the-build-is-held", r"local-exec\): the-build-went-on", "Apply complete!"):
            assert len(re.findall(text, output)) == 1, (text, output)
        assert (self.folder / "runs").read_text() == "run\n", "the build ran twice"
        [row] = self.deployment.json("list", "-o", "json", "--search", f"name:held{self.count}")
        assert row["latest_build"]["job"]["status"] == "succeeded"

    def _check_session(self, flows: Flows) -> None:
        rest, _ = flows.session.communicate(timeout=180)
        lines = rest.decode().split("\n")
        assert flows.session.returncode == 0, (lines[-3:], self.logs())
        expected = [*(f"line {number}" for number in range(2, len(lines))), "end", ""]
        at = next((at for at, pair in enumerate(zip(lines, expected, strict=True)) if pair[0] != pair[1]), None)
        assert at is None, (f"other bytes after line {at}", lines[max(at - 3, 0) : at + 5], lines[-3:], self.logs())

    def _check_nothing_left(self) -> None:
        deployment = self.deployment
        assert deployment.server is not None and self.daemon is not None
        deployment.wait(lambda: not list(self.work.glob("*/job-*")), SOON, "a job's directory is left")
        deployment.wait(lambda: not descendants(self._daemon_pid()), SOON, "a process of the build is left")
        workers = [name_of(pid) for pid in descendants(deployment.server.pid)]
        for name in PROCESSES:
            assert workers.count(name) == 1, (name, workers)

    def _daemon_pid(self) -> int:
        assert self.daemon is not None
        return self.daemon.pid

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.deployment.folder.glob("*.log"))
        )

    def wait_said(self, log: str, text: str, since: int) -> None:
        """Until a log says something, from its byte `since` on."""
        path = self.deployment.folder / log

        def said() -> bool:
            with path.open("rb") as file:
                file.seek(since)
                return re.search(text, file.read().decode(errors="replace")) is not None

        try:
            self.deployment.wait(said, SOON, f"{log} does not say {text!r}")
        except StepFailedError as error:
            raise StepFailedError(f"{error}\n{self.logs()}") from None

    def size(self, log: str) -> int:
        path = self.deployment.folder / log
        return path.stat().st_size if path.exists() else 0


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each process that still lives."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
