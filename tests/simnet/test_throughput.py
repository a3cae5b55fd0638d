"""Throughput of one connection over networks of every kind, as a table next to this file.

The worlds are seeded, so the same code gives the same table: a change that costs throughput, or retransmits more, shows
as a difference. Update it with THROUGHPUT_UPDATE=1 and review the difference before committing it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from coder.mesh.core.stack.interface import TcpSettings
from tests.kit.network.simulated_tcp_link import Link, LinkedStacks, Transfer

TABLE = Path(__file__).with_name("throughput.tsv")
HEADS = ("network", "share of the rate %", "sent twice %", "timeouts", "round trip ms", "longest silence ms")
RATE = 2.5e6
SECONDS = 2.5
WORSE = 0.85
"""Share of the recorded figure below which a test fails: algorithms may trade a little."""


@dataclass(frozen=True)
class Case:
    """A network, the same in both directions but for `only_there`."""

    name: str
    delay: float = 0.01
    queue: int = 100 << 10
    harm: dict[str, float] = field(default_factory=dict)
    blackouts: tuple[tuple[float, float], ...] = ()
    only_there: bool = False


CASES = [
    *(
        Case(f"loss {loss:g} %, round trip {2000 * delay:g} ms", delay, harm={"loss": loss / 100})
        for delay in (0.0005, 0.01, 0.075)
        for loss in (0, 0.1, 1, 5, 20)
    ),
    Case("a fifth of the packets lost one way", harm={"loss": 0.2}, only_there=True),
    Case("a tenth reordered by up to 5 ms", harm={"reorder": 0.1, "jitter": 0.005}),
    Case("a third reordered by up to 40 ms", harm={"reorder": 0.3, "jitter": 0.04}),
    Case("a tenth duplicated", harm={"duplicate": 0.1}),
    Case("a queue of one packet", queue=1500),
    Case("a queue of 16 KiB", queue=16 << 10),
    Case("bufferbloat: a queue of 2 MiB, 0.8 s of delay", queue=2 << 20),
    Case("bufferbloat and 1 % loss", queue=2 << 20, harm={"loss": 0.01}),
    Case("blackouts of 0.3 s every second", blackouts=tuple((n + 0.7, n + 1.0) for n in range(100, 106))),
    Case("a blackout of 1 s", blackouts=((101.0, 102.0),)),
]


def link(case: Case, is_harmed: bool) -> Link:
    made = Link(delay=case.delay, rate=RATE, queue=case.queue, blackouts=list(case.blackouts))
    for name, value in case.harm.items() if is_harmed else ():
        setattr(made, name, value)
    return made


def measure(case: Case) -> tuple[float, float, int, int, int]:
    """Return the row of a case."""
    world = LinkedStacks(7, link(case, True), link(case, not case.only_there), TcpSettings(skip_checksums=True))
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, bytes(int(RATE * SECONDS * 2)), world.random)
    begin = last = world.now
    silence = 0.0
    before = 0

    def step() -> None:
        nonlocal last, silence, before
        transfer.step()
        if transfer.read > before:
            silence = max(silence, world.now - last)
            before, last = transfer.read, world.now

    world.on_step = step
    while world.now < begin + SECONDS:
        assert world.step()
        assert len(mine.sender.queue) <= mine.host.settings.send_buffer + mine.host.settings.max_write
        assert theirs.receiver.rx.unread + theirs.receiver.rx.waiting <= theirs.host.settings.receive_buffer
    stats = mine.stats
    return (
        round(100 * transfer.read / (RATE * SECONDS), 1),
        round(100 * stats.retransmitted / max(stats.sent, 1), 1),
        stats.timeouts,
        round(stats.round_trip * 1000),
        round(silence * 1000),
    )


def test_throughput_matches_baseline() -> None:
    rows = {case.name: measure(case) for case in CASES}
    text = "\n".join(["\t".join(HEADS), *("\t".join(map(str, (name, *row))) for name, row in rows.items())]) + "\n"
    if os.environ.get("THROUGHPUT_UPDATE"):
        TABLE.write_text(text)
        return
    kept = {name: values for name, *values in (line.split("\t") for line in TABLE.read_text().splitlines()[1:])}
    assert kept.keys() == rows.keys(), "THROUGHPUT_UPDATE=1 updates the table"
    worse = {
        name: f"{row[0]} % of the rate, was {kept[name][0]} %"
        for name, row in rows.items()
        if row[0] < WORSE * float(kept[name][0]) - 0.5
    }
    assert not worse
