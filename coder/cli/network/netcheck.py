"""`coder netcheck`: checks the network paths from this machine to the deployment and suggests fixes.

The report is JSON on standard output with upstream's keys; a summary for users goes to standard error. `--output text`
prints only the summary.
"""

from __future__ import annotations

import json
import sys

from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.netcheck import NETCHECK, NetcheckOptions
from coder.tailnet.network_check import check_network, to_json
from coder.tailnet.verdicts import lines_of


@implements(NETCHECK)
def _run(invocation: Invocation[NetcheckOptions]) -> int:
    return run_trio(_main, invocation)


async def _main(invocation: Invocation[NetcheckOptions]) -> int:
    policy = session.dial_policy(invocation)
    sys.stderr.write("Gathering a network report. This may take a few seconds...\n")
    report = await check_network(policy, direct=not invocation.globals.disable_direct)
    words = "\n".join(lines_of(report.transports)) + "\n"
    if invocation.options.output == "text":
        sys.stdout.write(words)
        return 0
    sys.stdout.write(json.dumps(to_json(report), indent=4) + "\n")
    sys.stdout.flush()
    sys.stderr.write(words)
    return 0
