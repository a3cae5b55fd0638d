"""`coder terraform-provider`: the provider as a Terraform plugin, and a filesystem mirror of it."""

from __future__ import annotations

import sys
from pathlib import Path

from coder.base.config import Option
from coder.cli.core.command import Command, Invocation


def _run(invocation: Invocation) -> int:
    if not invocation["mirror"]:
        from coder.provisionerd.terraform.provider.plugin import serve_plugin

        return serve_plugin(invocation.env)
    from coder.provisionerd.terraform.mirror import write_mirror
    from coder.provisionerd.terraform.provider.catalog import PROVIDER_VERSION
    from coder.provisionerd.terraform.provider.provider import platform_name

    folder = Path(invocation["mirror"]).expanduser()
    configuration = write_mirror(folder, _own_command(), platform_name(), invocation["provider_version"])
    versions = ", ".join(dict.fromkeys((PROVIDER_VERSION, *invocation["provider_version"])))
    sys.stdout.write(
        f"Wrote provider coder/coder {versions} to {folder}.\n"
        f"Use it with:\n\n  export TF_CLI_CONFIG_FILE={configuration}\n"
    )
    return 0


def _own_command() -> list[str]:
    """Return the command line that starts this program again."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "terraform-provider"]
    root = Path(__file__).resolve().parents[3]
    return ["env", f"PYTHONPATH={root}", sys.executable, "-m", "coder", "terraform-provider"]


TERRAFORM_PROVIDER = Command(
    words="terraform-provider",
    summary="Serve the coder/coder Terraform provider, or write a mirror of it",
    run=_run,
    options=(
        Option(
            "mirror",
            "mirror",
            help="Write a mirror of the provider to this directory instead of serving it.",
        ),
        Option(
            "provider_version",
            "provider-version",
            kind="string-array",
            default=(),
            help="Additional provider version to offer, for templates that pin one.",
        ),
    ),
    max_args=0,
)
