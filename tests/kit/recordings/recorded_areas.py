"""What the recorded areas need besides a server: an agent, an echo server, an identity provider, bursts.

    async with recorded_area("oidc", folder) as world:
        report = await world.replay()

The recordings' README and the notes of their lines say what ran when; here it is set up.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.child_env import child_env
from coder.base.clock import FakeClock
from coder.cli.provisioning.builtin_daemons import builtin_daemons
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import ECHO
from tests.kit.recordings.answer_comparison import Names
from tests.kit.recordings.exchange_replay import (
    OURS,
    POLL_SECONDS,
    Before,
    Recordings,
    Report,
    replay_area,
    server_settings,
)
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.stand_ins.oidc_provider import IdentityProvider, identity_provider

BUILDS = ("agents", "builds", "provisioners", "tasks", "templates", "workspace_options", "workspaces")
"""Areas with builds: they need Terraform."""
PLAIN = (
    "auth",
    "deployment",
    "external_auth",
    "files",
    "first_user",
    "http",
    "oauth2_provider",
    "oidc",
    "organizations",
    "ratelimit",
    "tokens",
    "users",
)
AREAS = tuple(sorted((*BUILDS, *PLAIN)))
ROOT = Path(__file__).resolve().parents[3]
_AGENT_FROM, _AGENT_UNTIL = 84, 145
"""Lines of `agents` between which the recorded agent ran (its notes say so)."""
_LISTING = {48}
_CANCELLED = 82
"""The line of `builds` that cancels a build while terraform applies it (its error says so)."""
_INVALID_FROM, _INVALID_UNTIL = 36, 37
"""Lines of `external_auth` during which the provider calls the token invalid."""


@dataclass
class RecordedArea:
    """A server in the area's start state."""

    area: str
    world: World
    names: dict[str, str] = field(default_factory=dict)
    before: Before | None = None
    recordings: Recordings = OURS

    async def replay(self) -> Report:
        return await replay_area(self.world.url, self.area, self.names, self.before, self.recordings)


@contextlib.asynccontextmanager
async def recorded_area(area: str, folder: Path, recordings: Recordings = OURS) -> AsyncIterator[RecordedArea]:
    """The server of an area and what runs beside it, for the length of the block. `folder` is for files."""
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(identity_provider()) if area in {"oidc", "external_auth"} else None
        settings: dict[str, Any] = dict(server_settings(area, idp.url if idp else "", recordings))
        if area in {*BUILDS, "external_auth", "deployment"}:
            _terraform_settings(stack, folder)
            settings |= {"provisioner": builtin_daemons, "provisioner_daemons": 3, "cache_dir": folder}
        if area == "deployment":
            # The health report is of a quiet machine.
            settings["health_check_threshold_database"] = timedelta(minutes=1)
        # A program to hand out, whatever this machine has built before.
        programs = folder / "cache" / "bin"
        programs.mkdir(parents=True)
        (programs / "coder-linux-amd64").write_bytes(b"#!/bin/sh\nexit 0\n" * 500)
        settings["cache_dir"] = programs.parent
        # Limits are counted by the minute: a replay must not run from one into the next.
        clock = FakeClock(datetime.now(UTC)) if area == "ratelimit" else None
        async with running_coderd(clock=clock, **settings) as world:
            if area != "first_user":
                created = await world.post("/api/v2/users/first", FIRST_USER)
                assert created.status_code == 201, created.text
            found = RecordedArea(area, world, {"idp_url": idp.url} if idp else {}, recordings=recordings)
            found.before = _beside(recordings, area, world, idp, stack, folder)
            yield found


def _terraform_settings(stack: contextlib.ExitStack, folder: Path) -> None:
    """The recorded server's terraform was told of a file by its environment; logs have that line."""
    if Path(os.environ.get("TF_CLI_CONFIG_FILE") or folder / "none").is_file():
        return
    (folder / "terraform.rc").touch()
    patch = pytest.MonkeyPatch()
    stack.callback(patch.undo)
    patch.setenv("TF_CLI_CONFIG_FILE", str(folder / "terraform.rc"))


def _beside(
    recordings: Recordings,
    area: str,
    world: World,
    idp: IdentityProvider | None,
    stack: contextlib.ExitStack,
    folder: Path,
) -> Before | None:
    if idp is not None:
        return _claims(idp, recordings) if area == "oidc" else _validity(idp)
    if area == "agents":
        stack.enter_context(_echo_server())
        return stack.enter_context(_Agent(world.url, folder)).before
    beside = {
        "ratelimit": _bursts,
        "deployment": _attempt,
        "users": _first_use,
        "builds": _applying,
        "workspaces": _settled,
    }
    return beside.get(area, _nothing)(world)


def _claims(idp: IdentityProvider, recordings: Recordings) -> Before:
    """The provider says of a person what the next line's note has."""
    notes = {line["n"]: line["note"] for line in recordings.lines("oidc")}

    async def before(number: int, _names: Names) -> None:
        told = re.search(r"claims (\{.*\})", notes[number])
        if told:
            idp.claims = json.loads(told[1])

    return before


def _validity(idp: IdentityProvider) -> Before:
    idp.user_code, idp.device_code, idp.interval = "ABCD-1234", "dc-1", 5

    async def before(number: int, _names: Names) -> None:
        idp.valid = not _INVALID_FROM <= number < _INVALID_UNTIL

    return before


def _bursts(world: World) -> Before:
    """Requests between the recorded lines: notes speak of "after 59 requests within a minute" and "after 13"."""

    async def before(number: int, names: Names) -> None:
        async with http_client(world.url) as client:
            if number == 8:
                for _ in range(59):
                    await client.post("/api/v2/users/login", json={"email": "zz@b.c", "password": "x"})
            if number == 18:
                headers = {"Content-Type": "application/x-tar", "Coder-Session-Token": names.bound["token.admin"]}
                for _ in range(13):
                    await client.post("/api/v2/files", content=b"garbage", headers=headers)

    return before


def _attempt(world: World) -> Before:
    """What later lines show of the audit log has alice's refused attempt in it."""
    return _set_aside(world, 116, "PATCH", "/api/v2/settings/idpsync/organization")


def _first_use(world: World) -> Before:
    """Lines after 39 show that alice has used the session she got in line 38; without a use nobody was seen."""
    return _set_aside(world, 39, "GET", "/api/v2/users/me")


def _set_aside(world: World, number: int, method: str, path: str) -> Before:
    """Asks once, as alice, what a line that is set aside asked, where the replay has not got it."""
    done = False

    async def before(now: int, names: Names) -> None:
        nonlocal done
        if now >= number and not done:
            done = True
            if now > number:
                headers = {"Coder-Session-Token": names.bound["token.alice"], "User-Agent": "conformance-client"}
                async with http_client(world.url) as client:
                    body: dict[str, str] | None = None if method == "GET" else {}
                    await client.request(method, path, json=body, headers=headers)

    return before


def _applying(world: World) -> Before:
    async def before(number: int, names: Names) -> None:
        if number != _CANCELLED:
            return
        headers = {"Coder-Session-Token": names.bound["token.admin"]}
        url = f"/api/v2/workspacebuilds/{names.bound['build.ws']}/logs"
        with trio.fail_after(POLL_SECONDS):
            async with http_client(world.url, headers=headers) as client:
                while not any(
                    row["stage"] == "Starting workspace" and "Creating" in row["output"]
                    for row in (await client.get(url)).json()
                ):
                    await trio.sleep(0.05)

    return before


def _settled(world: World) -> Before:
    """Lines that list several workspaces show running ones first: they were recorded when all builds had ended."""

    async def before(number: int, names: Names) -> None:
        if number not in _LISTING:
            return
        headers = {"Coder-Session-Token": names.bound["token.admin"]}
        with trio.fail_after(POLL_SECONDS):
            async with http_client(world.url, headers=headers) as client:
                while any(
                    one["latest_build"]["job"]["status"] in {"pending", "running"}
                    for one in (await client.get("/api/v2/workspaces")).json()["workspaces"]
                ):
                    await trio.sleep(0.05)

    return before


def _nothing(_world: World) -> None:
    return None


class _Agent:
    """Our own agent, started and stopped where the recording had one."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    async def before(self, number: int, names: Names) -> None:
        if _AGENT_FROM <= number < _AGENT_UNTIL and self._process is None:
            env = child_env({"CODER_AGENT_TOKEN": names.bound["token.agent"], "CODER_AGENT_URL": self._url})
            env["CODER_AGENT_DEVCONTAINERS_ENABLE"] = "false"  # as line 86 says; else it depends on the machine
            self._process = subprocess.Popen(
                [sys.executable, "-m", "coder", "agent", "--log-dir", str(self._folder)],
                cwd=ROOT,
                env={**env, "HOME": str(self._folder)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        elif number >= _AGENT_UNTIL and self._process is not None and self._process.poll() is None:
            await trio.to_thread.run_sync(self._stop)

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class _Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        forwarded = "X-Forwarded-For" in self.headers
        body = f"hello {self.path} cookies={self.headers.get('Cookie', '')} fwd={forwarded}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _echo_server() -> Iterator[None]:
    """The web server the recorded workspace had on this port."""
    server = ThreadingHTTPServer(("127.0.0.1", ECHO), _Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
