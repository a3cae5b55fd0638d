"""The dashboard's generated API types are current."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.paths import ROOT


def test_generated_types_are_current() -> None:
    done = subprocess.run([sys.executable, "scripts/api_types.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run scripts/generate-api-types: the structs in coder/api have changed"
