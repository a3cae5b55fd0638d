"""The wheel in an empty virtual environment and home: a server with its own PostgreSQL and the dashboard, login, a
template, a workspace on this machine, ssh and port-forward into it, a backup.

Once with the requirements of this environment; in long runs also with every requirement installed anew.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import sysconfig
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
TERRAFORM = shutil.which("terraform") or shutil.which("tofu") or "terraform"
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not (ROOT / "coder/dashboard/dist").is_dir(), reason="the dashboard is not built"),
]
PASSWORD = "Wheel-Password-7-very-long"
SYSTEM = {"PATH": f"{Path(TERRAFORM).parent}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
PIP = ("-m", "pip", "-q", "--disable-pip-version-check")
FOR_PIP = ("PIP_", "SSL_", "REQUESTS_", "http", "no_proxy")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, *PIP, "wheel", "--no-deps", "-w", str(place), str(ROOT)]
    subprocess.run(build, check=True, env=pip_env())
    (made,) = place.glob("coder-*.whl")
    names = subprocess.run([sys.executable, "-m", "zipfile", "-l", made], capture_output=True, text=True, check=True)
    assert "coder/dashboard/dist/index.html" in names.stdout and "node_modules" not in names.stdout
    return made


@pytest.fixture(scope="module", params=["requirements of here", pytest.param("anew", marks=pytest.mark.soak)])
def coder(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The entry point in an environment of its own."""
    venv = tmp_path_factory.mktemp("environment") / "venv"
    python = venv / "bin/python"
    if request.param == "anew":
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        install: list[Any] = [python, *PIP, "install", "-c", ROOT / "scripts/constraints.txt", wheel]
    else:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        install = [sys.executable, *PIP, "--python", python, "install", "--no-deps", "--no-index", wheel]
        (folder,) = venv.glob("lib/python*/site-packages")
        # A path and no more: what it says of an editable project there is not read.
        (folder / "requirements.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    subprocess.run(install, check=True, env=pip_env())
    found = subprocess.run(
        [python, "-c", "import coder; print(coder.__file__)"], cwd="/", capture_output=True, check=True
    )
    assert found.stdout.decode().startswith(str(venv))
    return venv / "bin/coder"


def pip_env() -> dict[str, str]:
    return SYSTEM | {name: value for name, value in os.environ.items() if name.startswith(FOR_PIP)}


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
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


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


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"you said " + self.rfile.readline())


@contextmanager
def listening() -> Iterator[int]:
    """A service of the workspace's machine, which is this one."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def said_through(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
        stream.sendall(b"hello\n")
        return stream.makefile("rb").readline()


def test_first_steps(coder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    env = SYSTEM | {"HOME": str(home), "CODER_CONFIG_DIR": str(home / "config"), "CODER_TELEMETRY_ENABLE": "false"}
    url = f"http://127.0.0.1:{free_port()}"

    def run(*words: str) -> str:
        done = subprocess.run([coder, *words], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    assert "Full build" in run("version")
    server: list[str | Path] = [coder, "server", "--http-address", url[7:], "--access-url", url]
    with started([*server, "--derp-server-stun-addresses", "disable"], env, home / "server.log"):
        wait_for(
            f"{home / 'server.log'} says why", 90,
            lambda: urllib.request.urlopen(f"{url}/healthz", timeout=60).status == 200,
        )  # fmt: skip
        page = urllib.request.urlopen(f"{url}/", timeout=60).read()
        assert b"/assets/" in page  # the dashboard came along
        run(
            "login", url, "--first-user-username", "wheel", "--first-user-email", "wheel@example.com",
            "--first-user-password", PASSWORD, "--first-user-trial=false",
        )  # fmt: skip
        assert "wheel" in run("whoami") and json.loads(run("list", "--output", "json")) == []
        template = home / "template"
        run("templates", "init", "--id", "local-process", str(template))
        variables = ("--variable", f"coder_binary={coder}", "--variable", f"data_dir={home / 'workspaces'}")
        run("templates", "push", "local-process", "-d", str(template), "-y", *variables)
        run("create", "mine", "--template=local-process", "-y")
        try:
            (workspace,) = json.loads(run("list", "--output", "json"))
            assert workspace["name"] == "mine" and workspace["latest_build"]["status"] == "running"
            assert run("ssh", "mine", "echo here") == "here\n"
            port = free_port()
            with listening() as remote:
                forward: list[str | Path] = [coder, "port-forward", "mine", "--tcp", f"{port}:{remote}"]
                with started(forward, env, home / "forward.log"):
                    wait_for(
                        f"{home / 'forward.log'} says why", 60,
                        lambda: socket.create_connection(("127.0.0.1", port)).close() is None,
                    )  # fmt: skip
                    assert said_through(port) == b"you said hello\n"
        finally:
            run("delete", "mine", "-y")  # its agent is a process of this machine
        assert "restored once" in run("server", "backup", "--output", str(home / "backup"))
