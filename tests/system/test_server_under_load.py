"""The long form of tests/unit/conformance/test_bounded_work.py: a server of its own, asked by many who want too much at
once, while another process asks it every 50 ms whether it is well.

These are the only waiting times that a test asserts (docs/decisions/bounded-work.md): people were promised them,
and need a machine that does nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.kit.api.costly_requests import CostlyRequest, answer_of, costly_requests, is_public, routes
from tests.kit.server.server_in_process import FIRST_USER
from tests.kit.server.server_process import Loopback, open_loopback

pytestmark = [pytest.mark.soak, pytest.mark.system]

P99 = 0.25
MOST_GROWTH = 64 << 20
AT_ONCE = 40
LASTS = 5.0
PROBE = """
import http.client, sys, time
host, port = sys.argv[1].rsplit(":", 1)
connection = http.client.HTTPConnection(host, int(port), timeout=30)
while True:
    began = time.monotonic()
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"OK"
    took = time.monotonic() - began
    print(took, flush=True)
    time.sleep(max(0.05 - took, 0))
"""


def _resources(server: Loopback) -> tuple[int, int, int]:
    """(bytes of memory now, at most since the last `_forget`, open files) of the server's process."""
    assert server.server is not None
    process = Path(f"/proc/{server.server.pid}")
    status = (process / "status").read_text()
    now, most = (int(re.findall(rf"{name}:\s+(\d+)", status)[0]) << 10 for name in ("VmRSS", "VmHWM"))
    return now, most, len(list((process / "fd").iterdir()))


def _forget(server: Loopback) -> None:
    assert server.server is not None
    Path(f"/proc/{server.server.pid}/clear_refs").write_text("5")


def _percentile(times: Sequence[float], part: float) -> float:
    return sorted(times)[int(len(times) * part)]


async def _send_all(url: str, asked: Sequence[CostlyRequest], token: str) -> None:
    """`AT_ONCE` of them at any time."""
    left = iter(asked)

    async def sender() -> None:
        for one in left:
            await answer_of(url, one.encoded(token), 120.0)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(sender)


@pytest.mark.parametrize("who", ["stranger", "member"])
def test_others_are_served_meanwhile(who: str) -> None:
    asked = [
        one for path, said in routes() if is_public(said) == (who == "stranger") for one in costly_requests(path, said)
    ]
    with open_loopback("--dangerous-disable-rate-limits") as server:
        server.request("POST", "/api/v2/users/first", FIRST_USER)
        server.sign_in(FIRST_USER["email"], FIRST_USER["password"])
        token = "" if who == "stranger" else server.token
        trio.run(_send_all, server.url, asked[::10], token)  # what is imported once is no growth
        _forget(server)
        before, _, files = _resources(server)
        probe = subprocess.Popen(
            [sys.executable, "-c", PROBE, server.url.removeprefix("http://")], stdout=subprocess.PIPE, text=True
        )
        until = time.monotonic() + LASTS
        try:
            trio.run(_send_all, server.url, asked, token)
            while time.monotonic() < until:  # a short list is asked again: a second of load tells nothing
                trio.run(_send_all, server.url, asked, token)
        finally:
            probe.terminate()
        times = [float(line) for line in probe.communicate()[0].splitlines()]
        _, most, _ = _resources(server)
        assert len(times) > 50
        assert _percentile(times, 0.99) <= P99, (_percentile(times, 0.5), max(times))
        assert most - before <= MOST_GROWTH, (before, most)
        given_back = time.monotonic() + 30
        while _resources(server)[2] > files + 2:
            assert time.monotonic() < given_back, _resources(server)
            time.sleep(0.1)
