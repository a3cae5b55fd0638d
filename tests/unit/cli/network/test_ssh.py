"""How `coder ssh` starts."""

from __future__ import annotations

import subprocess
import sys

COUNT = """
import gc, trio
seen = []
def run(*_):
    gc.callbacks.append(lambda phase, found: seen.append(found["generation"]) if phase == "stop" else None)
    import coder.client.link, coder.client.ready, coder.client.shell
    return 0
trio.run = run
from coder.cli.network import ssh
assert ssh._run(None) == 0
print(len(seen))
"""


def test_the_garbage_collector_leaves_the_imports_of_a_session_alone() -> None:
    found = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 20  # 130 with Python's own thresholds
