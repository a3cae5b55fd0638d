"""The builds of a fleet from one seed: `python -m tests.simnet.fleet_builds --seed 7 --minutes 60 --database URL`.

A workload that knows nothing of the implementation starts and stops workspaces, kills daemons and servers, cuts
connections, takes the database away, loses its notices and sets its clock, in any order. The claims about builds
(docs/reliability.md) are checked all the time and at the end. The database must be empty and migrated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time as real_time
from pathlib import Path

from tests.kit.network import simulated_time

_perf_counter = real_time.perf_counter


def main() -> int:
    """Run one seed; print figures as a JSON line; exit with 1 if a claim was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="simulated minutes")
    parser.add_argument("--database", required=True, help="URL of an empty database")
    parser.add_argument("--defect", choices=("reaper", "twice"), help="break something, to see the claims fail")
    parser.add_argument("--trace", action="store_true", help="print every event to standard error")
    words = parser.parse_args()
    simulated_time.restart_with_fixed_hashes()

    import trio
    import trio.testing

    from tests.kit.server.simulated_server import run_threads_inline
    from tests.simnet.fleet_builds_workload import Builds, furnish, introduce

    workspaces = trio.run(furnish, words.database)
    simulated_time.prepare(words.seed)
    run_threads_inline()
    if words.defect:
        introduce(words.defect)
    digest = hashlib.sha256()

    def note(line: str) -> None:
        digest.update(line.encode() + b"\n")
        if words.trace:
            print(line, file=sys.stderr)

    began = _perf_counter()
    with tempfile.TemporaryDirectory(prefix="coder-builds-") as folder:
        builds = Builds(words.seed, words.database, workspaces, Path(folder), note)
        trio.run(builds.live, words.minutes * 60, clock=trio.testing.MockClock(autojump_threshold=0))
    seconds = _perf_counter() - began
    figures = {
        "seed": words.seed,
        "simulated_seconds": round(builds.ended_at, 3),
        "hours_per_minute": round(builds.ended_at / 3600 / (seconds / 60), 2),
        **builds.counts,
        "digest": digest.hexdigest()[:16],
        "broken": builds.broken,
    }
    print(json.dumps(figures))
    return 1 if builds.broken else 0


if __name__ == "__main__":
    sys.exit(main())
