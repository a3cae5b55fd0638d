"""Entry point of `python -m coder` and of the binary."""

import os
import sys

from coder.cli.main import main

if __name__ == "__main__":
    status = main()
    if getattr(sys, "frozen", False):
        from coder.cli.core.ending import flush_and_count

        os._exit(flush_and_count(status))
    raise SystemExit(status)
