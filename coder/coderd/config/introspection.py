"""Settings: logs, metrics, traces and health of the server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.base.secret import Secret
from coder.coderd.config.groups import (
    GENERAL,
    HEALTH_CHECK,
    LOGGING,
    PPROF,
    PROMETHEUS,
    TELEMETRY,
    TRACING,
    USAGE_STATS,
)
from coder.coderd.config.setting import HostPort, concern, setting


@concern(HEALTH_CHECK)
@dataclass(frozen=True, kw_only=True)
class HealthCheckSettings:
    """Settings of the health report."""

    health_check_refresh: timedelta = setting(
        timedelta(minutes=10),
        "Health Check Refresh",
        "Time for which a report of the deployment's health is cached.",
        yaml="refresh",
        path="healthcheck.refresh",
    )
    health_check_threshold_database: timedelta = setting(
        timedelta(milliseconds=15),
        "Health Check Threshold: Database",
        "Report a database that takes longer than this to answer as unhealthy.",
        yaml="thresholdDatabase",
        path="healthcheck.threshold_database",
    )


@concern(LOGGING)
@dataclass(frozen=True, kw_only=True)
class LoggingSettings:
    """Settings of log outputs."""

    log_human: str = setting(
        "/dev/stderr",
        "Human Log Location",
        "File that log lines are appended to as text; empty writes none.",
        env="CODER_LOGGING_HUMAN",
        yaml="humanPath",
        path="logging.human",
        proxies=True,
    )
    log_json: str = setting(
        "",
        "JSON Log Location",
        "File that log lines are appended to as JSON, one object a line.",
        env="CODER_LOGGING_JSON",
        yaml="jsonPath",
        path="logging.json",
        proxies=True,
    )
    log_stackdriver: str = setting(
        "",
        "Stackdriver Log Location",
        "File that log lines are appended to in the form Stackdriver reads.",
        env="CODER_LOGGING_STACKDRIVER",
        yaml="stackdriverPath",
        path="logging.stackdriver",
        proxies=True,
    )
    log_filter: tuple[str, ...] = setting(
        (),
        "Log Filter",
        "Show debug messages of loggers matching these expressions.",
        yaml="filter",
        path="logging.log_filter",
        short="l",
    )
    enable_terraform_debug_mode: bool = setting(
        False,
        "Enable Terraform debug mode",
        "Allow users to request Terraform's debug output when they build a workspace.",
        yaml="enableTerraformDebugMode",
        path="enable_terraform_debug_mode?",
        shown="false",
    )
    verbose: bool = setting(
        False,
        "Verbose",
        "Show debug messages.",
        yaml="verbose",
        short="v",
        hidden=True,
        proxies=True,
        instead=("log-filter",),
    )


@concern(PROMETHEUS)
@dataclass(frozen=True, kw_only=True)
class PrometheusSettings:
    """Settings of metrics."""

    prometheus_enable: bool = setting(
        False,
        "Prometheus Enable",
        "Serve metrics in the Prometheus format, on a separate address.",
        yaml="enable",
        path="prometheus.enable",
        proxies=True,
    )
    prometheus_address: HostPort = setting(
        "127.0.0.1:2112",
        "Prometheus Address",
        "Address and port of the metrics.",
        yaml="address",
        path="prometheus.address",
        proxies=True,
    )
    prometheus_collect_agent_stats: bool = setting(
        False,
        "Prometheus Collect Agent Stats",
        "Add the agents' own counters to the metrics.",
        yaml="collect_agent_stats",
        path="prometheus.collect_agent_stats",
    )
    prometheus_collect_db_metrics: bool = setting(
        False,
        "Prometheus Collect Database Metrics",
        "Count and time work on the database, by query and route.",
        yaml="collect_db_metrics",
        path="prometheus.collect_db_metrics",
        shown="false",
    )
    prometheus_aggregate_agent_stats_by: tuple[str, ...] = setting(
        ("agent_name", "template_name", "username", "workspace_name"),
        "Prometheus Aggregate Agent Stats By",
        "Labels that agent statistics keep: agent_name, template_name, username, workspace_name. Values that differ in "
        "other labels are added up.",
        yaml="aggregate_agent_stats_by",
        path="prometheus.aggregate_agent_stats_by",
    )
    metrics_cache_refresh_interval: timedelta = setting(
        timedelta(hours=4),
        "Metrics Cache Refresh Interval",
        "Interval at which deployment figures are counted.",
        group=GENERAL,
        path="metrics_cache_refresh_interval",
        hidden=True,
    )


@concern(TRACING)
@dataclass(frozen=True, kw_only=True)
class TracingSettings:
    """Settings of OpenTelemetry traces."""

    trace: bool = setting(
        False,
        "Trace Enable",
        "Send OpenTelemetry traces to the collector that its standard variables (OTEL_…) name.",
        env="CODER_TRACE_ENABLE",
        yaml="enable",
        path="trace.enable",
        proxies=True,
    )
    trace_logs: bool = setting(
        False,
        "Capture Logs in Traces",
        "Add the log lines of a request to its trace.",
        yaml="captureLogs",
        path="trace.capture_logs",
        proxies=True,
    )
    trace_datadog: bool = setting(
        False,
        "Send Go runtime traces to DataDog",
        "Refused: it is about the runtime of another language.",
        yaml="dataDog",
        path="trace.data_dog",
        hidden=True,
        proxies=True,
        shown="false",
    )
    trace_honeycomb_api_key: Secret = setting(
        Secret(""),
        "Trace Honeycomb API Key",
        "Send traces to Honeycomb with this key.",
        path="trace.honeycomb_api_key",
        proxies=True,
    )


@concern(PPROF)
@dataclass(frozen=True, kw_only=True)
class PprofSettings:
    """Settings of debug endpoints."""

    pprof_enable: bool = setting(
        False,
        "pprof Enable",
        "Serve profiles of this process as text under /debug/pprof, on a separate address without authentication.",
        yaml="enable",
        path="pprof.enable",
        proxies=True,
    )
    pprof_address: HostPort = setting(
        "127.0.0.1:6060",
        "pprof Address",
        "Address and port of the profiles.",
        yaml="address",
        path="pprof.address",
        proxies=True,
    )


@concern(USAGE_STATS)
@dataclass(frozen=True, kw_only=True)
class UsageSettings:
    """Settings of usage counts and telemetry."""

    stats_collection_usage_stats_enable: bool = setting(
        True,
        "Stats Collection Usage Stats Enable",
        "Collect the use of applications by user, for the insights pages.",
        yaml="enable",
        path="stats_collection.usage_stats.enable",
    )
    telemetry: bool = setting(
        False,
        "Telemetry Enable",
        "Accepted for compatibility; nothing is ever sent.",
        env="CODER_TELEMETRY_ENABLE",
        group=TELEMETRY,
        yaml="enable",
        path="telemetry.enable",
    )
    telemetry_url: str = setting(
        "https://telemetry.coder.com",
        "Telemetry URL",
        "Accepted for compatibility; nothing is ever sent.",
        group=TELEMETRY,
        yaml="url",
        path="telemetry.url",
        hidden=True,
    )
    update_check: bool = setting(
        False,
        "Update Check",
        "Check once a day whether --release-list has a newer release, and report it at /api/v2/updatecheck.",
        group=GENERAL,
        yaml="updateCheck",
        path="update_check?",
    )
    release_list: str = setting(
        "",
        "Release List",
        "List of releases for the update check and `coder upgrade`: a URL, a file, or a folder with a releases.json.",
        group=GENERAL,
        yaml="releaseList",
    )
