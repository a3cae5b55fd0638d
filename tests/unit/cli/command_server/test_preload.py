"""A served command imports nothing late: what functions of the command line import is loaded before the fork."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import coder.cli

FOLDER = Path(coder.cli.__file__).parent
LOADED = """
import json, sys
from coder.cli.command_server.preload import load_everything
from coder.cli.core.command_table import COMMANDS
load_everything({name: f"coder.cli.{place.partition(':')[0]}" for name, (place, _) in COMMANDS.items()})
print(json.dumps(list(sys.modules)))
"""


def late_imports() -> Iterator[str]:
    for path in [FOLDER / "main.py", *sorted(FOLDER.glob("core/*.py")), *sorted(FOLDER.glob("ui/*.py"))]:
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("coder."):
                        yield node.module


def test_late_imports_are_preloaded() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=60)
    loaded = set(json.loads(done.stdout))
    late = set(late_imports())
    assert "coder.cli.ui.error_output" in late
    assert late - loaded == {"coder.cli.command_server.listener"}, "the listener is what loads them"
