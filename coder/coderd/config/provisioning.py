"""Settings: provisioner daemons and prebuilt workspaces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.base.secret import Secret
from coder.coderd.config.groups import GENERAL, PREBUILDS, PROVISIONING
from coder.coderd.config.setting import EVERY, concern, setting


@concern(PROVISIONING)
@dataclass(frozen=True, kw_only=True)
class ProvisionerSettings:
    """Provisioner daemons and the jobs they run."""

    provisioner_daemons: int = setting(
        3,
        "Provisioner Daemons",
        "Number of concurrent builds and imports of this server; 0 leaves all to external provisioners.",
        yaml="daemons",
        path="provisioner.daemons",
    )
    provisioner_types: tuple[str, ...] = setting(
        ("terraform",),
        "Provisioner Daemon Types",
        "Kinds of templates they run (terraform, echo).",
        yaml="daemonTypes",
        path="provisioner.daemon_types",
        hidden=True,
    )
    provisioner_daemon_poll_interval: timedelta = setting(
        timedelta(seconds=1),
        "Poll Interval",
        "Without effect: the server wakes provisioners.",
        yaml="daemonPollInterval",
        path="provisioner.daemon_poll_interval",
    )
    provisioner_daemon_poll_jitter: timedelta = setting(
        timedelta(milliseconds=100),
        "Poll Jitter",
        "Without effect: the server wakes provisioners.",
        yaml="daemonPollJitter",
        path="provisioner.daemon_poll_jitter",
    )
    provisioner_force_cancel_interval: timedelta = setting(
        timedelta(minutes=10),
        "Force Cancel Interval",
        "Kill a cancelled job that has not ended after this long.",
        yaml="forceCancelInterval",
        path="provisioner.force_cancel_interval",
    )
    provisioner_job_timeout: timedelta = setting(
        timedelta(hours=4),
        "Provisioner Job Timeout",
        "A job of a built-in provisioner that runs longer is interrupted and failed; 0 never.",
        yaml="jobTimeout",
    )
    provisioner_daemon_psk: Secret = setting(
        Secret(""),
        "Provisioner Daemon Pre-shared Key (PSK)",
        "Secret of external provisioners without a key of their own.",
        path="provisioner.daemon_psk",
    )
    aws_identity_certificates: str = setting(
        "",
        "Aws Identity Certificates",
        "PEM file with Amazon's certificates for instance identity documents, one for each of your regions.",
        yaml="awsIdentityCertificates",
    )
    provisioner_strict_tags: bool = setting(
        False,
        "Provisioner Strict Tags",
        "Untagged jobs run on untagged provisioners only, also while none is connected.",
        yaml="strictTags",
    )
    terraform_path: str = setting(
        "terraform",
        "Terraform Path",
        "terraform or tofu the built-in provisioners run: a path, or a name on PATH.",
        yaml="terraformPath",
    )
    terraform_provider: str = setting(
        "builtin",
        "Terraform Provider",
        '"upstream" lets terraform install the coder/coder provider.',
        yaml="terraformProvider",
    )
    job_hang_detector_interval: timedelta = setting(
        timedelta(minutes=1),
        "Job Reaper Detect Interval",
        "Interval of the search for hanging jobs.",
        group=GENERAL,
        yaml="jobHangDetectorInterval",
        path="job_hang_detector_interval",
        hidden=True,
        least=EVERY,
    )


@concern(PREBUILDS)
@dataclass(frozen=True, kw_only=True)
class PrebuildSettings:
    """Prebuilt workspaces."""

    workspace_prebuilds_reconciliation_interval: timedelta = setting(
        timedelta(minutes=1),
        "Reconciliation Interval",
        "Interval at which prebuilt workspaces are reconciled.",
        yaml="reconciliation_interval",
        path="workspace_prebuilds.reconciliation_interval",
        least=EVERY,
    )
    workspace_prebuilds_reconciliation_backoff_interval: timedelta = setting(
        timedelta(minutes=1),
        "Reconciliation Backoff Interval",
        "Time that each consecutive failed build adds to the wait before the next.",
        yaml="reconciliation_backoff_interval",
        path="workspace_prebuilds.reconciliation_backoff_interval",
        hidden=True,
    )
    workspace_prebuilds_reconciliation_backoff_lookback_period: timedelta = setting(
        timedelta(hours=1),
        "Reconciliation Backoff Lookback Period",
        "Ignore failed builds older than this when calculating the backoff.",
        yaml="reconciliation_backoff_lookback_period",
        path="workspace_prebuilds.reconciliation_backoff_lookback",
        hidden=True,
    )
    workspace_prebuilds_failure_hard_limit: int = setting(
        3,
        "Failure Hard Limit",
        "After so many failed builds in a row nothing more is built until there is a new version; 0 for no limit.",
        yaml="failure_hard_limit",
        path="workspace_prebuilds.failure_hard_limit",
        hidden=True,
    )
