"""`coder exp scaletest workspace-traffic`: sends bytes to a terminal of each workspace and times the echo."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio

from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.scaletest.traffic import WORKSPACE_TRAFFIC, ScaletestWorkspaceTrafficOptions
from coder.cli.scaletest.cleanup import now, username
from coder.cli.scaletest.ledger import Ledger, LedgerEntry
from coder.cli.scaletest.runs import (
    Job,
    ScaletestRun,
    announce_runs,
    check_outputs,
    chosen_range,
    percentiles,
    run_all,
    with_client,
    write_report,
)
from coder.cli.scaletest.terminal import open_terminal
from coder.client.answers import read
from coder.client.target import choose_agent
from coder.net.websocket import WebSocketStream

if TYPE_CHECKING:
    from coder.net.http1 import HttpClient

MAX_BYTES = 64 << 10
"""Maximum bytes per tick (our choice), as a terminal is not a file transfer."""
ECHO = "stty raw -echo; echo ready; exec cat"
"""Command in each terminal, which echoes its input unchanged."""


@implements(WORKSPACE_TRAFFIC)
def _run(invocation: Invocation[ScaletestWorkspaceTrafficOptions]) -> int:
    check_outputs(invocation)
    if (
        not 1 <= invocation.options.bytes_per_tick <= MAX_BYTES
        or invocation.options.tick_interval.total_seconds() < 0.001
    ):
        raise CoderError("scaletest", f"use 1 to {MAX_BYTES} bytes per tick, and at least 1 ms between ticks")
    return run_trio(with_client, invocation, partial(_test, invocation))


async def _test(invocation: Invocation[ScaletestWorkspaceTrafficOptions], http: HttpClient) -> int:
    entries = Ledger(session.config_dir(invocation), http.policy.url).of("workspace")
    if invocation.options.use_host_login:
        me = await username(http)
        entries = [entry for entry in entries if entry.owner == me]
    targets = [
        entries[index]
        for index in chosen_range(invocation.options.target_workspaces, "target-workspaces", len(entries))
    ]
    if not targets:
        raise CoderError(
            "scaletest",
            "there are no workspaces for the traffic",
            "Create some: coder exp scaletest create-workspaces --no-cleanup",
        )
    began = now()
    announce_runs(len(targets), "workspaces", invocation.options.concurrency)
    seconds = invocation.options.job_timeout.total_seconds()
    jobs: list[Job] = [(target.name, partial(_type, invocation, http, target, seconds)) for target in targets]
    runs = await run_all(
        jobs,
        concurrency=invocation.options.concurrency,
        timeout=invocation.options.timeout.total_seconds(),
        job_timeout=seconds + 60,
    )
    return write_report(invocation, "workspace-traffic", began, runs)


async def _type(
    invocation: Invocation[ScaletestWorkspaceTrafficOptions],
    http: HttpClient,
    target: LedgerEntry,
    seconds: float,
    run: ScaletestRun,
) -> None:
    path = f"/api/v2/users/{quote(target.owner, safe='')}/workspace/{quote(target.name, safe='')}"
    workspace = read(await http.request("GET", path), Workspace)
    if invocation.options.template and workspace.template_name != invocation.options.template:
        run.figures["kept"] = True
        return
    size, tick = invocation.options.bytes_per_tick, invocation.options.tick_interval.total_seconds()
    block = ("x" * (size - 1)) + "\n"
    sent = received = 0
    times: list[float] = []
    async with open_terminal(http.policy, choose_agent(workspace, "").id, ECHO) as terminal:
        await _until_ready(terminal)
        with trio.move_on_after(seconds):
            while True:
                began = trio.current_time()
                await terminal.send_message(json.dumps({"data": block}).encode())
                sent += size
                while received < sent:
                    received += len(await _next(terminal))
                times.append(trio.current_time() - began)
                await trio.sleep(max(0.0, tick - times[-1]))
    run.figures |= {"bytes_written": sent, "bytes_read": received, "ticks": len(times), "echo": percentiles(times)}
    if not times:
        raise CoderError("scaletest", "no echo was received")


async def _until_ready(terminal: WebSocketStream) -> None:
    seen = b""
    while b"ready" not in seen:
        seen += await _next(terminal)
    while not seen.endswith(b"\n"):
        seen += await _next(terminal)


async def _next(terminal: WebSocketStream) -> bytes:
    message = await terminal.receive_message()
    if message is None:
        raise CoderError("scaletest", "the terminal was closed")
    return message if isinstance(message, bytes) else message.encode()
