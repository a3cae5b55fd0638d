"""Part `costs`: a request's CPU with several processes against one, and what a process that spins does to others.

Requests are `GET users/me` on kept-alive connections, to both servers in turn: one at a time, where the next one may
find another process's data in the caches of the processor, and all connections at once, as under load. For the second
question one process that accepts connections runs a loop of Python for some seconds, as code that never yields would,
while a user asks on a new connection each time; a signal starts the loop in a server run from the sources.
"""

from __future__ import annotations

import contextlib
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

ROUNDS, REQUESTS, CONNECTIONS = 9, 1800, 6
"""With 600 requests, 0.1 s, rounds of the same server differed by a tenth."""
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
        costs: dict[tuple[int, bool], list[float]] = {}
        for _ in range(max(round(ROUNDS * options.scale), 2)):
            for at_once in (False, True):
                for number, server in enumerate((one, many)):
                    costs.setdefault((number, at_once), []).append(trio.run(_cost, server, at_once))
        for at_once, how in ((False, ""), (True, f", {CONNECTIONS} at once")):
            alone, together = (statistics.median(costs[number, at_once]) for number in (0, 1))
            emit(f"GET users/me{how}, --processes 1: server CPU", alone, "ms", None)
            emit(f"GET users/me{how}, --processes {several}: CPU of all processes", together, "ms", None)
            emit(f"CPU of a request{how}, --processes {several} beside 1", together / alone, "x", 1.1)
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


async def _cost(server: Server, at_once: bool) -> float:
    """Milliseconds of CPU of all processes for a request; several connections, so that all processes take part."""

    async def ask(clients: list[Client], number: int) -> None:
        for index in range(number):
            await clients[index % len(clients)].call("GET", "/api/v2/users/me")

    async with contextlib.AsyncExitStack() as stack:
        clients = [Client(server.place.address, server.token) for _ in range(CONNECTIONS)]
        async with trio.open_nursery() as nursery:
            for client in clients:  # at once: of connections one after the other the same process accepts all
                nursery.start_soon(stack.enter_async_context, client)
        await ask(clients, 20 * CONNECTIONS)
        before = spent(server_processes(server.pid))
        async with trio.open_nursery() as nursery:
            for group in [[client] for client in clients] if at_once else [clients]:
                nursery.start_soon(ask, group, REQUESTS * len(group) // CONNECTIONS)
        return (spent(server_processes(server.pid)) - before) / REQUESTS


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
