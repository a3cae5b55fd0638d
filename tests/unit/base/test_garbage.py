"""The collector of a server: survivors are not traversed, cycles among them are found by a sweep when it is due."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from coder.base import garbage
from coder.base.garbage import (
    NEW_OBJECTS,
    OF_LINK,
    SWEEP_AT,
    SWEEP_EVERY,
    SWEEP_FROM,
    SWEEP_RARELY,
    WORTH,
    Sweeps,
    settle,
    sweep_if_due,
)

MIDDLE = {"generation": 1, "collected": 0, "uncollectable": 0}
ENOUGH = -(-SWEEP_FROM // NEW_OBJECTS)
"""Collections after which a sweep may be due."""
MUCH = -(-SWEEP_AT // NEW_OBJECTS)
"""Collections after which a sweep may be due at once."""
ENDED = -(-SWEEP_FROM // OF_LINK)
"""Links that may have left as much as ENOUGH collections."""


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeps]:
    thresholds = gc.get_threshold()
    monkeypatch.setattr(garbage, "_sweeps", [])
    settle()
    sweeps = garbage._sweeps[0]
    try:
        yield sweeps
    finally:
        gc.callbacks.remove(sweeps.after)
        gc.set_threshold(*thresholds)


def test_automatic_collections_do_not_traverse_survivors(settled: Sweeps) -> None:
    kept: list[object] = [[number] for number in range(1000)]
    gc.collect(1)
    old = set(map(id, gc.get_objects(2)))
    assert all(id(value) in old for value in kept)  # of the generation that is not collected automatically
    assert gc.get_threshold()[2] == 1 << 30
    assert settled.collections == 1


def test_block_that_keeps_many_restores_thresholds() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), garbage.keeping_many():
        assert gc.get_threshold()[2] == 1 << 30
        raise KeyError
    assert gc.get_threshold() == before


def test_oldest_generation_is_never_collected_automatically(settled: Sweeps) -> None:
    generations: list[int] = []

    def note(phase: str, collection: dict[str, int]) -> None:
        if phase == "stop":
            generations.append(collection["generation"])

    gc.callbacks.append(note)
    try:
        kept = [[number] for number in range(20 * NEW_OBJECTS)]
    finally:
        gc.callbacks.remove(note)
    assert set(generations) == {0, 1}
    assert generations.count(1) >= 18
    assert settled.collections == generations.count(1)
    assert len(kept) == 20 * NEW_OBJECTS


def test_cycle_that_survived_is_freed_by_a_sweep(settled: Sweeps, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = Cycle()
    seen = weakref.ref(cycle)
    gc.collect(1)
    del cycle
    gc.collect(1)
    assert seen() is not None
    assert sweep_if_due() is None  # too little survived
    monkeypatch.setattr(garbage, "SWEEP_FROM", NEW_OBJECTS)
    settled._due_at = 0.0
    for _ in range(-(-NEW_OBJECTS // OF_LINK)):
        garbage.link_ended()
    swept = sweep_if_due()
    assert swept is not None
    assert swept[0] >= 1
    assert seen() is None
    assert settled.collections == settled.ended_links == 0


def test_new_cycle_is_freed_without_a_sweep(settled: Sweeps) -> None:
    seen = weakref.ref(Cycle())
    gc.collect(0)
    assert seen() is None
    assert settled.collections == 0


def test_process_that_has_not_settled_is_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_sweeps", [])
    assert sweep_if_due() is None


def _survive(sweeps: Sweeps, times: int) -> None:
    for _ in range(times):
        sweeps.after("stop", MIDDLE)


def _live(sweeps: Sweeps, times: int = ENOUGH) -> None:
    """Let so many collections' survivors and as many links end as may have left them."""
    _survive(sweeps, times)
    sweeps.ended_links += times * ENDED


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks of memory in use, as the process counts them."""
    blocks = [1_000_000]
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks[0])
    return blocks


def test_sweep_is_due_when_links_ended_long_enough() -> None:
    sweeps = Sweeps(0.0)
    _live(sweeps, ENOUGH - 1)
    assert not sweeps.is_due(SWEEP_EVERY)
    _live(sweeps, 1)
    assert not sweeps.is_due(SWEEP_EVERY - 1)
    assert sweeps.is_due(SWEEP_EVERY)


def test_links_that_left_nothing_cause_no_sweep() -> None:
    sweeps = Sweeps(0.0)
    sweeps.ended_links = 100 * ENDED
    assert not sweeps.is_due(10 * SWEEP_RARELY)


@pytest.mark.parametrize("processes", [1, 2])
def test_agents_that_connect_and_stay_cause_no_sweep(blocks: list[int], processes: int) -> None:
    """Ten thousand agents in ten minutes: 400 objects and 600 blocks each. A single process may sweep once."""
    sweeps, done = Sweeps(0.0), []
    for minute in range(int(SWEEP_RARELY // 60)):
        if minute < 10:
            blocks[0] += 600 * 1000 // processes
            _survive(sweeps, 400 * 1000 // processes // (NEW_OBJECTS // 2))  # a collection has fewer than the most
        if sweeps.is_due(minute * 60.0):
            sweeps.swept(20, minute * 60.0)
            done.append(minute)
    assert len(done) == (1 if processes == 1 else 0)


def test_growth_alone_causes_a_sweep_rarely(blocks: list[int]) -> None:
    sweeps = Sweeps(0.0)
    blocks[0] += SWEEP_FROM
    _survive(sweeps, ENOUGH)
    assert not sweeps.is_due(SWEEP_RARELY - 1)
    assert sweeps.is_due(SWEEP_RARELY)
    sweeps.swept(0, SWEEP_RARELY)
    _survive(sweeps, ENOUGH)
    assert not sweeps.is_due(3 * SWEEP_RARELY), "memory has not grown since"


def test_sweep_is_due_at_once_when_memory_doubled(blocks: list[int]) -> None:
    sweeps = Sweeps(0.0)
    blocks[0] += SWEEP_AT
    assert not sweeps.is_due(0.0)
    _survive(sweeps, MUCH)
    assert sweeps.is_due(0.0)
    sweeps.swept(0, 0.0)
    _survive(sweeps, MUCH)
    assert not sweeps.is_due(0.0), "memory has not grown since"
    blocks[0] += SWEEP_AT
    assert not sweeps.is_due(0.0), "it has not doubled: the sweep would take longer than the last one, for less"
    blocks[0] += 1_000_000
    assert sweeps.is_due(0.0)


def test_cycles_of_ended_links_are_bounded(blocks: list[int]) -> None:
    """A thousand links a minute that end and leave 460 objects each, beside two million that live: what a process has
    in cycles is never more than what ends in the time between two sweeps."""
    sweeps, cycles, most = Sweeps(0.0), 0, 0
    blocks[0] += 2_000_000
    for minute in range(1, 24 * 60):
        cycles += 460_000
        blocks[0] += 460_000
        sweeps.ended_links += 1000
        _survive(sweeps, 460_000 // NEW_OBJECTS)
        most = max(most, cycles)
        if sweeps.is_due(minute * 60.0):
            blocks[0] -= cycles
            sweeps.swept(cycles, minute * 60.0)
            cycles = 0
    assert most <= 10 * 460_000


def test_pages_that_leave_nothing_cause_no_sweep(settled: Sweeps) -> None:
    """A request of this size is a collection of the youngest generation, although all of it is freed at its end."""
    while settled.collections * NEW_OBJECTS < SWEEP_AT:
        assert [{"a": [number], "b": (number, [number])} for number in range(12_000)]
    assert sweep_if_due() is None


def test_sweeps_that_free_little_become_rare() -> None:
    sweeps, now = Sweeps(0.0), SWEEP_EVERY
    rests = []
    for _ in range(8):
        _live(sweeps)
        sweeps.swept(0, now)
        _live(sweeps)
        rests.append(next(wait for wait in range(0, 30_000, 600) if sweeps.is_due(now + wait)))
        now += rests[-1]
    assert rests == [1200, 2400, 4800, 9600, 19200, SWEEP_RARELY, SWEEP_RARELY, SWEEP_RARELY]
    _live(sweeps)
    sweeps.swept(int(WORTH * sweeps.collections * NEW_OBJECTS) + 1, now)
    _live(sweeps)
    assert sweeps.is_due(now + SWEEP_EVERY)


def test_paused_enables_after_failure() -> None:
    thresholds = gc.get_threshold()
    try:
        with pytest.raises(ImportError), garbage.paused():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled()
    finally:
        gc.set_threshold(*thresholds)


def test_server_loads_without_collections() -> None:
    """All its modules, whose collections would take a fifth of a start."""
    program = (
        "import gc; from coder.cli.core.command import implementation; "
        "before = gc.get_stats()[2]['collections']; implementation('server'); "
        "print(gc.isenabled(), gc.get_stats()[2]['collections'] - before, gc.get_freeze_count() > 100_000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "True"]
