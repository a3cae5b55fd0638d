"""The builds of a fleet from one seed: `python -m tests.simnet.fleet_builds --seed 7 --minutes 60 --database URL`.

A workload that knows nothing of the implementation starts and stops workspaces, kills daemons and servers, cuts
connections, takes the database away, loses its notices and sets its clock, in any order. The claims about builds
(docs/reliability.md) are checked all the time and at the end. The database must be empty and migrated.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import trio

from tests.kit.network import simulated_run, simulated_time


def main() -> int:
    """Run one seed; print figures as a JSON line; exit with 1 if a claim was broken."""
    parser = simulated_run.new_parser(__doc__, minutes=60.0, defects=("reaper", "twice"))
    parser.add_argument("--database", required=True, help="URL of an empty database")
    words = simulated_run.parse(parser)

    from tests.kit.server.simulated_server import run_threads_inline
    from tests.simnet.fleet_builds_workload import Builds, furnish, introduce

    workspaces = trio.run(furnish, words.database)
    simulated_time.prepare(words.seed)
    run_threads_inline()
    if words.defect:
        introduce(words.defect)
    with tempfile.TemporaryDirectory(prefix="coder-builds-") as folder:
        return simulated_run.run(words, lambda note: Builds(words.seed, words.database, workspaces, Path(folder), note))


if __name__ == "__main__":
    sys.exit(main())
