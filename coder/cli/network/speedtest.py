"""`coder speedtest`: measures the throughput to a workspace with the protocol of Tailscale's speedtest."""

from __future__ import annotations

import contextlib
import sys

import trio

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.speedtest import SPEEDTEST, SpeedtestOptions
from coder.cli.ui.output import chosen_columns, print_json, print_table, say
from coder.client.link import WorkspaceLink, open_link
from coder.client.ready import Preparation, print_to_stderr
from coder.client.tracing import open_capture
from coder.net.http1 import HttpClient
from coder.tailnet.speedtest import Interval, run_speedtest

SPEEDTEST_PORT = 3
COLUMNS = ("interval", "throughput")
DIRECT_PAUSE = 0.25
"Seconds between two checks for a direct path."


@implements(SPEEDTEST)
def _run(invocation: Invocation[SpeedtestOptions]) -> int:
    columns = chosen_columns(invocation)
    intervals = run_trio(_main, invocation)
    _print(invocation, columns, intervals)
    return 0


async def _main(invocation: Invocation[SpeedtestOptions]) -> list[Interval]:
    policy = session.dial_policy(invocation)
    async with HttpClient(policy) as http:
        prepare = Preparation(http, print_to_stderr, autostart=False)
        target = await prepare.wait_connected(await prepare.find(invocation.args[0]))
    direct = not invocation.globals.disable_direct
    seconds = invocation.options.time.total_seconds()
    async with contextlib.AsyncExitStack() as stack:
        tap = stack.enter_context(open_capture(invocation.options.pcap_file)) if invocation.options.pcap_file else None
        link = await stack.enter_async_context(open_link(policy, target.agent.id, direct=direct, tap=tap))
        await link.wait_reachable()
        await _wait_for_path(link, wait_direct=invocation.options.direct)
        say(f"Starting a {seconds:g}s {invocation.options.direction}load test...")
        intervals = await run_speedtest(await link.connect(SPEEDTEST_PORT), invocation.options.direction, seconds)
    lasted = intervals[-1].end - intervals[-1].start
    if lasted < 0.9 * seconds:
        say(f"The agent ended the test after {lasted:.0f}s, the maximum it allows.")
    return intervals


async def _wait_for_path(link: WorkspaceLink, *, wait_direct: bool) -> None:
    """Print the path of the test; with `--direct`, wait for a direct path first."""
    last_reported = ""
    while True:
        try:
            ping = await link.ping()
        except CoderError:
            ping = None
        if ping is not None:
            via = f"direct via {ping.endpoint}" if ping.via == "direct" else f"relayed via DERP({ping.region_code})"
            if via != last_reported:
                say(f"{ping.latency_s * 1000:.2f}ms {via}")
                last_reported = via
            if ping.via == "direct" or not wait_direct:
                return
        elif not wait_direct:
            return
        await trio.sleep(DIRECT_PAUSE)


def _print(invocation: Invocation[SpeedtestOptions], columns: list[str], intervals: list[Interval]) -> None:
    if invocation.options.output == "json":
        *parts, overall = [
            {
                "start_time_seconds": round(interval.start, 6),
                "end_time_seconds": round(interval.end, 6),
                "throughput_mbits": interval.mbits,
            }
            for interval in intervals
        ]
        print_json({"overall": overall, "intervals": parts})
        return
    rows = [
        {"interval": f"{interval.start:.2f}-{interval.end:.2f} sec", "throughput": f"{interval.mbits:.4f} Mbits/sec"}
        for interval in intervals
    ]
    rows.insert(-1, dict.fromkeys(COLUMNS, "-" * 25))
    print_table(columns, rows)
    sys.stdout.flush()
