"""`coder bundle`: Terraform and its providers for machines without internet access."""

from __future__ import annotations

import sys
from pathlib import Path

import coder.coderd
from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.provisioning.bundle import BUNDLE, BundleOptions
from coder.provisionerd.config import RELEASES, RELEASES_VARIABLE
from coder.provisionerd.terraform.bundle import Bundle, collect
from coder.provisionerd.terraform.provider.provider import platform_name


@implements(BUNDLE)
def _run(invocation: Invocation[BundleOptions]) -> int:
    target = Path(invocation.options.output).expanduser().absolute()
    templates = [Path(word).expanduser() for word in invocation.args] or _bundled()
    for folder in templates:
        if not folder.is_dir():
            raise CoderError("template", f"{folder} is not a directory", "Pass directories with templates.")
    platforms = tuple(invocation.options.platform) or (platform_name(),)
    installed_at = invocation.options.installed_at or str(target)

    async def main() -> Bundle:
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
    return sorted(path.parent for path in (Path(coder.coderd.__path__[0]) / "examples").glob("*/README.md"))
