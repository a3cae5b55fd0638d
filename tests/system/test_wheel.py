"""The wheel as people install it, with pipx into an empty home: a server with its own PostgreSQL and the dashboard,
login, a template, a workspace on this machine, ssh and port-forward into it, a backup.

Requirements come from the index, by what uv or pip keeps of earlier downloads. Without a way there pipx installs the
wheel alone, and the requirements are those of this environment.
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
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit.free_ports import free_port

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


@pytest.fixture(scope="module")
def coder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command that `pipx install` leaves on the PATH."""
    home = tmp_path_factory.mktemp("pipx-home")
    env = (
        pip_env()
        | caches()
        | {
            "HOME": str(home),
            "PIPX_HOME": str(home / "pipx"),
            "PIPX_BIN_DIR": str(home / "bin"),
            "PIPX_DEFAULT_PYTHON": sys.executable,
            "PIPX_DEFAULT_BACKEND": "pip",
        }
    )
    arguments = f"-c {ROOT / 'scripts/constraints.txt'}"
    told = uv_env()
    if told is not None:
        env |= told | {"PIPX_DEFAULT_BACKEND": "uv"}
    reached = index_answers(env)
    if not reached:
        arguments = "--no-deps --no-index"
    install: list[str | Path] = [sys.executable, "-m", "pipx", "install", "--quiet", f"--pip-args={arguments}", wheel]
    done = subprocess.run(install, env=env, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    venv = home / "pipx/venvs/coder"
    if not reached:
        (folder,) = venv.glob("lib/python*/site-packages")
        # A path and no more: what it says of an editable project there is not read.
        (folder / "requirements.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    code = "import coder, trio; print(coder.__file__, trio.__file__)"
    asked: list[str | Path] = [venv / "bin/python", "-c", code]
    found = subprocess.run(asked, env=SYSTEM, cwd="/", capture_output=True, text=True, check=True)
    assert found.stdout.count(str(venv)) == 1 + reached
    assert [path.name for path in (home / "bin").iterdir()] == ["coder"]
    return home / "bin/coder"


def caches() -> dict[str, str]:
    """What was downloaded once is taken from there, whatever the home is."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    given = {name: os.environ[name] for name in ("PIP_CACHE_DIR", "UV_CACHE_DIR") if name in os.environ}
    return {"PIP_CACHE_DIR": str(cache / "pip"), "UV_CACHE_DIR": str(cache / "uv"), **given}


def uv_env() -> dict[str, str] | None:
    """What uv has to be told so that it looks where pip does; None without uv, or when that cannot be said."""
    if find_spec("uv") is None:
        return None
    listed = subprocess.run([sys.executable, *PIP, "config", "list"], capture_output=True, check=True).stdout
    settings = [sys.executable, str(ROOT / "scripts/uv_settings.py")]
    said = subprocess.run(settings, input=listed, capture_output=True, check=False)
    return dict(line.split("=", 1) for line in said.stdout.decode().splitlines()) if said.returncode == 0 else None


def index_answers(env: dict[str, str]) -> bool:
    """Whether one small requirement can be had by the way all of them take."""
    command = [sys.executable, *PIP, "--timeout", "10", "--retries", "0", "download", "--no-deps", "--no-cache-dir"]
    with tempfile.TemporaryDirectory() as place:
        asked = subprocess.run([*command, "-d", place, "sniffio"], env=env, capture_output=True, check=False)
    return asked.returncode == 0


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
            f"{home / 'server.log'} says why",
            90,
            lambda: urllib.request.urlopen(f"{url}/healthz", timeout=60).status == 200,
        )
        page = urllib.request.urlopen(f"{url}/", timeout=60).read()
        assert b"/assets/" in page  # the dashboard came along
        run(
            "login",
            url,
            "--first-user-username",
            "wheel",
            "--first-user-email",
            "wheel@example.com",
            "--first-user-password",
            PASSWORD,
            "--first-user-trial=false",
        )
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
                        f"{home / 'forward.log'} says why",
                        60,
                        lambda: socket.create_connection(("127.0.0.1", port)).close() is None,
                    )
                    assert said_through(port) == b"you said hello\n"
        finally:
            run("delete", "mine", "-y")  # its agent is a process of this machine
        assert "restored once" in run("server", "backup", "--output", str(home / "backup"))
