"""Settings of a provisioner daemon and the two ways to stop one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import trio

from coder.provisionerd.terraform.limits import NO_LIMITS, ProcessLimits


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """Settings of one daemon. Durations are in seconds unless stated otherwise."""

    name: str = "provisioner"
    work_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "coder-provisioner")
    "Parent of the job directories; created with mode 0700."
    heartbeat: float = 5.0
    "Longest silence towards the server while a job runs (docs/protocol/provisioners.md#the-daemon)."
    log_debounce: float = 0.25
    update_timeout: float = 30.0
    upload_timeout: float = 300.0
    force_cancel: float = 600.0
    "Time the executor has to end after a cancel."
    exit_timeout: float = 180.0
    "Time terraform has to end after an interrupt before it is killed."
    job_timeout: float = 0.0
    "Longest duration of a job before it is interrupted like a canceled one and fails; 0: unlimited."
    reconnect_first: float = 0.05
    reconnect_last: float = 10.0
    retry_first: float = 0.025
    retry_last: float = 5.0


RELEASES = "https://releases.hashicorp.com/terraform"
"Default site of terraform downloads."
RELEASES_VARIABLE = "CODER_PROVISIONER_TERRAFORM_RELEASES_URL"
"Environment variable that names another site; `off` forbids downloads."


@dataclass(frozen=True, slots=True)
class TerraformConfig:
    """Settings for finding and running terraform."""

    binary: str = "terraform"
    "Name on PATH, or a path."
    cache_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "coder-provisioner-cache")
    "Folder of downloaded provider plugins, shared by the daemons of one process."
    releases: str = ""
    """Site that serves terraform when `binary` is not installed, laid out like HashiCorp's. Empty: no downloads. Only
    applies to the plain name; a path always means that program."""
    provider: str = "builtin"
    "Provider coder/coder: `builtin` is ours, in process; `upstream` is the one that terraform init installs."
    environment: Mapping[str, str] = field(default_factory=dict)
    "Environment that terraform inherits, before CODER_* is removed; usually the process environment."
    exit_timeout: float = 180.0
    limits: ProcessLimits = NO_LIMITS
    "Limits of terraform and its providers; none for daemons with a machine of their own."


class Shutdown:
    """Request to stop a daemon: first `drain`, then perhaps `cancel_job`. Cancelling the daemon's task stops it
    immediately."""

    def __init__(self) -> None:
        self._draining = trio.Event()
        self._canceling = trio.Event()

    def drain(self) -> None:
        """Accept no more jobs; end when the running job has ended."""
        self._draining.set()

    def cancel_job(self) -> None:
        """Drain, and cancel the running job gracefully."""
        self._draining.set()
        self._canceling.set()

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    async def wait_draining(self) -> None:
        await self._draining.wait()

    async def wait_canceling(self) -> None:
        await self._canceling.wait()
