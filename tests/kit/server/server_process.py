"""A real server as a plain process on loopback: embedded Postgres, built-in provisioners, the real terraform.

    with open_loopback() as server:
        server.url
        server.sign_in("ana@example.com", "…")      # from here on server.coder(…) is that person
        server.coder("templates", "push", …)
        agent = server.start_agent(token)

Needs no namespaces and no root: for tests of what a person sees, not of how packets travel
(tests/kit/network/namespace_deployment.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.free_ports import free_port

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = "externally-managed-workspace"


def program_under_test() -> tuple[str, ...]:
    """This source tree, or the built program that `./scripts/test --binary` names."""
    built = os.environ.get("CODER_TEST_BINARY")
    return (built,) if built else (sys.executable, "-m", "coder")


@dataclass
class Loopback:
    """What tests talk to. `token` is the session of the person the command line is."""

    folder: Path
    url: str
    options: tuple[str, ...] = ()
    "More of the server's command line."
    variables: dict[str, str] = field(default_factory=dict)
    "More of the server's environment."
    server: subprocess.Popen[bytes] | None = None
    token: str = ""
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def env(self, role: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TF_CLI_CONFIG_FILE") if name in os.environ}
        home = self.folder / role
        home.mkdir(mode=0o755, exist_ok=True)
        return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "CODER_CONFIG_DIR": str(home / "config")}

    def spawn(self, role: str, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A long-running role in its own process group; its output goes to <role>.log."""
        with (self.folder / f"{role}.log").open("ab") as log:
            return subprocess.Popen(
                [*program_under_test(), *args],
                env=self.env(role) | (env or {}),
                cwd=self.folder,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start_server(self) -> None:
        self.server = self.spawn(
            "srv",
            "server",
            "--http-address",
            self.url.removeprefix("http://"),
            "--access-url",
            self.url,
            "--cache-dir",
            str(self.folder / "cache"),
            "--derp-server-stun-addresses",
            "disable",
            "--stun-address",
            "127.0.0.1:0",
            "--provisioner-daemons",
            "1",
            *self.options,
            env=self.variables,
        )
        limit = time.monotonic() + 60
        while not self.answers():
            if self.server.poll() is not None or time.monotonic() > limit:
                raise AssertionError(f"the server did not answer\n{self.log_ends()}")
            time.sleep(0.05)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def request(self, method: str, path: str, body: object, token: str = "") -> Any:
        """One API call; the answer's JSON, None where it has none."""
        call = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), method=method)
        call.add_header("Content-Type", "application/json")
        if token:
            call.add_header("Coder-Session-Token", token)
        try:
            with urllib.request.urlopen(call, timeout=60) as answer:
                data = answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                raise AssertionError(f"{method} {path}: {refused.code} {refused.read().decode()}") from None
        return json.loads(data) if data else None

    def sign_in(self, email: str, password: str) -> None:
        self.token = self.request("POST", "/api/v2/users/login", {"email": email, "password": password})[
            "session_token"
        ]

    def coder(self, *args: str, limit: float = 120) -> str:
        """Runs the command line as the person of `sign_in`; its output."""
        env = self.env("client") | {"CODER_URL": self.url, "CODER_SESSION_TOKEN": self.token}
        done = subprocess.run(
            [*program_under_test(), *args],
            env=env,
            cwd=self.folder,
            capture_output=True,
            timeout=limit,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            text = f"coder {' '.join(args)}: {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"
            raise AssertionError(f"{text}\n{self.log_ends()}")
        return done.stdout.decode()

    def push_external_template(self) -> None:
        template = self.folder / "template"
        self.coder("templates", "init", "--id", TEMPLATE, str(template))
        self.coder("templates", "push", TEMPLATE, "-d", str(template), "-y")

    def create_external(self, name: str) -> None:
        self.coder("external-workspaces", "create", name, f"--template={TEMPLATE}", "-y")

    def program_file(self) -> Path:
        """The program as one file, as templates and machines want it."""
        program = self.folder / "coder"
        program.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec {shlex.join(program_under_test())} "$@"\n')
        program.chmod(0o755)
        return program

    def push_local_template(self) -> None:
        """The bundled template whose workspaces are processes of the server's own machine."""
        template, program = self.folder / "local-process", self.program_file()
        self.coder("templates", "init", "--id", "local-process", str(template))
        self.coder(
            "templates",
            "push",
            "local-process",
            "-d",
            str(template),
            "-y",
            "--variable",
            f"coder_binary={program}",
            "--variable",
            f"data_dir={self.folder / 'workspaces'}",
        )

    def start_agent(self, token: str) -> subprocess.Popen[bytes]:
        folder = str(self.folder / "agent")
        env = {"CODER_AGENT_TOKEN": token, "CODER_AGENT_URL": self.url}
        env |= {"CODER_AGENT_LOG_DIR": folder, "CODER_AGENT_SCRIPT_DATA_DIR": folder}
        self.agents.append(self.spawn("agent", "agent", env=env))
        return self.agents[-1]

    def write_agent_log(self, token: str, line: str, level: str = "info") -> None:
        """One line under the source every agent has, as a script's output would be sent."""
        body = {
            "log_source_id": "3b579bf4-1ed8-4b99-87a8-e9a1e3410410",
            "logs": [
                {"created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "output": line, "level": level}
            ],
        }
        self.request("PATCH", "/api/v2/workspaceagents/me/logs", body, token)

    def log_ends(self) -> str:
        parts = []
        for path in sorted(self.folder.glob("*.log")):
            parts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-40:]))
        return "\n".join(parts)


def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM, limit: float = 60) -> None:
    """Signals a role's process group and waits; kills what does not end in time."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        raise AssertionError(f"process {process.args!r} did not end within {limit} s") from None


@contextlib.contextmanager
def open_loopback(*options: str, before: Callable[[Loopback], None] | None = None) -> Iterator[Loopback]:
    """A fresh deployment without any user; everything of it is gone afterwards. `options`: of the server; `before`:
    called when its address is known and before it starts."""
    folder = Path(tempfile.mkdtemp(prefix="coder-loopback-", dir="/tmp"))
    folder.chmod(0o755)  # the embedded Postgres runs as another user
    found = Loopback(folder, f"http://127.0.0.1:{free_port()}", options)
    try:
        if before is not None:
            before(found)
        found.start_server()
        yield found
    finally:
        with contextlib.ExitStack() as ending:  # whatever does not end in time, the others are ended too
            ending.callback(shutil.rmtree, folder, ignore_errors=True)
            ending.callback(end_left_behind, f"CODER_AGENT_URL={found.url}")
            for process in (found.server, *found.agents):
                if process is not None:
                    ending.callback(end, process)


def end_left_behind(mark: str) -> None:
    """Kills every process with this in its environment: agents of workspaces nobody deleted outlive their server, and
    what they started outlives them."""
    for process in carriers(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def carriers(mark: str) -> list[int]:
    """Processes whose environment has exactly this entry."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
