"""Command line of a simulation: one seed, figures as a line of JSON, exit code 1 if a claim was broken."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Protocol

import trio
import trio.testing

from tests.kit.network import simulated_time

_perf_counter = time.perf_counter
_MINUTE, _HOUR = 60, 3600


class Simulation(Protocol):
    """A workload and the claims about it."""

    counts: Counter[str]
    broken: list[str]
    ended_at: float

    async def live(self, seconds: float) -> None: ...


def new_parser(description: str | None, *, minutes: float, defects: Collection[str]) -> argparse.ArgumentParser:
    """Return a parser of the options that all simulations have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=minutes, help="simulated minutes")
    parser.add_argument("--defect", choices=sorted(defects), help="break something, to see the claims fail")
    parser.add_argument("--trace", action="store_true", help="print every event to standard error")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options; executes the program again if its hashes depend on chance."""
    words = parser.parse_args()
    simulated_time.restart_with_fixed_hashes()
    return words


def run(words: argparse.Namespace, create: Callable[[Callable[[str], None]], Simulation]) -> int:
    """Run what `create` returns, which gets a function that notes an event; print the figures, return the exit code."""
    digest = hashlib.sha256()

    def note(line: str) -> None:
        digest.update(line.encode() + b"\n")
        if words.trace:
            print(line, file=sys.stderr)

    began = _perf_counter()
    simulation = create(note)
    trio.run(simulation.live, words.minutes * _MINUTE, clock=trio.testing.MockClock(autojump_threshold=0))
    took = _perf_counter() - began
    figures = {
        "seed": words.seed,
        "simulated_seconds": round(simulation.ended_at, 3),
        "hours_per_minute": round(simulation.ended_at / _HOUR / (took / _MINUTE), 2),
        **simulation.counts,
        "digest": digest.hexdigest()[:16],
        "broken": simulation.broken,
    }
    print(json.dumps(figures))
    return 1 if simulation.broken else 0
