"""Simulated agents whose number grows as standard input says; each has one of the addresses 127.0.0.2 to 127.0.0.9.

python -m tests.bench._full_simulator URL TOKENS RAMP reads a number of agents from each line, connects as many, RAMP a
second, and writes a line of figures to standard output every second. The agents are those of
`coder exp scaletest agents`; 5 % write a log line every second.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import trio

from coder.base import garbage
from coder.base.secret import Secret
from coder.cli.scaletest.simulated_agent import FleetFigures, SimulatedAgent
from coder.net.policy import DialPolicy

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]
LOGS_EVERY = 20
"""One agent of so many writes a live log."""
_source: ContextVar[str] = ContextVar("source")


async def _from_own_address(host: str, port: int, **_options: Any) -> trio.SocketStream:
    """Connect to an address. trio's function asks for the addresses of a name, and tries several at a time."""
    socket = trio.socket.socket()
    try:
        # A port is only chosen with the peer, so that one is free for each pair of addresses.
        socket.setsockopt(trio.socket.IPPROTO_IP, trio.socket.IP_BIND_ADDRESS_NO_PORT, 1)
        await socket.bind((_source.get(), 0))
        await socket.connect((host, port))
    except BaseException:
        socket.close()
        raise
    return trio.SocketStream(socket)


async def main(url: str, tokens: list[str], ramp: float) -> None:
    """Run until standard input ends."""
    trio.open_tcp_stream = _from_own_address  # type: ignore[assignment]
    figures, policy = FleetFigures(), DialPolicy(url, proxies={})
    addresses = itertools.cycle(ADDRESSES)
    started = 0

    async def run(agent: SimulatedAgent, address: str) -> None:
        _source.set(address)
        await agent.run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_show, figures)
        while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            began, first = trio.current_time(), started
            while started < min(int(line), len(tokens)):
                await trio.sleep_until(began + (started - first) / ramp)
                own = policy.with_token(Secret(tokens[started]))
                agent = SimulatedAgent(own, figures, logs=started % LOGS_EVERY == 0)
                nursery.start_soon(run, agent, next(addresses))
                started += 1
        nursery.cancel_scope.cancel()


async def _show(figures: FleetFigures) -> None:
    while True:
        await trio.sleep(1)
        common = sorted(figures.errors.items(), key=lambda item: -item[1])[:5]
        found = {
            "connected": figures.connected,
            "lost": figures.lost,
            "failed": figures.failed_calls,
            "calls": figures.calls,
            "attempts": figures.attempts,
            "cpu": time.process_time() * 1000,
            "errors": dict(common),
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with garbage.keeping_many():
        trio.run(main, sys.argv[1], Path(sys.argv[2]).read_text().split(), float(sys.argv[3]))
