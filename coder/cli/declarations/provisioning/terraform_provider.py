"""Declaration of `coder terraform-provider`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class TerraformProviderOptions(Options):
    """Options of `coder terraform-provider`."""

    mirror: str = option(
        "",
        "Write a mirror of the provider to this directory instead of serving it.",
    )
    provider_version: tuple[str, ...] = option(
        (),
        "Additional provider version to offer, for templates that pin one.",
    )


TERRAFORM_PROVIDER = Command(
    words="terraform-provider",
    summary="Serve the coder/coder Terraform provider, or write a mirror of it",
    options=TerraformProviderOptions,
    max_args=0,
    examples=(("Write a filesystem mirror of the provider", "coder terraform-provider --mirror ./mirror"),),
)
