"""The main job's figures, from the single binary on loopback: start-up, SSH, memory, throughput."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SETTLED = 5.0
"Seconds after which an agent has given back what it needed for a while."
PASSWORD = "Bench-Password-7-very-long"
SCP_BYTES = 100 << 20


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench first`."""
    binary = build()
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        return _measure(Place(binary, folder), 5 if quick else 15)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build() -> Path:
    """The program to measure: built if anything changed, unless CODER_TEST_BINARY names one."""
    if given := os.environ.get("CODER_TEST_BINARY"):
        return Path(given)
    note("building the binary if anything changed …")
    out = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "bin"
    subprocess.run([sys.executable, str(ROOT / "build/build.py"), "--out", str(out)], check=True, stdout=sys.stderr)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return out / f"coder-{sys.platform}-{machine}"


@dataclass(frozen=True, slots=True)
class ConnectedAgent:
    process: subprocess.Popen[bytes]
    seconds: float
    "From its start until it was seen connected; asking takes a command each time."


class Place:
    """One deployment on loopback."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{self.address}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CODER_")}
        self.env = {**kept, "CODER_CONFIG_DIR": str(folder / "config")}

    def coder(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [str(self.binary), *args], env=self.env, capture_output=True, check=True, stdin=subprocess.DEVNULL
        )

    @contextmanager
    def server(self) -> Iterator[float]:
        """Seconds from its start to its first answer."""
        with (self.folder / "server.log").open("ab") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                [
                    str(self.binary),
                    "server",
                    "--http-address",
                    self.address,
                    "--access-url",
                    self.url,
                    "--derp-server-stun-addresses",
                    "disable",
                    "--cache-dir",
                    str(self.folder / "cache"),
                ],
                env=self.env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            wait(self.answers)
            yield time.perf_counter() - began
        finally:
            end(process)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @contextmanager
    def agent(self) -> Iterator[ConnectedAgent]:
        shown = json.loads(self.coder("external-workspaces", "agent-instructions", "ws", "--output=json").stdout)
        env = {**self.env, "CODER_AGENT_TOKEN": shown["auth_token"], "CODER_AGENT_URL": self.url}
        with (self.folder / "agent.log").open("ab") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                [str(self.binary), "agent"],
                env=env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            wait(lambda: b'"status": "connected"' in self.coder("list", "-o", "json").stdout)
            yield ConnectedAgent(process, time.perf_counter() - began)
        finally:
            end(process)


def _measure(place: Place, rounds: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    rows: list[dict[str, Any]] = []
    note("coder version …")
    place.coder("version")
    rows.append(row("coder version, wall median", seconds(lambda: place.coder("version"), rounds) * 1000, "ms", 80))
    note("server …")
    with place.server() as first:
        rows.append(row("server ready, first start", first, "s", None))
        prepare(place)
    with place.server() as second, place.agent() as agent:
        rows.append(row("server ready, second start", second, "s", 3))
        rows += _with_agent(place, agent.process, rounds)
    skipped: dict[str, str] = {}
    rows += _mesh(skipped)
    return rows, skipped


def prepare(place: Place) -> None:
    place.coder(
        "login",
        place.url,
        "--first-user-email",
        "b@example.com",
        "--first-user-username",
        "bench",
        "--first-user-full-name",
        "B",
        "--first-user-password",
        PASSWORD,
        "--first-user-trial=false",
    )
    template = place.folder / "template"
    place.coder("templates", "init", "--id", "externally-managed-workspace", str(template))
    place.coder("templates", "push", "external", "-d", str(template), "-y")
    place.coder("external-workspaces", "create", "ws", "--template=external", "-y")


def _with_agent(place: Place, agent: subprocess.Popen[bytes], rounds: int) -> list[dict[str, Any]]:
    note("idle memory (10 s) …")
    time.sleep(10)
    rows = [row("agent idle RSS", rss(agent.pid), "MiB", 60)]
    note("coder ssh ws true …")
    place.coder("ssh", "ws", "true")
    rows.append(
        row("coder ssh ws true, wall median", seconds(lambda: place.coder("ssh", "ws", "true"), rounds), "s", 0.8)
    )
    rows.append(row("coder whoami, wall median", seconds(lambda: place.coder("whoami"), rounds) * 1000, "ms", 60))
    rows.append(row("coder list, wall median", seconds(lambda: place.coder("list"), rounds) * 1000, "ms", 100))
    config = place.folder / "ssh_config"
    place.coder("config-ssh", "-y", "--ssh-config-file", str(config))
    note("scp 100 MiB each way …")
    rows += _scp(place, config)
    time.sleep(SETTLED)
    rows.append(row("agent RSS, 5 s after transfers", rss(agent.pid), "MiB", 80))
    return rows


def _scp(place: Place, config: Path) -> list[dict[str, Any]]:
    source, there, back = (place.folder / name for name in ("source", "there", "back"))
    source.write_bytes(os.urandom(SCP_BYTES))

    def copy(origin: str, target: str) -> float:
        began = time.perf_counter()
        subprocess.run(
            ["scp", "-q", "-F", str(config), origin, target], env=place.env, check=True, stdin=subprocess.DEVNULL
        )
        return SCP_BYTES / (1 << 20) / (time.perf_counter() - began)

    into = statistics.median(copy(str(source), f"coder.ws:{there}") for _ in range(3))
    out = statistics.median(copy(f"coder.ws:{there}", str(back)) for _ in range(3))
    if back.read_bytes() != source.read_bytes():
        raise AssertionError("scp changed the file")
    return [
        row("scp 100 MiB into the workspace, direct", into, "MiB/s", 60, better="higher"),
        row("scp 100 MiB out of the workspace, direct", out, "MiB/s", 60, better="higher"),
    ]


def _mesh(skipped: dict[str, str]) -> list[dict[str, Any]]:
    try:
        from tests.bench import mesh_stream
    except ImportError as error:
        skipped["mesh TCP stream"] = str(error)
        return []
    note("mesh TCP stream …")
    found = mesh_stream.measure(quick=True)
    rows = found[0] if isinstance(found, tuple) else found
    return [dict(item) for item in rows]


# ---- small pieces


def row(metric: str, value: float, unit: str, target: float | None, *, better: str = "lower") -> dict[str, Any]:
    return {"metric": metric, "value": round(value, 3), "unit": unit, "better": better, "target": target}


def seconds(run: Callable[[], object], rounds: int) -> float:
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def rss(pid: int) -> float:
    """MiB resident of a process (the launcher replaces itself, so the pid is the program's)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def wait(check: Callable[[], bool], limit: float = 60) -> None:
    deadline = time.monotonic() + limit
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError("a step of the benchmark did not come about")
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(20)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
