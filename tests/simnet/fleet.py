"""A fleet's life from one seed: `python -m tests.simnet.fleet --seed 7 --minutes 10`.

A workload that knows nothing of the implementation connects, types, sleeps, roams, cuts paths, restarts server and
agents, and revokes rights, in any order. The claims of docs/reliability.md are checked all the time and at the end. The
same seed gives the same run, to the last datagram: the digest that is printed says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time as real_time

from tests.kit.network import simulated_time

_perf_counter = real_time.perf_counter


def main() -> int:
    """Run one seed or several; print figures as JSON lines; exit with 1 if a claim was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="simulated minutes")
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8, help="clients at once")
    parser.add_argument("--defect", choices=("revoke", "lost", "bytes"), help="break something, to see the claims fail")
    parser.add_argument("--trace", action="store_true", help="print every event to standard error")
    words = parser.parse_args()
    simulated_time.restart_with_fixed_hashes()
    simulated_time.prepare(words.seed)

    import trio.testing

    from tests.kit.network.simulated_fleet import replace_network
    from tests.simnet import fleet_defects
    from tests.simnet.fleet_workload import Fleet

    replace_network()
    if words.defect:
        fleet_defects.introduce(words.defect)
    digest = hashlib.sha256()

    def note(line: str) -> None:
        digest.update(line.encode() + b"\n")
        if words.trace:
            print(line, file=sys.stderr)

    began = _perf_counter()
    fleet = Fleet(words.seed, words.agents, words.clients, note)
    trio.run(fleet.live, words.minutes * 60, clock=trio.testing.MockClock(autojump_threshold=0))
    seconds = _perf_counter() - began
    figures = {
        "seed": words.seed,
        "simulated_seconds": round(fleet.ended_at, 3),
        "hours_per_minute": round(fleet.ended_at / 3600 / (seconds / 60), 2),
        **fleet.counts,
        "digest": digest.hexdigest()[:16],
        "broken": fleet.broken,
    }
    print(json.dumps(figures))
    return 1 if fleet.broken else 0


if __name__ == "__main__":
    sys.exit(main())
