"""Modules of the dashboard's sources, evaluated by node: for rules that the server and the dashboard share."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.paths import ROOT

DASHBOARD = ROOT / "coder/dashboard"
needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (DASHBOARD / "node_modules").is_dir(),
    reason="needs node and the dashboard's packages",
)


def evaluate(name: str, expression: str, argument: Any = None) -> Any:
    """Return the value of a JavaScript expression over the exports (`module`) of the source file with this name."""
    (source,) = (DASHBOARD / "src").rglob(name)
    script = Path(__file__).with_name("evaluate_module.mjs")
    command = ["node", str(script), str(DASHBOARD), str(source), expression, json.dumps(argument)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
