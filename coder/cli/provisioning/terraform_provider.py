"""`coder terraform-provider`: the provider as a Terraform plugin, and a filesystem mirror of it."""

from __future__ import annotations

import sys
from pathlib import Path

from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.provisioning.terraform_provider import TERRAFORM_PROVIDER, TerraformProviderOptions
from coder.provisionerd.terraform.provider.plugin import serve_plugin


@implements(TERRAFORM_PROVIDER)
def _run(invocation: Invocation[TerraformProviderOptions]) -> int:
    if not invocation.options.mirror:
        return serve_plugin(invocation.env)
    from coder.provisionerd.terraform.mirror import write_mirror
    from coder.provisionerd.terraform.provider.catalog import PROVIDER_VERSION
    from coder.provisionerd.terraform.provider.provider import platform_name

    folder = Path(invocation.options.mirror).expanduser()
    configuration = write_mirror(folder, _own_command(), platform_name(), invocation.options.provider_version)
    versions = ", ".join(dict.fromkeys((PROVIDER_VERSION, *invocation.options.provider_version)))
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
