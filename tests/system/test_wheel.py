"""The wheel in an empty virtual environment and home: a server with its own PostgreSQL and the dashboard, login, list,
a template's files, a backup. Long: it installs every requirement anew."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.soak, pytest.mark.system]
PASSWORD = "Wheel-Password-7-very-long"
SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
FOR_PIP = ("PIP_", "SSL_", "REQUESTS_", "http", "no_proxy")


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The entry point in an environment of its own."""
    place = tmp_path_factory.mktemp("wheel")
    pip_env = SYSTEM | {name: value for name, value in os.environ.items() if name.startswith(FOR_PIP)}
    quiet = ["pip", "-q", "--disable-pip-version-check"]
    build = [sys.executable, "-m", quiet[0], *quiet[1:], "wheel", "--no-deps", "-w", str(place), str(ROOT)]
    subprocess.run(build, check=True, env=pip_env)
    (wheel,) = place.glob("coder-*.whl")
    names = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True)
    assert "coder/dashboard/dist/index.html" in names.stdout and "node_modules" not in names.stdout
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    install: list[Any] = [
        place / "venv/bin/python",
        "-m",
        *quiet,
        "install",
        "-c",
        ROOT / "scripts/constraints.txt",
        wheel,
    ]
    subprocess.run(install, check=True, env=pip_env)
    return place / "venv/bin/coder"


@contextmanager
def started(command: list[str | Path], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=env, stdout=file, stderr=file, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, seconds: float, ask) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while True:
        try:
            if ask():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def test_first_steps(coder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    env = SYSTEM | {"HOME": str(home), "CODER_CONFIG_DIR": str(home / "config"), "CODER_TELEMETRY_ENABLE": "false"}
    url = f"http://127.0.0.1:{free_port()}"

    def run(*words: str) -> str:
        done = subprocess.run([coder, *words], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    assert "Full build" in run("version")
    server: list[str | Path] = [
        coder,
        "server",
        "--http-address",
        url[7:],
        "--access-url",
        url,
        "--derp-server-stun-addresses",
        "disable",
    ]
    with started([*server, "--derp-server-stun-addresses", "disable"], env, home / "server.log"):
        wait_for(
            f"{home / 'server.log'} says why", 90,
            lambda: urllib.request.urlopen(f"{url}/healthz", timeout=5).status == 200,
        )  # fmt: skip
        page = urllib.request.urlopen(f"{url}/", timeout=5).read()
        assert b"/assets/" in page  # the dashboard came along
        run(
            "login", url, "--first-user-username", "wheel", "--first-user-email", "wheel@example.com",
            "--first-user-password", PASSWORD, "--first-user-trial=false",
        )  # fmt: skip
        template = home / "template"
        run("templates", "init", "--id", "externally-managed-workspace", str(template))
        assert json.loads(run("list", "--output", "json")) == []
        assert "wheel" in run("whoami")
        assert "restored once" in run("server", "backup", "--output", str(home / "backup"))
