"""`coder exp scaletest dashboard`: requests of the dashboard's pages by many concurrent visitors, each timed."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import trio

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.scaletest.dashboard import DASHBOARD, ScaletestDashboardOptions
from coder.cli.scaletest.cleanup import now
from coder.cli.scaletest.runs import (
    MAX_JOBS,
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

if TYPE_CHECKING:
    from coder.net.http1 import HttpClient

PAGES = {
    "workspaces": ("/api/v2/workspaces?q=owner%3Ame&limit=25", "/api/v2/templates", "/api/v2/users/me/organizations"),
    "templates": ("/api/v2/templates", "/api/v2/templates/examples"),
    "account": ("/api/v2/users/me", "/api/v2/users/me/appearance", "/api/v2/users/me/keys/tokens"),
    "start": (
        "/api/v2/buildinfo",
        "/api/v2/users/me",
        "/api/v2/entitlements",
        "/api/v2/appearance",
        "/api/v2/experiments",
        "/api/v2/regions",
        "/api/v2/notifications/inbox",
    ),
}
"""Requests that a page sends when opened, concurrently."""


@implements(DASHBOARD)
def _run(invocation: Invocation[ScaletestDashboardOptions]) -> int:
    check_outputs(invocation)
    if invocation.options.interval.total_seconds() <= 0 or invocation.options.jitter >= invocation.options.interval:
        raise CoderError("scaletest", "--interval must be above 0, and --jitter below it")
    return run_trio(with_client, invocation, partial(_test, invocation))


async def _test(invocation: Invocation[ScaletestDashboardOptions], http: HttpClient) -> int:
    target_users = invocation.options.target_users
    visitors = chosen_range(target_users, "target-users", MAX_JOBS) if target_users else range(1)
    began = now()
    announce_runs(len(visitors), "visitors", invocation.options.concurrency)
    seconds = min(invocation.options.job_timeout, invocation.options.timeout).total_seconds()
    jobs: list[Job] = [(f"visitor-{number}", partial(_visit, invocation, http, number, seconds)) for number in visitors]
    runs = await run_all(
        jobs,
        concurrency=invocation.options.concurrency,
        timeout=invocation.options.timeout.total_seconds() + 60,
        job_timeout=seconds + 60,
    )
    return write_report(invocation, "dashboard", began, runs)


async def _visit(
    invocation: Invocation[ScaletestDashboardOptions], http: HttpClient, number: int, seconds: float, run: ScaletestRun
) -> None:
    """Open pages one after the other for this duration; at least one."""
    # Every visitor has its own generator, so that --rand-seed repeats a test.
    chance = random.Random(f"{invocation.options.rand_seed} {number}")
    interval, jitter = invocation.options.interval.total_seconds(), invocation.options.jitter.total_seconds()
    end = trio.current_time() + seconds
    times: dict[str, list[float]] = {}
    while True:
        page = chance.choice(sorted(PAGES))
        began = trio.current_time()
        await _open_page(http, page)
        times.setdefault(page, []).append(trio.current_time() - began)
        pause = interval + chance.uniform(-jitter, jitter)
        if trio.current_time() + pause >= end:
            break
        await trio.sleep(pause)
    run.figures["pages"] = {
        page: {"count": len(durations), **percentiles(durations)} for page, durations in sorted(times.items())
    }


async def _open_page(http: HttpClient, page: str) -> None:
    """Send a page's requests. Raise the error of the first failed request."""
    failed: list[CoderError] = []

    async def ask(path: str) -> None:
        try:
            await http.request("GET", path, expect=(200, 403, 404))
        except CoderError as error:
            failed.append(error)

    async with trio.open_nursery() as nursery:
        for path in PAGES[page]:
            nursery.start_soon(ask, path)
    if failed:
        raise failed[0]
