"""File of the flight recorder: torn writes, foreign bytes, its fixed size."""

from __future__ import annotations

import os
from pathlib import Path

from coder.agent.reports import flight_file
from coder.agent.reports.flight_file import SLOT_SIZE, FlightFile


def test_torn_write_keeps_previous(tmp_path: Path) -> None:
    path = tmp_path / "x.flight"
    file = FlightFile.open_file(path)
    assert file.read() == {}
    file.write({"events": [1]})
    file.write({"events": [2]})
    again = FlightFile.open_file(path)
    assert again.read() == {"events": [2]}
    for slot in (0, 1):
        if b"[2]" in path.read_bytes()[slot * SLOT_SIZE : (slot + 1) * SLOT_SIZE]:
            os.pwrite(file.descriptor, b"\0" * 6, slot * SLOT_SIZE + 8)
    assert FlightFile.open_file(path).read() == {"events": [1]}
    again.write({"events": [3]})
    assert FlightFile.open_file(path).read() == {"events": [3]}


def test_garbage_is_ignored(tmp_path: Path) -> None:
    import random

    rng = random.Random(7)
    path = tmp_path / "x.flight"
    for _ in range(200):
        path.write_bytes(rng.randbytes(rng.choice((0, 3, SLOT_SIZE, 2 * SLOT_SIZE))))
        assert FlightFile.open_file(path).read() == {}
    assert flight_file._slot_untrusted(b"") is None
