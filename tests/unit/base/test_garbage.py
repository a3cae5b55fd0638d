"""The collector of a server: survivors are frozen, cycles among them are found by a sweep when it is due."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from coder.base import garbage
from coder.base.garbage import (
    NEW_OBJECTS,
    SWEEP_AT,
    SWEEP_EVERY,
    SWEEP_FROM,
    SWEEP_RARELY,
    WORTH,
    Freezer,
    settle,
    sweep_if_due,
)

MIDDLE = {"generation": 1, "collected": 0, "uncollectable": 0}
ENOUGH = -(-SWEEP_FROM // NEW_OBJECTS)
"""Collections after which a sweep may be due."""


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Freezer]:
    thresholds = gc.get_threshold()
    monkeypatch.setattr(garbage, "_freezers", [])
    settle()
    freezer = garbage._freezers[0]
    try:
        yield freezer
    finally:
        gc.callbacks.remove(freezer.after)
        gc.set_threshold(*thresholds)


def test_no_collection_traverses_what_survived_one(settled: Freezer) -> None:
    kept = [[number] for number in range(1000)]
    frozen = gc.get_freeze_count()
    gc.collect(1)
    assert gc.get_freeze_count() >= frozen + len(kept)
    assert gc.get_count() == (0, 0, 0)
    assert settled.frozen == 1
    del kept
    assert gc.get_freeze_count() < frozen + 1000  # freed by reference counting all the same


def test_oldest_generation_is_never_collected_automatically(settled: Freezer) -> None:
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
    assert settled.frozen == generations.count(1)
    assert len(kept) == 20 * NEW_OBJECTS


def test_cycle_that_ends_after_it_was_frozen_is_freed_by_a_sweep(settled: Freezer) -> None:
    cycle = Cycle()
    seen = weakref.ref(cycle)
    gc.collect(1)
    del cycle
    gc.collect(1)
    assert seen() is not None
    assert sweep_if_due() is None  # too little was frozen
    settled.frozen = SWEEP_AT // NEW_OBJECTS
    swept = sweep_if_due()
    assert swept is not None
    assert swept[0] >= 1
    assert seen() is None
    assert settled.frozen == 0


def test_new_cycle_is_freed_without_a_sweep(settled: Freezer) -> None:
    seen = weakref.ref(Cycle())
    gc.collect(0)
    assert seen() is None
    assert settled.frozen == 0


def test_process_that_has_not_settled_is_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_freezers", [])
    assert sweep_if_due() is None


def _freeze(freezer: Freezer, times: int) -> None:
    for _ in range(times):
        freezer.after("stop", MIDDLE)  # type: ignore[arg-type]


def test_sweep_is_due_by_time_only_when_enough_was_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    freezer = Freezer(0.0)
    _freeze(freezer, ENOUGH - 1)
    assert not freezer.is_due(SWEEP_EVERY * 1000)
    _freeze(freezer, 1)
    assert not freezer.is_due(SWEEP_EVERY - 1)
    assert freezer.is_due(SWEEP_EVERY)


def test_sweep_is_due_at_once_when_much_was_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    freezer = Freezer(0.0)
    _freeze(freezer, -(-SWEEP_AT // NEW_OBJECTS))
    assert freezer.is_due(0.0)


def test_sweeps_that_free_little_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)
    freezer, now = Freezer(0.0), SWEEP_EVERY
    rests = []
    for _ in range(8):
        _freeze(freezer, ENOUGH)
        freezer.swept(0, now)
        _freeze(freezer, ENOUGH)
        rests.append(next(wait for wait in range(0, 30_000, 600) if freezer.is_due(now + wait)))
        now += rests[-1]
    assert rests == [1200, 2400, 4800, 9600, 19200, SWEEP_RARELY, SWEEP_RARELY, SWEEP_RARELY]
    _freeze(freezer, ENOUGH)
    freezer.swept(int(WORTH * freezer.frozen * NEW_OBJECTS) + 1, now)
    _freeze(freezer, ENOUGH)
    assert freezer.is_due(now + SWEEP_EVERY)
