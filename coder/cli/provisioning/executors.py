"""Executors of provisioner daemons, external and built-in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coder.base.config import process_environment
from coder.provisionerd.config import RELEASES, RELEASES_VARIABLE, TerraformConfig
from coder.provisionerd.executors.contract import Executor
from coder.provisionerd.executors.terraform import executor_kinds
from coder.provisionerd.terraform.limits import NO_LIMITS, builtin_limits


def terraform_executors(
    cache: Path, binary: str = "terraform", provider: str = "builtin", *, builtin: int = 0
) -> Mapping[str, Executor]:
    """Return the executors; `builtin` is the number of daemons that share the server's machine."""
    environment = process_environment()
    releases = environment.get(RELEASES_VARIABLE, "") or RELEASES
    return executor_kinds(
        TerraformConfig(
            binary=binary,
            provider=provider,
            releases="" if releases == "off" else releases,
            cache_dir=cache / "terraform",
            environment=environment,
            limits=builtin_limits(builtin, environment) if builtin else NO_LIMITS,
        )
    )


def provisioner_cache(text: str) -> Path:
    """Return the folder of a daemon's downloads and jobs."""
    return Path(text or "~/.cache/coder").expanduser() / "provisioner"
