"""Declarations of `coder provisioner start` and `coder provisionerd start`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, option

PROVIDERS = ("builtin", "upstream")
"""Source of the coder/coder provider: this process, or Terraform's installation."""


class ProvisionerStartOptions(OrgOption):
    """Options of `coder provisioner start`."""

    cache_dir: str = option(
        "",
        "Directory for work files and downloaded programs; defaults to the user's cache directory.",
        env="CODER_CACHE_DIRECTORY",
        short="c",
    )
    tag: tuple[str, ...] = option(
        (),
        "Tag, key=value, of this provisioner; it takes jobs whose tags are a subset; may be repeated.",
        env="CODER_PROVISIONERD_TAGS",
        short="t",
    )
    name: str = option(
        "",
        "Name of this provisioner; defaults to the host name.",
        env="CODER_PROVISIONER_DAEMON_NAME",
    )
    key: str = option(
        "",
        "Provisioner key to authenticate with; it sets organization and tags.",
        env="CODER_PROVISIONER_DAEMON_KEY",
        secret=True,
    )
    psk: str = option(
        "",
        "Pre-shared key to authenticate with instead of a provisioner key.",
        env="CODER_PROVISIONER_DAEMON_PSK",
        secret=True,
    )
    terraform_path: str = option(
        "terraform",
        "Terraform or OpenTofu program: a path, or a name to look up in PATH.",
        env="CODER_PROVISIONER_TERRAFORM_PATH",
    )
    terraform_provider: str = option(
        "builtin",
        "Serve the coder/coder provider in this process, or let Terraform install upstream's.",
        env="CODER_PROVISIONER_TERRAFORM_PROVIDER",
        choices=PROVIDERS,
    )
    job_timeout: timedelta = option(
        timedelta(hours=4),
        "Timeout after which a job is interrupted and fails; 0 disables it.",
        env="CODER_PROVISIONER_JOB_TIMEOUT",
    )
    forceful: bool = option(
        False,
        "Exit at the first signal instead of waiting for the running job to finish.",
        env="CODER_PROVISIONER_FORCEFUL",
    )
    poll_interval: str = option(
        "",
        env="CODER_PROVISIONERD_POLL_INTERVAL",
        hidden=True,
    )
    poll_jitter: str = option(
        "",
        env="CODER_PROVISIONERD_POLL_JITTER",
        hidden=True,
    )
    log_human: str = option(
        "/dev/stderr",
        "File to append log lines to as text; empty disables it.",
        env="CODER_PROVISIONER_DAEMON_LOGGING_HUMAN",
    )
    log_json: str = option(
        "",
        "File to append log lines to as JSON, one object a line.",
        env="CODER_PROVISIONER_DAEMON_LOGGING_JSON",
    )
    log_stackdriver: str = option(
        "",
        env="CODER_PROVISIONER_DAEMON_LOGGING_STACKDRIVER",
        hidden=True,
    )
    log_filter: tuple[str, ...] = option(
        (),
        env="CODER_PROVISIONER_DAEMON_LOG_FILTER",
        hidden=True,
    )
    experiments: tuple[str, ...] = option(
        (),
        env="CODER_EXPERIMENTS",
        hidden=True,
    )
    prometheus: bool = option(
        False,
        flag="prometheus-enable",
        env="CODER_PROMETHEUS_ENABLE",
        hidden=True,
    )
    prometheus_address: str = option(
        "127.0.0.1:2112",
        env="CODER_PROMETHEUS_ADDRESS",
        hidden=True,
    )
    verbose: bool = option(
        False,
        "Log debug messages: every step of a job and each call to the server.",
        env="CODER_PROVISIONER_DAEMON_VERBOSE",
    )


START = Command(
    words="provisioner start",
    summary="Run a provisioner",
    options=ProvisionerStartOptions,
    max_args=0,
    examples=(
        ("Run a provisioner with a provisioner key", "coder provisioner start --key ABCDEF --name builder-1"),
        (
            "Run jobs of one environment, with the shared secret",
            "coder provisioner start --psk ABCDEF --tag environment=gpu",
        ),
    ),
)

LEGACY_START = Command(
    words="provisionerd start",
    summary="Run a provisioner",
    options=ProvisionerStartOptions,
    max_args=0,
    examples=(("Run a provisioner with the shared secret", "coder provisionerd start --psk ABCDEF"),),
)
