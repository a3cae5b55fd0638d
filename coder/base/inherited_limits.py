"""Limits that a workspace's agent inherits from the terraform process that started it.

Built-in provisioners limit terraform (`coder/provisionerd/terraform/limits.py`). A template whose `local-exec` starts
an agent on the server's machine would limit each process of the workspace in the same way, for as long as it runs.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "linux":
    import resource

TERRAFORM_OOM_SCORE = "500"
"Of 1000: when memory is short nevertheless, the kernel ends terraform before server and database."
_SCORE = Path("/proc/self/oom_score_adj")


def lift_terraform_limits() -> None:
    """Lift the limits of terraform in this process, if it has them."""
    if sys.platform != "linux":
        return
    with suppress(OSError, ValueError):  # the system does not allow it
        if _SCORE.read_text().strip() != TERRAFORM_OOM_SCORE:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        _SCORE.write_text("0")
