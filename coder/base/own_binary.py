"""The file this program was started from, when it is the single binary."""

from __future__ import annotations

import os
from pathlib import Path


def own_binary() -> Path | None:
    """What the launcher says in CODER_SELF; None when we run from sources."""
    named = os.environ.get("CODER_SELF", "")
    return Path(named) if named else None
