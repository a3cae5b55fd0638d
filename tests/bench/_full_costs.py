"""Part `costs`: a request's CPU with several processes against one, and what a process that spins does to others.

Requests are `GET users/me` on kept-alive connections, to both servers in turn. For the second question one process that
accepts connections runs a loop of Python for some seconds, as code that never yields would, while a user asks on a new
connection each time; a signal starts the loop in a server run from the sources.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.bench._full import Emit, Options
from tests.bench._full_place import first_user, p99, server_processes, serving, spent
from tests.bench._requests import Client
from tests.bench._workspace import program
from tests.bench.first import ROOT, Place, note
from tests.bench.hostile import _ask

ROUNDS, REQUESTS, CONNECTIONS = 7, 600, 6
SPIN = 7.0
"""Seconds of a loop; after ten a supervisor replaces the process."""
SPINNING = f"""
import signal, sys, time
from coder.cli.main import main

def spin(*_):
    end = time.monotonic() + {SPIN}
    while time.monotonic() < end:
        pass

signal.signal(signal.SIGUSR2, spin)
sys.exit(main(sys.argv[1:]))
"""
"""A program whose processes spin at a signal."""


def run(options: Options, folder: Path, emit: Emit) -> None:
    """Emit all rows."""
    several = max(options.processes, 2)
    with _servers(folder, several) as (one, many):
        costs: list[list[float]] = [[], []]
        for _ in range(max(round(ROUNDS * options.scale), 2)):
            for server, found in zip((one, many), costs, strict=True):
                found.append(trio.run(_cost, server))
        alone, together = (statistics.median(found) for found in costs)
        emit("GET users/me with --processes 1: server CPU", alone, "ms", None)
        emit(f"GET users/me with --processes {several}: CPU of all processes", together, "ms", None)
        emit(f"CPU of a request, --processes {several} beside 1", together / alone, "x", 1.1)
        _spin(many, emit)


@dataclass
class Server:
    """One that answers."""

    place: Place
    pid: int
    token: str


@contextmanager
def _servers(folder: Path, several: int) -> Iterator[tuple[Server, Server]]:
    found = []
    for name in ("one", "many"):
        (folder / name).mkdir(mode=0o755)
        found.append(Place(program(folder / name), folder / name))
    sources = [sys.executable, "-c", SPINNING]
    env = {"PYTHONPATH": str(ROOT), "CODER_DANGEROUS_DISABLE_RATE_LIMITS": "true"}
    with (
        serving(found[0], {**env, "CODER_PROCESSES": "1"}, sources) as one,
        serving(found[1], {**env, "CODER_PROCESSES": str(several)}, sources) as many,
    ):
        time.sleep(5)  # what a start leaves behind
        yield (
            Server(found[0], one.pid, first_user(found[0])),
            Server(found[1], many.pid, first_user(found[1])),
        )


async def _cost(server: Server) -> float:
    """Milliseconds of CPU of all processes for a request; several connections, so that all processes take part."""
    clients = [Client(server.place.address, server.token) for _ in range(CONNECTIONS)]
    for client in clients:
        await client.__aenter__()
        for _ in range(20):
            await client.call("GET", "/api/v2/users/me")
    before = spent(server_processes(server.pid))
    for number in range(REQUESTS):
        await clients[number % CONNECTIONS].call("GET", "/api/v2/users/me")
    used = spent(server_processes(server.pid)) - before
    for client in clients:
        await client.__aexit__()
    return used / REQUESTS


def _spin(server: Server, emit: Emit) -> None:
    note("a process that spins …")
    before = p99(trio.run(_ask, server.place.address, server.token, SPIN))
    spinning = _busiest(server)
    os.kill(spinning, signal.SIGUSR2)
    began = spent([spinning])
    during = trio.run(_ask, server.place.address, server.token, SPIN - 0.5)
    share = (spent([spinning]) - began) / 1000 / (SPIN - 0.5)
    emit("one process spins: its share of a core meanwhile", share, "cores", None)
    emit("one process spins: GET users/me, p99 before", before, "ms", None)
    emit("one process spins: GET users/me, median meanwhile", statistics.median(during), "ms", None)
    emit("one process spins: GET users/me, p99 meanwhile", p99(during), "ms", None)
    emit("one process spins: GET users/me, p99 as a multiple of before", p99(during) / before, "x", 3)


def _busiest(server: Server) -> int:
    """The process that serves a connection's requests, found by what they cost it."""

    async def ask() -> int:
        async with Client(server.place.address, server.token) as client:
            pids = server_processes(server.pid)
            before = {pid: spent([pid]) for pid in pids}
            for _ in range(400):
                await client.call("GET", "/api/v2/users/me")
            used = {pid: spent([pid]) - before[pid] for pid in pids}
            return max(used, key=lambda pid: used[pid])

    return trio.run(ask)
