"""Options and names shared by declarations: runs."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.options import Options, option


class RunOptions(Options):
    """Size of a scale test, and its reports."""

    concurrency: int = option(
        1,
        "Number of concurrent runs; the others wait in a queue.",
        env="CODER_SCALETEST_CONCURRENCY",
    )
    timeout: timedelta = option(
        timedelta(minutes=30),
        "Timeout for the whole test, like 30m; unfinished runs fail.",
        env="CODER_SCALETEST_TIMEOUT",
    )
    job_timeout: timedelta = option(
        timedelta(minutes=5),
        "Timeout for a single run, like 5m; a timeout fails the run.",
        env="CODER_SCALETEST_JOB_TIMEOUT",
    )
    output: tuple[str, ...] = option(
        ("text",),
        "Result outputs: text, json, text:FILE or json:FILE, separated by commas.",
        env="CODER_SCALETEST_OUTPUTS",
    )
    trace: bool = option(
        False,
        env="CODER_SCALETEST_TRACE",
        hidden=True,
    )
    trace_coder: bool = option(
        False,
        env="CODER_SCALETEST_TRACE_CODER",
        hidden=True,
    )
    trace_key: str = option(
        "",
        flag="trace-honeycomb-api-key",
        env="CODER_SCALETEST_TRACE_HONEYCOMB_API_KEY",
        hidden=True,
    )
    trace_propagate: bool = option(
        False,
        env="CODER_SCALETEST_TRACE_PROPAGATE",
        hidden=True,
    )


class CleanupOptions(Options):
    """Size of a cleanup."""

    cleanup_concurrency: int = option(
        1,
        "Number of workspaces and users to delete concurrently.",
        env="CODER_SCALETEST_CLEANUP_CONCURRENCY",
    )
    cleanup_timeout: timedelta = option(
        timedelta(minutes=30),
        "Timeout for deleting all users and workspaces, like 30m.",
        env="CODER_SCALETEST_CLEANUP_TIMEOUT",
    )
    cleanup_job_timeout: timedelta = option(
        timedelta(minutes=5),
        "Timeout for deleting one user or workspace, like 5m.",
        env="CODER_SCALETEST_CLEANUP_JOB_TIMEOUT",
    )


class UnusedCleanupOptions(Options):
    """Options of cleanups that other commands accept from a shared environment."""

    unused_cleanup_concurrency: int = option(
        1,
        "Number of workspaces and users to delete concurrently.",
        flag="cleanup-concurrency",
        env="CODER_SCALETEST_CLEANUP_CONCURRENCY",
        hidden=True,
    )
    unused_cleanup_timeout: timedelta = option(
        timedelta(minutes=30),
        "Timeout for deleting all users and workspaces, like 30m.",
        flag="cleanup-timeout",
        env="CODER_SCALETEST_CLEANUP_TIMEOUT",
        hidden=True,
    )
    unused_cleanup_job_timeout: timedelta = option(
        timedelta(minutes=5),
        "Timeout for deleting one user or workspace, like 5m.",
        flag="cleanup-job-timeout",
        env="CODER_SCALETEST_CLEANUP_JOB_TIMEOUT",
        hidden=True,
    )


class PrometheusOptions(Options):
    """Metrics of a scale test."""

    prometheus_address: str = option(
        "0.0.0.0:21112",
        flag="scaletest-prometheus-address",
        env="CODER_SCALETEST_PROMETHEUS_ADDRESS",
        hidden=True,
    )
    prometheus_wait: timedelta = option(
        timedelta(seconds=15),
        flag="scaletest-prometheus-wait",
        env="CODER_SCALETEST_PROMETHEUS_WAIT",
        hidden=True,
    )
