"""Everything the programs load can be loaded without the libraries that the recipe leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import editions

CODE = """
import sys
for name in {names!r}:
    sys.modules[name] = None
for module in {modules!r}:
    __import__(module)
"""
SLIM = (
    "coder.agent.agent",
    "coder.client.shell",
    "coder.cli.agents.agent_process",
    "coder.cli.network.ssh",
    "wireguard_tools",
    "trio_asyncio",
)


def loads(names: tuple[str, ...], *modules: str) -> None:
    code = CODE.format(names=names, modules=modules)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_full_program() -> None:
    loads(editions.NOT_RUN, "coder.coderd.app", "coder.wsproxy.server", "coder.provisionerd.daemon", *SLIM)


def test_the_slim_program() -> None:
    loads((*editions.NOT_RUN, *editions.LIBRARIES), *SLIM)
