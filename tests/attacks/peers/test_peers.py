"""Every kind of try of a peer and of strangers against a node; docs/security.md has the table of groups.

The suite plays a sample without a clock; the soak run plays everything, with time and memory, and prints the table.
"""

from __future__ import annotations

import gc
import tracemalloc
from typing import Literal

import pytest

from tests.attacks.peers.judge import Judge, Kind, grouped, kinds
from tests.kit.paths import ROOT

Victim = Literal["agent", "edge", "gateway"]
VICTIMS: tuple[Victim, ...] = ("agent", "edge", "gateway")
EVERY = 12
SPARE_MEMORY = 1 << 20


def counts() -> dict[str, list[int]]:
    """Return the number of kinds of each group, by victim."""
    found: dict[str, list[int]] = {}
    for number, victim in enumerate(VICTIMS):
        for group, members in grouped(kinds(victim)).items():
            found.setdefault(group, [0] * len(VICTIMS))[number] = len(members)
    return found


def test_each_victim_meets_200_kinds() -> None:
    for victim in VICTIMS:
        made = kinds(victim)
        assert len({one.title for one in made}) == len(made) >= 200, victim


def test_documented_counts() -> None:
    lines = (ROOT / "docs/security.md").read_text().splitlines()
    rows = [f"| {group} | {' | '.join(str(n or '-') for n in numbers)} |" for group, numbers in counts().items()]
    assert [row for row in rows if not any(line.startswith(row) for line in lines)] == []


def _sampled(made: list[Kind]) -> list[Kind]:
    chosen = [one for number, one in enumerate(made) if number % EVERY == 0]
    return [one for one in chosen if "thousand" not in one.name and not one.name.startswith("2,000")]


@pytest.mark.parametrize("victim", VICTIMS)
async def test_sample_of_tries(victim: Victim) -> None:
    judge = Judge(victim, clock=False)
    for members in grouped(_sampled(kinds(victim))).values():
        judge.group(members)
    assert judge.findings == []


GROUPS = [(victim, group) for victim in VICTIMS for group in grouped(kinds(victim))]


@pytest.mark.soak
@pytest.mark.parametrize(("victim", "group"), GROUPS)
async def test_every_try(victim: Victim, group: str) -> None:
    judge, members = Judge(victim, clock=True), grouped(kinds(victim))[group]
    judge.group(members)
    print(f"| {group} | {victim} | {len(members)} |")
    assert judge.findings == []


@pytest.mark.soak
@pytest.mark.parametrize(("victim", "group"), GROUPS)
async def test_memory_returns(victim: Victim, group: str) -> None:
    """Played once before: what the first time loads or caches is not counted."""
    judge, members = Judge(victim, clock=False), grouped(kinds(victim))[group]
    judge.group(members)
    gc.collect()
    tracemalloc.start()
    try:
        judge.group(members)
        gc.collect()
        # A whole place is left, the last one.
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < SPARE_MEMORY, f"{left >> 10} KiB are left"
    assert judge.findings == []
