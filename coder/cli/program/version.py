"""The command `coder version`."""

from __future__ import annotations

import sys

from coder.base.version import BUILD_VERSION
from coder.cli.core.command import Invocation, implements
from coder.cli.core.edition import is_slim
from coder.cli.declarations.program.version import VERSION, VersionOptions

EXTERNAL_URL = "https://github.com/coder/coder"


@implements(VERSION)
def _run(invocation: Invocation[VersionOptions]) -> int:
    if invocation.options.output == "json":
        from coder.cli.ui.output import print_json

        print_json(
            {
                "version": BUILD_VERSION,
                "build_time": "0001-01-01T00:00:00Z",
                "external_url": EXTERNAL_URL,
                "slim": is_slim(),
                "agpl": False,
                "boring_crypto": False,
            }
        )
        return 0
    edition = "Slim build of Coder, does not support" if is_slim() else "Full build of Coder, supports"
    sys.stdout.write(f"Coder {BUILD_VERSION}\n{edition} the server subcommand.\n")
    return 0
