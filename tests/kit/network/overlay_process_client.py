"""Starts and controls the processes of tests/kit/network/overlay_process.py from a test."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import trio

ROOT = Path(__file__).resolve().parents[3]


class OverlayProcess:
    """A running process: `latest` has the newest value of every field it reported."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.latest: dict[str, Any] = {}
        self.changed = trio.lowlevel.ParkingLot()

    async def read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.latest |= json.loads(line)
            self.changed.unpark_all()

    async def tell(self, **command: Any) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(command).encode() + b"\n")

    async def wait(self, seconds: float, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        try:
            with trio.fail_after(seconds):
                while not condition(self.latest):
                    await self.changed.park()
        except trio.TooSlowError:
            raise AssertionError(f"not within {seconds} s: {self.latest}") from None
        return self.latest


@asynccontextmanager
async def mesh_process(inside: Callable[[Sequence[str]], list[str]], *arguments: str) -> AsyncIterator[OverlayProcess]:
    """Run `python -m tests.kit.network.overlay_process ARGUMENTS`; `inside` wraps its command line."""
    command = inside([sys.executable, "-m", "tests.kit.network.overlay_process", *arguments])
    child = await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    running = OverlayProcess(child)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.read)
        try:
            yield running
        finally:
            child.kill()
            with trio.CancelScope(shield=True):
                await child.wait()
            nursery.cancel_scope.cancel()


async def introduce(one: OverlayProcess, two: OverlayProcess) -> None:
    """Wait until both know themselves and make them peers."""
    for node in (one, two):
        await node.wait(60, lambda got: got.get("info"))
    await one.tell(peer=two.latest["info"])
    await two.tell(peer=one.latest["info"])


def moved(latest: dict[str, Any], field: str, since: int, least: int = 200_000) -> bool:
    """Whether a counter has grown by so much."""
    return bool(latest.get(field, 0) > since + least)


async def until_direct(sender: OverlayProcess, seconds: float) -> None:
    """Waits until half a megabyte of what a node sends went there and not by the relay. What it says of its path may be
    of before: each of its reports has the counters of one moment."""
    with trio.fail_after(seconds):
        while True:
            before = {name: sender.latest[name] for name in ("sent", "direct", "relayed")}
            now = await sender.wait(seconds, lambda got, since=before["sent"]: moved(got, "sent", since, 500_000))  # type: ignore[misc]
            if now["direct"] - before["direct"] > 400_000 and now["relayed"] - before["relayed"] < 50_000:
                return
