"""Cost of every `*_untrusted` function for 64 KiB of difficult input, in computing time of this thread.

The clock counts the thread's own work, so a busy machine changes nothing. A function with a higher limit runs in the
sandbox or in a provisioner's process, and is listed below (docs/decisions/bounded-work.md).
"""

from __future__ import annotations

import functools
import gc
import gzip
import time
import zlib
from collections.abc import Mapping

import pytest

from tests.fuzz.test_every_parser import feed
from tests.kit.harnesses import HARNESSES, Harness

SIZE = 64 << 10
ON_THE_LOOP = 0.1
"Seconds of computing for 64 KiB: twenty times the target of an event loop's step, a third of what hurts."
ELSEWHERE = 2.0
"The same for functions called in processes of their own: half of the sandbox's limit for a call."
IN_PROCESSES = (
    "coderd/services/templates/template_sources.py",
    "domain/hcl/",
    "domain/rendering/",
    "provisionerd/",
    "agent/",
)
OPENERS = (b"[", b"{", b"(", b'{"a":', b"<", b"${", b"%{if a}", b"- ", b"!", b"a.", b"a[", b"a:", b"/", b"\x0a\xff\x7f")
UNITS = (
    b",",
    b"a ",
    b"a,",
    b"1",
    b'"',
    b"\\",
    b"\n",
    b"&a ",
    b"*a ",
    b"\0",
    b"\xff",
    b"a=b&",
    b"a: b\n",
    b"a-",
    b"%61",
)


@functools.cache
def difficult_inputs(size: int) -> Mapping[str, bytes]:
    """Return deep, repetitive and compressed inputs, by name."""
    zeros = bytes(16 << 20)
    return {
        **{f"deep {unit!r}": unit * (size // len(unit)) for unit in OPENERS},
        **{f"many {unit!r}": unit * (size // len(unit)) for unit in UNITS},
        "gzip": gzip.compress(zeros, mtime=0)[:size],
        "zlib": zlib.compress(zeros)[:size],
    }


def payloads(harness: Harness, size: int, *, mixed: bool) -> Mapping[str, bytes]:
    """Return these, and large ones; `mixed` also after and inside of genuine input, where parsers have begun."""
    inputs = dict(difficult_inputs(size))
    for number, seed in enumerate(harness.seeds):
        inputs[f"large {number}"] = (seed * (size // max(len(seed), 1)))[:size]
        for name, data in difficult_inputs(size).items() if mixed else ():
            inputs[f"{name} after {number}"] = seed + data
            inputs[f"{name} inside {number}"] = seed[: len(seed) // 2] + data + seed[len(seed) // 2 :]
    return inputs


def limit_of(name: str) -> float:
    return ELSEWHERE if name.startswith(IN_PROCESSES) else ON_THE_LOOP


def measure(name: str, size: int, *, mixed: bool) -> None:
    harness = HARNESSES[name]
    for seed in harness.seeds:  # the first call imports and prepares
        feed(harness, seed)
    costs = {}
    gc.disable()  # a collection of other tests' garbage is not the parser's cost
    try:
        for kind, data in payloads(harness, size, mixed=mixed).items():
            began = time.thread_time()
            feed(harness, data)
            costs[kind] = time.thread_time() - began
    finally:
        gc.enable()
    worst = max(costs, key=costs.__getitem__)
    assert costs[worst] < limit_of(name), (worst, costs[worst])


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_cost_is_bounded(name: str) -> None:
    measure(name, SIZE if limit_of(name) == ON_THE_LOOP else SIZE // 8, mixed=False)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_cost_bounded_in_every_position(name: str) -> None:
    measure(name, SIZE, mixed=True)
