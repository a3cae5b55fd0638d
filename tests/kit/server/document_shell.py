"""A shell for the commands of the user documents, with a deployment that they name.

    with open_document_shell("--provisioner-daemons=0") as place:
        place.run("coder provisionerd start …")

`coder` on PATH is the program under test. The server offers it under /bin, so `install.sh` and the attach command work.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.agents.attached_machine import serve_program
from tests.kit.server.server_process import Loopback, end, end_left_behind, open_loopback

EMAIL, PASSWORD = "admin@example.com", "SomeSecurePassword1!"


@dataclass
class DocumentShell:
    """A deployment with a first user, and a person's terminal."""

    server: Loopback
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url

    def env(self, role: str = "person", token: str | None = None) -> dict[str, str]:
        """Return the environment of a terminal; `token` "": not signed in."""
        home = self.server.folder / role
        home.mkdir(exist_ok=True)
        token = self.server.token if token is None else token
        kept = {name: os.environ[name] for name in ("LANG", "TF_CLI_CONFIG_FILE") if name in os.environ}
        kept |= {"HOME": str(home), "PATH": f"{self.server.folder / 'tools'}:{os.environ['PATH']}"}
        kept |= {"CODER_INSTALL_PREFIX": str(home / "local"), "CODER_AGENT_LOG_DIR": str(home)}
        kept |= {"CODER_AGENT_SCRIPT_DATA_DIR": str(home)}
        return kept | ({"CODER_URL": self.url, "CODER_SESSION_TOKEN": token} if token else {})

    def run(self, line: str, *, role: str = "person", token: str | None = None, code: int = 0) -> str:
        """Run a line of a document to its end and return both streams."""
        done = subprocess.run(
            ["sh", "-c", line],
            env=self.env(role, token),
            cwd=self.server.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=180,
            check=False,
        )
        output = done.stdout.decode()
        assert done.returncode == code, f"{line}: {done.returncode}\n{output}\n{self.server.log_ends()}"
        return output

    def json(self, line: str, **options: Any) -> Any:
        """Return the JSON that a line prints to stdout."""
        return json.loads(self.run(f"{line} 2>/dev/null", **options))

    @contextlib.contextmanager
    def running(self, line: str, *, until: str = "", role: str = "other", token: str | None = None) -> Iterator[Path]:
        """Run a line of a document in another terminal for the block; `until`: text that it prints first."""
        log = self.server.folder / f"{role}.terminal.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["sh", "-c", line],
                env=self.env(role, token),
                cwd=self.server.folder,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            self.wait(lambda: process.poll() is not None or until in log.read_text(errors="replace"), line)
            assert process.poll() is None, f"{line}\n{log.read_text(errors='replace')}"
            yield log
        finally:
            end(process)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        limit = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < limit, f"{what} did not happen\n{self.server.log_ends()}"
            time.sleep(0.05)

    def template(self, name: str, source: str) -> Path:
        folder = self.server.folder / f"template-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "main.tf").write_text(source)
        return folder

    def member(self, name: str, *roles: str) -> str:
        """Return the token of a new user."""
        organization = self.server.request("GET", "/api/v2/organizations/default", None, self.server.token)["id"]
        body = {"email": f"{name}@example.com", "username": name, "password": PASSWORD}
        body |= {"organization_ids": [organization], "user_status": "active"}  # type: ignore[dict-item]
        self.server.request("POST", "/api/v2/users", body, self.server.token)
        if roles:
            self.server.request("PUT", f"/api/v2/users/{name}/roles", {"roles": list(roles)}, self.server.token)
        entry = {"email": body["email"], "password": PASSWORD}
        return str(self.server.request("POST", "/api/v2/users/login", entry)["session_token"])

    def attach_command(self, workspace: str) -> str:
        """Return the line that `agent-instructions` prints."""
        printed = self.run(f"coder external-workspaces agent-instructions {workspace}")
        found = re.search(r"^curl .*$", printed, re.MULTILINE)
        assert found is not None, printed
        return found[0]

    def is_connected(self, workspace: str) -> bool:
        found = self.server.request("GET", f"/api/v2/users/me/workspace/{workspace}", None, self.server.token)
        agents = [agent for row in found["latest_build"]["resources"] for agent in row.get("agents") or []]
        return bool(agents) and all(agent["status"] == "connected" for agent in agents)


@contextlib.contextmanager
def open_document_shell(*options: str) -> Iterator[DocumentShell]:
    """Start a deployment with a first user, who is signed in in the terminal."""

    def prepare(server: Loopback) -> None:
        serve_program(server.folder / "cache")

    with open_loopback(*options, before=prepare) as server:
        tools = server.folder / "tools"
        tools.mkdir()
        shutil.move(server.program_file(), tools / "coder")
        first = {"email": EMAIL, "username": "admin", "password": PASSWORD}
        server.request("POST", "/api/v2/users/first", first)
        server.sign_in(EMAIL, PASSWORD)
        place = DocumentShell(server)
        try:
            yield place
        finally:
            end_left_behind(f"CODER_URL={server.url}")
