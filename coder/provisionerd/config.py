"""The settings of a provisioner daemon and the two ways to stop one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import trio


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """Seconds unless said otherwise."""

    name: str = "provisioner"
    work_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "coder-provisioner")
    "Job directories are made below it; created with mode 0700."
    heartbeat: float = 5.0
    "Longest silence towards the server while a job runs (docs/protocol/provisioners.md#the-daemon)."
    log_debounce: float = 0.25
    update_timeout: float = 30.0
    upload_timeout: float = 300.0
    force_cancel: float = 600.0
    "After a cancel, how long the executor may take to end by itself."
    exit_timeout: float = 180.0
    "After an interrupt, how long terraform may take before it is killed."
    job_timeout: float = 0.0
    "How long a job may take before it is interrupted as by a cancel and fails; 0: for ever."
    reconnect_first: float = 0.05
    reconnect_last: float = 10.0
    retry_first: float = 0.025
    retry_last: float = 5.0


RELEASES = "https://releases.hashicorp.com/terraform"
"Where terraform is fetched from, unless told otherwise."
RELEASES_VARIABLE = "CODER_PROVISIONER_TERRAFORM_RELEASES_URL"
"Names another site; `off` forbids downloads."


@dataclass(frozen=True, slots=True)
class TerraformConfig:
    """How terraform is found and run."""

    binary: str = "terraform"
    "Name on PATH, or a path."
    cache_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "coder-provisioner-cache")
    "Downloaded provider plugins, shared by the daemons of one process."
    releases: str = ""
    """Where terraform is fetched from when `binary` is not installed: a site laid out as HashiCorp's. Empty: nowhere.
    Only for the plain name; who gives a path means that program."""
    provider: str = "builtin"
    "`builtin`: our coder/coder provider, in process. `upstream`: whatever terraform init installs."
    environment: Mapping[str, str] = field(default_factory=dict)
    "What terraform inherits, before CODER_* is taken out; usually the process environment."
    exit_timeout: float = 180.0


class Shutdown:
    """Asks a daemon to stop: first `drain`, then perhaps `cancel_job`. Cancelling its task is the hard way."""

    def __init__(self) -> None:
        self._draining = trio.Event()
        self._canceling = trio.Event()

    def drain(self) -> None:
        """Take no more jobs; end when the running one has ended."""
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
