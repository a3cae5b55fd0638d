"""`coder bundle`: Terraform and its providers for machines without internet access."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core.command import Command, Invocation


def _run(invocation: Invocation) -> int:
    from coder.base.threads import run_trio
    from coder.provisionerd.config import RELEASES, RELEASES_VARIABLE
    from coder.provisionerd.terraform.bundle import collect
    from coder.provisionerd.terraform.provider.provider import platform_name

    target = Path(invocation["output"]).expanduser().absolute()
    templates = [Path(word).expanduser() for word in invocation.args] or _bundled()
    for folder in templates:
        if not folder.is_dir():
            raise CoderError("template", f"{folder} is not a directory", "Pass directories with templates.")
    platforms = tuple(invocation["platform"]) or (platform_name(),)
    installed_at = invocation["installed_at"] or str(target)

    async def main() -> Any:
        return await collect(
            target,
            templates,
            platforms=platforms,
            installed_at=installed_at,
            environment=invocation.env,
            releases=invocation.env.get(RELEASES_VARIABLE) or RELEASES,
        )

    result = run_trio(main)
    sys.stdout.writelines(f"{line}\n" for line in result.providers)
    sys.stdout.write(
        f"Terraform and {len(result.providers)} providers for {', '.join(result.platforms)} are in {target}.\n"
        f"At the target path, start server and provisioners with:\n\n"
        f"  export TF_CLI_CONFIG_FILE={installed_at.rstrip('/')}/terraform.rc\n"
        f"  export PATH={installed_at.rstrip('/')}/terraform/{result.platforms[0]}:$PATH\n"
    )
    return 0


def _bundled() -> list[Path]:
    """Return the bundled example templates."""
    import coder.coderd

    return sorted(path.parent for path in (Path(coder.coderd.__path__[0]) / "examples").glob("*/README.md"))


BUNDLE = Command(
    words="bundle",
    summary="Collect Terraform and its providers for machines without internet access",
    usage="[template-folder...]",
    long="Collects for the given templates, or for the bundled examples. "
    "Requires access to the registry and the release site.",
    run=_run,
    options=(
        Option(
            "output",
            "output",
            short="o",
            default="coder-bundle",
            help="Output directory; created if it does not exist.",
        ),
        Option(
            "platform",
            "platform",
            kind="string-array",
            default=(),
            help="Platform to collect for, like linux_amd64; may be repeated; defaults to this machine's.",
        ),
        Option(
            "installed_at",
            "installed-at",
            help="Path of the directory on the target machines, if it differs from this machine's.",
        ),
    ),
)
