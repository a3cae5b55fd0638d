"""Declaration of `coder bundle`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class BundleOptions(Options):
    """Options of `coder bundle`."""

    output: str = option(
        "coder-bundle",
        "Output directory; created if it does not exist.",
        short="o",
    )
    platform: tuple[str, ...] = option(
        (),
        "Platform to collect for, like linux_amd64; may be repeated; defaults to this machine's.",
    )
    installed_at: str = option(
        "",
        "Path of the directory on the target machines, if it differs from this machine's.",
    )


BUNDLE = Command(
    words="bundle",
    summary="Collect Terraform and its providers for machines without internet access",
    options=BundleOptions,
    usage="[template-folder...]",
    long="Collects for the given templates, or for the bundled examples. "
    "Requires access to the registry and the release site.",
    examples=(
        ("Collect what two templates require", "coder bundle ./docker ./kubernetes"),
        (
            "Collect for another platform and another path",
            "coder bundle ./docker --platform linux_arm64 --installed-at /opt/coder-bundle",
        ),
    ),
)
