"""Time and chance of a process from one seed, so that a simulation with trio's MockClock can be repeated exactly.

Call `prepare` before importing the mesh: some of its functions bind `os.urandom` when they are defined. Sets of strings
have another order in every process unless PYTHONHASHSEED is set; `restart_with_fixed_hashes` does that.
"""

from __future__ import annotations

import os
import random
import sys
import time
from datetime import UTC, datetime
from typing import Any

import trio

EPOCH = 1_700_000_000.0
"""Seconds since 1970 when the simulated clock is at 0."""


def restart_with_fixed_hashes() -> None:
    """Execute this program again with a fixed hash seed, unless it has one."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606


def simulated_wall_time() -> float:
    """Return seconds since 1970 on the simulated clock."""
    try:
        return EPOCH + trio.current_time()
    except RuntimeError:  # no trio run yet
        return EPOCH


def prepare(seed: int) -> None:
    """Replace randomness and wall time of this process."""
    randbytes = random.Random(f"bytes {seed}").randbytes
    os.urandom = randbytes
    random._urandom = randbytes  # type: ignore[attr-defined]
    random.seed(f"module {seed}")
    time.time = simulated_wall_time

    from google.protobuf.internal import well_known_types

    def set_current_time(stamp: object) -> None:
        stamp.FromDatetime(datetime.fromtimestamp(simulated_wall_time(), UTC))  # type: ignore[attr-defined]

    well_known_types.Timestamp.GetCurrentTime = set_current_time  # type: ignore[assignment, method-assign]
    scheduler: Any = trio._core._run
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(f"scheduler {seed}")
