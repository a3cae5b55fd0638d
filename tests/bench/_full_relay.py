"""Part `relay`: what a relay carries on one core with TLS between 100 peers, beside derper in the same run.

Relays and load are pinned to a core each. The runs alternate, and the medians are compared. derper is built from its
public source (`tailscale.com/cmd/derper`, a Go module) once, and kept in the cache; without Go or network its rows are
skipped. All peers announce their keys to our deployment, because the relay limits what unknown keys send.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench._full import Emit, Options, SkippedError
from tests.bench._full_place import server_processes, spent
from tests.bench._relay_server import NAME, RelayServer, relay_server
from tests.bench.first import ROOT, end, note, wait
from tests.kit.stand_ins.certificates import Authority

VERSION = "v1.98.10"
"""The newest that builds with Go 1.26."""
PEERS = 100
WINDOWS = {"two batches each under way": 2 * 11 * 1437, "as much as the connections take": 0}
"""How much each peer has under way, as a stream that obeys its receiver, and without limit: the overload. derper holds
32 packets for a receiver and drops further ones."""
ROUNDS, SECONDS = 3, 6.0
BUILD_LIMIT = 240.0
Found = dict[str, dict[str, list[dict[str, float]]]]
"""Measurements by program and amount."""


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    if not shutil.which("taskset") or (os.cpu_count() or 1) < 2:
        raise SkippedError("relay and load need a core each, and taskset")
    theirs, missing = None, ""
    try:
        theirs = derper()
    except SkippedError as error:
        missing = str(error)
    seconds, rounds = max(SECONDS * options.scale, 1.0), max(round(ROUNDS * options.scale), 1)
    found: Found = {}
    with relay_server(tls=True, command=("taskset", "-c", "0")) as ours:
        loads = {"coder server": _load(ours.port, ours.authority, ours.pid, ours)}
        if theirs is not None:
            loads["derper"] = _derper_load(theirs, folder)
        contexts = {name: manager.__enter__() for name, manager in loads.items()}
        try:
            for load in contexts.values():
                load.measure(0, 0.5)  # connects them
            for _ in range(rounds):
                for name, load in contexts.items():
                    for amount, window in WINDOWS.items():
                        note(f"{name}, {amount} …")
                        found.setdefault(name, {}).setdefault(amount, []).append(load.measure(window, seconds))
        finally:
            for manager in loads.values():
                manager.__exit__(None, None, None)
    _report(found, emit)
    if missing:
        raise SkippedError(f"beside derper: {missing}")


def _report(found: Found, emit: Emit) -> None:
    obeying, overload = WINDOWS
    rates = {}
    for name, by_amount in found.items():
        for amount, runs in by_amount.items():
            rates[name, amount] = median(each["mbit"] for each in runs)
            what = f"relay on one core with TLS, {PEERS} peers, {amount}: {name}"
            emit(what, rates[name, amount], "Mbit/s", None, better="higher")
            emit(f"{what}: its CPU", median(each["relay"] for each in runs), "ms/MB", None)
            emit(f"{what}: load's share of its core", median(each["cores"] for each in runs), "cores", None)
            emit(f"{what}: peers whom nothing reached", max(each["silent"] for each in runs), "peers", None)
        beside = rates[name, overload] / rates[name, obeying]
        emit(
            f"{name}: overload beside the rate without", beside, "x", None if name == "derper" else 0.9, better="higher"
        )
    if "derper" in found:
        beside = rates["coder server", obeying] / rates["derper", obeying]
        emit(f"relay on one core with TLS, {PEERS} peers: coder server beside derper", beside, "x", 1, better="higher")


def derper() -> Path:
    """Return the program, built at the first time. Raises SkippedError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder/derper"
    if (cache / "derper").exists():
        return cache / "derper"
    if not (go := shutil.which("go")):
        raise SkippedError("derper cannot be built: Go is not installed")
    note(f"building derper {VERSION} …")
    command = [go, "install", f"tailscale.com/cmd/derper@{VERSION}"]
    env = {**os.environ, "GOBIN": str(cache), "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=BUILD_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise SkippedError(f"derper was not built within {BUILD_LIMIT:.0f} s") from error
    if done.returncode:
        raise SkippedError(f"derper cannot be built: {done.stderr.strip()[-300:]}")
    return cache / "derper"


@dataclass
class Load:
    """The process of 100 clients."""

    process: subprocess.Popen[str]
    relay: int
    "The relay's process id."

    def measure(self, window: int, seconds: float) -> dict[str, float]:
        assert self.process.stdin is not None
        before = spent(server_processes(self.relay))
        self.process.stdin.write(json.dumps({"peers": PEERS, "window": window, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, float] = _line(self.process)
        used, megabytes = spent(server_processes(self.relay)) - before, answer["mbit"] / 8 * (seconds + 1)
        return {**answer, "relay": used / megabytes if megabytes else 0.0}


@contextmanager
def _load(port: int, authority: str, pid: int, server: RelayServer | None = None) -> Iterator[Load]:
    """100 clients of a relay; those of a deployment are announced to it."""
    command = ["taskset", "-c", "1", sys.executable, "-m", "tests.bench._full_relay_load", str(port), authority]
    with _piped(command) as process:
        keys = _line(process)
        if server is None:
            yield Load(process, pid)
            return
        announce = [sys.executable, "-m", "tests.bench._full_relay_announce", str(port), authority, server.token]
        with _piped(announce) as announcing:
            assert announcing.stdin is not None
            announcing.stdin.write(json.dumps(keys) + "\n")
            announcing.stdin.flush()
            _line(announcing)
            yield Load(process, pid)


@contextmanager
def _derper_load(program: Path, folder: Path) -> Iterator[Load]:
    own = folder / "derper"
    own.mkdir()
    signer = Authority(own)
    certificate, key = signer.issue(NAME)
    shutil.copy(certificate, own / f"{NAME}.crt")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["taskset", "-c", "0", str(program), "-a", f"127.0.0.1:{port}", "-hostname", NAME, "-stun=false"]
    command += ["-certmode", "manual", "-certdir", str(own), "-http-port", "-1", "-c", str(own / "derper.json")]
    assert Path(key).name == f"{NAME}.key"
    with (own / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        wait(lambda: _accepts(port))
        with _load(port, signer.file, process.pid) as load:
            yield load
    except BaseException:
        note((own / "log").read_text(errors="replace")[-1500:])
        raise
    finally:
        end(process)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _piped(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process: Any = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    try:
        yield process
    finally:
        end(process)


def _line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    if not (line := process.stdout.readline()):
        raise RuntimeError(f"a process of the relay's load ended with status {process.wait()}")
    return json.loads(line)
