"""Clients that attack: how long another user's request takes during each attack and after it.

One server on loopback with its rate limits, and 1,024 descriptors. The attacks are those of `_hostile_clients.py`, from
one address each; the user asks `GET users/me` from another, each time on a new connection. A request that is not
answered within `PATIENCE` counts as that long. Attacker and server share the machine's cores: an attack that keeps a
core busy on its own side slows the user, too.
CODER_BENCH_BINARY names a binary to measure; else the sources run.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import trio

from tests.bench._hostile_clients import ATTACKS
from tests.bench._workspace import program
from tests.bench.first import PASSWORD, ROOT, Place, note, row

DESCRIPTORS = 1024
USER_ADDRESS = "127.0.0.2"
INTERVAL = 0.05
PATIENCE = 20.0
TARGET = 3.0
"Times the undisturbed p99."
NOT_HERE = {
    "an overlay peer that acknowledges single bytes": "counted by tests/unit/mesh/core/stack/test_attacks.py",
    "overlay peers that fill shared tables": "counted by tests/unit/mesh/test_fair_shares.py",
    "terraform processes that fill the memory": "tested by tests/unit/provisionerd/terraform/test_limits.py",
}


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench hostile`."""
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    # The attacker has more than the server.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        limited = folder / "limited"
        limited.write_text(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec "{program(folder)}" "$@"\n')
        limited.chmod(0o755)
        place = Place(limited, folder)
        note("server …")
        with place.server():
            return _rows(place, 2.0 if quick else 15.0), NOT_HERE
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rows(place: Place, seconds: float) -> list[dict[str, Any]]:
    token = _first_user(place)
    trio.run(_ask, place.address, token, 1.0)  # what a start leaves behind
    rows = []
    for name, (words, _) in ATTACKS.items():
        note(f"{words} …")
        before = _p99(trio.run(_ask, place.address, token, seconds))
        during, after = trio.run(_attack, name, place.address, token, seconds)
        rows += [
            row(f"{words}: users/me p99 before", before, "ms", None),
            row(f"{words}: users/me p99 during, as a multiple of before", _p99(during) / before, "x", TARGET),
            row(f"{words}: users/me p99 after, as a multiple of before", _p99(after) / before, "x", TARGET),
        ]
    return rows


def _first_user(place: Place) -> str:
    user = {"email": "b@example.com", "username": "bench", "name": "B", "password": PASSWORD, "trial": False}
    _post(f"{place.url}/api/v2/users/first", user)
    shown = _post(f"{place.url}/api/v2/users/login", {"email": user["email"], "password": PASSWORD})
    return str(shown["session_token"])


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


async def _attack(name: str, address: str, token: str, seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds of the user's requests during the attack, and in as many seconds after it."""
    arguments = [name, address, str(seconds + 1), token]
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "tests.bench._hostile_clients", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        await trio.sleep(1.0)  # its start
        during = await _ask(address, token, seconds)
        with trio.move_on_after(30):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return during, await _ask(address, token, seconds)


async def _ask(address: str, token: str, seconds: float) -> list[float]:
    """Milliseconds of a request every `INTERVAL`, the next although earlier ones wait."""
    times: list[float] = []
    async with trio.open_nursery() as nursery:
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            nursery.start_soon(_request, address, token, times)
            await trio.sleep(INTERVAL)
    return times


async def _request(address: str, token: str, times: list[float]) -> None:
    host, _, port = address.rpartition(":")
    head = "GET /api/v2/users/me HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nX-Coder-Bypass-Ratelimit: true\r\n"
    head += f"Coder-Session-Token: {token}\r\n\r\n"
    began, answered = time.perf_counter(), False
    with trio.move_on_after(PATIENCE):
        try:
            async with await trio.open_tcp_stream(host, int(port), local_address=USER_ADDRESS) as stream:
                await stream.send_all(head.encode())
                answered = (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        except (OSError, trio.BrokenResourceError):
            answered = False
    times.append((time.perf_counter() - began) * 1000 if answered else PATIENCE * 1000)


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]
