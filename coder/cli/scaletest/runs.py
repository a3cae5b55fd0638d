"""Framework of scale tests: many jobs with bounded concurrency, and their results."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import trio

from coder.base.atomic_file import naming
from coder.base.errors import CoderError, explain_error
from coder.base.json_types import Json
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options
from coder.cli.core.unsupported import unsupported
from coder.cli.declarations.scaletest.runs import RunOptions, UnusedCleanupOptions
from coder.cli.ui.output import say
from coder.net.http1 import HttpClient

MAX_JOBS = 2000
MAX_CONCURRENCY = 200
"""Limits (our choice) of a test's jobs and of their concurrency; above them, this program is the bottleneck."""
UNSUPPORTED = {
    "trace": "the test has no tracing; use --trace of the server",
    "trace_coder": "the test has no tracing; use --trace of the server",
    "trace_key": "the test has no tracing; use --trace of the server",
    "trace_propagate": "the test has no tracing; use --trace of the server",
    "prometheus_address": "results are in --output json; the server's metrics are at its /metrics",
    "prometheus_wait": "results are in --output json; the server's metrics are at its /metrics",
    "connect_url": "connections are measured by workspace-traffic",
    "connect_hold": "connections are measured by workspace-traffic",
    "connect_interval": "connections are measured by workspace-traffic",
    "connect_mode": "connections are measured by workspace-traffic",
    "connect_timeout": "connections are measured by workspace-traffic",
    "run_expect_timeout": "a command that times out fails the run",
    "run_log_output": "the output of commands is in --output json",
    "retry": "failures are counted and not retried",
    "headless": "requests are sent as the pages send them, without rendering",
    "ssh": "traffic goes through terminals; scripts/bench measures SSH",
    "app": "traffic goes through terminals",
    "disable_direct": "terminals use the server's own connection to a workspace",
    "proxy_url": "traffic goes through the server",
    "unused_cleanup_concurrency": "this test creates nothing to delete",
    "unused_cleanup_timeout": "this test creates nothing to delete",
    "unused_cleanup_job_timeout": "this test creates nothing to delete",
}


@dataclass(slots=True)
class ScaletestRun:
    """Result of a job."""

    name: str
    seconds: float = 0.0
    error: str = ""
    figures: dict[str, Json] = field(default_factory=dict)
    "Measurements by name."


Job = tuple[str, Callable[[ScaletestRun], Awaitable[None]]]
"""Name and function of a job; the function fills in measurements and raises errors."""


async def run_all(
    jobs: Sequence[Job], *, concurrency: int, timeout: float, job_timeout: float, max_jobs: int = MAX_JOBS
) -> list[ScaletestRun]:
    """Run all jobs in order, `concurrency` at a time. An exception becomes the error of its run; times are in
    seconds."""
    if len(jobs) > max_jobs or not 0 < concurrency <= MAX_CONCURRENCY:
        raise CoderError("scaletest", f"at most {max_jobs} runs, and 1 to {MAX_CONCURRENCY} at a time")
    runs = [ScaletestRun(name) for name, _ in jobs]
    limit = trio.CapacityLimiter(concurrency)
    deadline = trio.current_time() + timeout

    async def one(run: ScaletestRun, work: Callable[[ScaletestRun], Awaitable[None]]) -> None:
        async with limit:
            began = trio.current_time()
            run.error = await _error_of(run, work, min(deadline, began + job_timeout))
            run.seconds = trio.current_time() - began

    async with trio.open_nursery() as nursery:
        for run, (_, work) in zip(runs, jobs, strict=True):
            nursery.start_soon(one, run, work)
    return runs


async def _error_of(run: ScaletestRun, work: Callable[[ScaletestRun], Awaitable[None]], deadline: float) -> str:
    with trio.move_on_at(deadline):
        try:
            await work(run)
        except (CoderError, msgspec.ValidationError, OSError, trio.BrokenResourceError) as error:
            return explain_error(error).split("\n")[0]
        return ""
    return "it timed out"


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return median, 95th and 99th percentile and maximum in milliseconds, from seconds; nearest rank."""
    ordered = sorted(values)
    if not ordered:
        return {}
    ranks = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
    return {name: round(ordered[math.ceil(share * len(ordered)) - 1] * 1000, 3) for name, share in ranks.items()}


def write_report(invocation: Invocation[RunOptions], title: str, began: datetime, runs: Sequence[ScaletestRun]) -> int:
    """Write the report to every --output. Return the exit status: 1 if a run failed.

    Raise the first OSError after writing all other outputs.
    """
    failed = [run for run in runs if run.error]
    durations = percentiles([run.seconds for run in runs])
    document = {
        "total_runs": len(runs),
        "total_pass": len(runs) - len(failed),
        "total_fail": len(failed),
        "start": began.isoformat(),
        "elapsed_ms": round((datetime.now(UTC) - began).total_seconds() * 1000),
        "durations": durations,
        "runs": {
            run.name: {
                "duration_ms": round(run.seconds * 1000, 3),
                "error": run.error or None,
                "metrics": run.figures,
            }
            for run in runs
        },
    }
    unwritten: list[OSError] = []
    for kind, path in _outputs(invocation):
        text = json.dumps(document, indent=1) + "\n" if kind == "json" else _text(title, durations, runs)
        try:
            if path is not None:
                with naming(path):
                    path.write_text(text, encoding="utf-8")
            else:
                sys.stdout.write(text)
                sys.stdout.flush()
        except OSError as error:
            unwritten.append(error)
    if unwritten:
        raise unwritten[0]
    return 1 if failed else 0


def _outputs(invocation: Invocation[RunOptions]) -> list[tuple[str, Path | None]]:
    """Return kind and file of each --output; None is standard output."""
    split = (output.partition(":") for output in invocation.options.output)
    return [(kind, Path(path) if path not in ("", "-") else None) for kind, _, path in split]


def _text(title: str, durations: Mapping[str, float], runs: Sequence[ScaletestRun]) -> str:
    lines = [f"{run.name}: {run.error}" for run in runs if run.error]
    lines += [f"{title}: {len(runs)} runs, {len(lines)} failed"]
    lines += [f"  {name.removesuffix('_ms')}: {value:g} ms" for name, value in durations.items()]
    return "\n".join(lines) + "\n"


def check_outputs(invocation: Invocation[RunOptions]) -> None:
    """Reject unwritable outputs and unsupported options before any request. Raise CoderError."""
    # These variables can be set for the commands that clean up.
    passed_by = {
        option.name for option in UnusedCleanupOptions.declared if invocation.sources.get(option.name) == "env"
    }
    reasons = {name: reason for name, reason in UNSUPPORTED.items() if name not in passed_by}
    for sentence, hint, _ in unsupported(invocation, reasons):
        raise CoderError("bad_option", sentence, hint)
    check_concurrency(invocation.options.concurrency, "concurrency")
    for kind, path in _outputs(invocation):
        if kind not in ("text", "json"):
            raise CoderError("bad_option", f"--output {kind} is neither text nor json", "Use json or json:FILE.")
        try:
            if path is not None and not path.is_fifo():  # opening a FIFO waits for its reader
                path.open("a").close()
        except OSError as error:
            raise CoderError("bad_option", f"--output {kind}:{path} cannot be written: {error.strerror}") from error


def check_concurrency(number: int, flag: str) -> None:
    """Raise CoderError for an unsupported number of concurrent runs."""
    if not 0 < number <= MAX_CONCURRENCY:
        raise CoderError("bad_option", f"--{flag} {number} is not from 1 to {MAX_CONCURRENCY} at a time")


def chosen_range(text: str, flag: str, count: int) -> range:
    """Parse `START:END` as a range of numbers below `count`; without a value, return all. Raise CoderError."""
    if not text:
        return range(count)
    start, colon, end = text.partition(":")
    if not colon or not (start or "0").isdecimal() or not (end or "0").isdecimal():
        raise CoderError("bad_option", f"--{flag} {text} is not a range", "Use START:END, like 0:10.")
    return range(min(int(start or 0), count), min(int(end) if end else count, count))


async def with_client(invocation: Invocation[Options], do: Callable[[HttpClient], Awaitable[int]]) -> int:
    """Call `do` with a client of the current session."""
    async with HttpClient(session.dial_policy(invocation), keep=MAX_CONCURRENCY) as http:
        return await do(http)


def announce_runs(count: int, description: str, concurrency: int) -> None:
    say(f"{count} {description}, {min(concurrency, count) or 1} at a time …")
