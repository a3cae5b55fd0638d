"""A fleet's life from one seed: `python -m tests.simnet.fleet --seed 7 --minutes 10`.

A workload that knows nothing of the implementation connects, types, sleeps, roams, cuts paths, restarts server and
agents, and revokes rights, in any order. The claims of docs/reliability.md are checked all the time and at the end. The
same seed gives the same run, to the last datagram: the digest that is printed says so.
"""

from __future__ import annotations

import sys

from tests.kit.network import simulated_run, simulated_time


def main() -> int:
    """Run one seed; print figures as a JSON line; exit with 1 if a claim was broken."""
    parser = simulated_run.new_parser(__doc__, minutes=10.0, defects=("revoke", "lost", "bytes"))
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8, help="clients at once")
    words = simulated_run.parse(parser)
    simulated_time.prepare(words.seed)

    from tests.kit.network.simulated_fleet import replace_network
    from tests.simnet import fleet_defects
    from tests.simnet.fleet_workload import Fleet

    replace_network()
    if words.defect:
        fleet_defects.introduce(words.defect)
    return simulated_run.run(words, lambda note: Fleet(words.seed, words.agents, words.clients, note))


if __name__ == "__main__":
    sys.exit(main())
