"""The recorded exchanges around workspaces: builds by Terraform, and an agent in a process of its own.

As in `tests/unit/coderd/test_recorded.py`, what does not match yet is listed and the list may only shrink. Listed for
good: what depends on the moment an agent sends its logs and metadata (agents 84, 91, 92) and on the machine (85).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.child_env import child_env
from coder.cli.provisioners import builtin_daemons
from tests.kit.coderd import FIRST_USER, World, running_coderd
from tests.kit.equality import Names
from tests.kit.replay import Report, replay_area, server_settings

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not here"),
    # httpx leaves the generators of an event stream behind when its reader has seen enough
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KNOWN = Path(__file__).resolve().parents[1] / "data" / "api" / "replay_mismatches_builds.json"
ROOT = Path(__file__).resolve().parents[2]
AGENT_FROM, AGENT_UNTIL = 84, 145
"""Lines between which the recorded agent ran (its notes say so)."""


@pytest.mark.parametrize("area", ["workspaces", "builds", "workspace_options"])
async def test_recorded_area(area: str, tmp_path: Path) -> None:
    async with _server(area, tmp_path) as world:
        report = await replay_area(world.url, area)
    _compare(report)


async def test_recorded_agents(tmp_path: Path) -> None:
    async with _server("agents", tmp_path) as world:
        with _echo_server(), _Agent(world.url, tmp_path) as agent:
            report = await replay_area(world.url, "agents", before=agent.before)
    _compare(report)


class _server:  # noqa: N801 - reads as the function it stands for
    """A server with built-in daemons and the first user."""

    def __init__(self, area: str, folder: Path) -> None:
        settings: dict[str, Any] = {**server_settings(area), "provisioner_daemons": 3, "cache_dir": folder}
        self._running = running_coderd(provisioner=builtin_daemons, **settings)

    async def __aenter__(self) -> World:
        world = await self._running.__aenter__()
        assert (await world.post("/api/v2/users/first", FIRST_USER)).status_code == 201
        return world

    async def __aexit__(self, *error: Any) -> None:
        await self._running.__aexit__(*error)


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
        if AGENT_FROM <= number < AGENT_UNTIL and self._process is None:
            env = child_env({"CODER_AGENT_TOKEN": names.bound["token.agent"], "CODER_AGENT_URL": self._url})
            self._process = subprocess.Popen(
                [sys.executable, "-m", "coder", "agent", "--log-dir", str(self._folder)],
                cwd=ROOT,
                env={**env, "HOME": str(self._folder)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        elif number >= AGENT_UNTIL and self._process is not None and self._process.poll() is None:
            await trio.to_thread.run_sync(self._stop)

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
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
    server = ThreadingHTTPServer(("127.0.0.1", 19099), _Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _compare(report: Report) -> None:
    known: dict[str, list[int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    if os.environ.get("REPLAY_UPDATE"):
        print("\n".join(report.lines()))
        known[report.area] = sorted(report.mismatches)
        KNOWN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return
    new = {n: report.mismatches[n] for n in report.mismatches if n not in known.get(report.area, [])}
    assert not new, "\n".join(report.lines())
