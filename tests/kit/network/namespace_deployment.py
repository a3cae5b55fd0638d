"""A whole deployment in network namespaces: server, an external machine with its agent, a person's laptop."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.network.network_namespaces import SERVER, NatNetwork, find_tool, open_nat_network
from tests.kit.server.server_process import program_under_test

URL = f"http://{SERVER}:3000"
PASSWORD = "Kit-Password-7-very-long"
WORKSPACE = "hello-world"
ROOT = Path(__file__).resolve().parents[3]
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=60")


PROCESSES = ("api-1", "api-2", "relay", "edge", "loops", "keeper")
"""With `--processes 2`."""


class StepFailedError(AssertionError):
    pass


def descendants(pid: int) -> list[int]:
    """Its children, and theirs."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            found += (numbers := list(map(int, children)))
            waiting += numbers
    return found


def name_of(pid: int) -> str:
    """How the process calls itself; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip().removeprefix("coder ")
    except OSError:
        return ""


@dataclass
class Deployment:
    """What tests talk to."""

    world: NatNetwork
    folder: Path
    server: subprocess.Popen[bytes] | None = None
    agent: subprocess.Popen[bytes] | None = None
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    def program(self) -> list[str]:
        return list(program_under_test())

    def env(self, role: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TF_CLI_CONFIG_FILE") if name in os.environ}
        home = self.folder / role
        home.mkdir(mode=0o755, exist_ok=True)
        return {
            **kept,
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "CODER_CONFIG_DIR": str(home / "config"),
            "PATH": kept.get("PATH", "") + ":/usr/sbin:/sbin",
            **self.extra,
        }

    def coder(
        self, *args: str, host: str = "client", stdin: bytes = b"", timeout: float = 120, check: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        done = self.world.run(host, *self.program(), *args, env=self.env(host), stdin=stdin, timeout=timeout)
        if check and done.returncode != 0:
            raise StepFailedError(f"coder {' '.join(args)}: {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}")
        return done

    def json(self, *args: str) -> Any:
        return json.loads(self.coder(*args, check=True).stdout)

    def ssh(
        self, *args: str, stdin: bytes = b"", timeout: float = 120, tool: str = "ssh"
    ) -> subprocess.CompletedProcess[bytes]:
        """OpenSSH by the file that `coder config-ssh` wrote."""
        command = [find_tool(tool), "-F", str(self.ssh_config), *SSH_OPTIONS, *args]
        return self.world.run("client", *command, env=self.env("client"), stdin=stdin, timeout=timeout)

    # ---- roles

    def start_server(self) -> None:
        self.server = self.world.spawn(
            "srv",
            *self.program(),
            "server",
            "--http-address",
            f"{SERVER}:3000",
            "--access-url",
            URL,
            "--cache-dir",
            str(self.folder / "cache"),
            "--stun-address",
            f"{SERVER}:3478",
            "--derp-server-stun-addresses",
            "disable",
            env=self.env("srv"),
            log=str(self.folder / "server.log"),
        )
        self.wait(self.answers, 60, "the server did not answer")

    def answers(self) -> bool:
        done = self.world.run("srv", "curl", "-fsS", "--max-time", "2", f"{URL}/healthz")
        return done.returncode == 0

    def start_agent(self) -> None:
        shown = self.json("external-workspaces", "agent-instructions", WORKSPACE, "--output=json")
        env = self.env("agent") | {"CODER_AGENT_TOKEN": shown["auth_token"], "CODER_AGENT_URL": URL}
        env["CODER_AGENT_LOG_DIR"] = env["CODER_AGENT_SCRIPT_DATA_DIR"] = str(self.folder / "agent")
        self.agent = self.world.spawn("agent", *self.program(), "agent", env=env, log=str(self.folder / "agent.log"))

    def kill(self, process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
        """Signals a role's whole process group, as `kill -9` of everything it is would."""
        os.killpg(process.pid, number)

    def server_processes(self) -> dict[str, int]:
        """The pids of the server's processes by name (`--processes`)."""
        assert self.server is not None
        found = {name_of(pid): pid for pid in descendants(self.server.pid)}
        return {name: pid for name, pid in found.items() if name in PROCESSES}

    def agent_status(self, workspace: str = WORKSPACE) -> str:
        done = self.coder("list", "-o", "json", "--search", f"name:{workspace}")
        for row in json.loads(done.stdout or b"[]"):  # nothing while the database is away
            for resource in row["latest_build"]["resources"]:
                for agent in resource.get("agents") or []:
                    return str(agent["status"])
        return "absent"

    def wait_agent(self, status: str, limit: float) -> float:
        return self.wait(lambda: self.agent_status() == status, limit, f"the agent did not become {status}")

    def wait(self, check: Callable[[], bool], limit: float, problem: str) -> float:
        """Seconds until `check` held. Fails with the logs' ends when it does not within `limit`."""
        began = time.monotonic()
        while not check():
            if time.monotonic() - began > limit:
                raise StepFailedError(f"{problem} within {limit} s\n{self.log_ends()}")
            time.sleep(0.05)
        return time.monotonic() - began

    def log_ends(self) -> str:
        parts = []
        for name in ("server.log", "agent.log"):
            path = self.folder / name
            if path.exists():
                parts.append(f"--- {name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-40:]))
        return "\n".join(parts)


@contextmanager
def open_deployment(extra: Mapping[str, str] | None = None, servers: Mapping[str, str] = {}) -> Iterator[Deployment]:
    """Server up, first user signed in on the client, the external workspace made and its agent connected. `servers`:
    further hosts beside the server, with their addresses."""
    folder = Path(tempfile.mkdtemp(prefix="coder-system-", dir="/tmp"))
    folder.chmod(0o755)  # the embedded Postgres runs as another user
    try:
        with open_nat_network(servers=servers) as world:
            deployment = Deployment(world, folder, extra=dict(extra or {}))
            deployment.start_server()
            sign_in(deployment)
            make_workspace(deployment)
            deployment.start_agent()
            deployment.wait_agent("connected", 60)
            yield deployment
            if deployment.server is not None and deployment.server.poll() is None:
                deployment.kill(deployment.server, signal.SIGTERM)
                deployment.server.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sign_in(deployment: Deployment) -> None:
    deployment.coder(
        "login",
        URL,
        "--first-user-email",
        "admin@example.com",
        "--first-user-username",
        "admin",
        "--first-user-full-name",
        "Admin",
        "--first-user-password",
        PASSWORD,
        "--first-user-trial=false",
        check=True,
    )


def make_workspace(deployment: Deployment) -> None:
    template = deployment.folder / "template"
    deployment.coder("templates", "init", "--id", "externally-managed-workspace", str(template), check=True)
    deployment.coder("templates", "push", "externally-managed-workspace", "-d", str(template), "-y", check=True)
    deployment.coder(
        "external-workspaces", "create", WORKSPACE, "--template=externally-managed-workspace", "-y", check=True
    )
    deployment.coder(
        "config-ssh",
        "-y",
        "--ssh-config-file",
        str(deployment.ssh_config),
        "--coder-binary-path",
        str(wrapper(deployment)),
        check=True,
    )


def wrapper(deployment: Deployment) -> Path:
    """A program file for ProxyCommand; in a release this is the binary."""
    path = deployment.folder / "coder"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(program_under_test())} "$@"\n')
    path.chmod(0o755)
    return path
