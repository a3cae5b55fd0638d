"""The same sources are the same program: built twice, in folders of different names, of files of different age."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
import compiled

from tests.kit.programs.single_binary import NEEDS


DESKTOP = {"windows-amd64": ("mvn", "cargo", "x86_64-w64-mingw32-gcc"), "darwin-arm64": ("mvn",)}
"""Platforms that are built elsewhere, and the programs that this requires."""


def missing(platform: str) -> str:
    """Return why a platform cannot be built here; empty if it can."""
    if not NEEDS:
        return "gcc, zstd and its library are needed"
    tools = [tool for tool in DESKTOP.get(platform, ()) if shutil.which(tool) is None]
    return f"not installed: {', '.join(tools)}" if tools else ""


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("platform", ["here", *DESKTOP])
def test_two_builds_are_equal(platform: str, tmp_path: Path) -> None:
    """Programs, bills of materials and all, by the checksums the build itself writes."""
    if reason := missing(platform):
        pytest.skip(reason)
    sums: list[str] = []
    for name in ("one", "another/deeper"):
        tree, out = tmp_path / name, tmp_path / f"out-{len(sums)}"
        compiled.copy_tree(tree, whole=True)  # the build describes the API by a script
        for path in tree.rglob("*.py"):
            os.utime(path, (len(sums) * 86400 + 1_000_000_000,) * 2)
        command: list[str | Path] = [sys.executable, tree / "build/build.py", "--out", out]
        command += ["--quick", "--pure", "--keep-dashboard"]
        command += ["--platform", platform] if platform in DESKTOP else []
        env = os.environ | {"PYTHONPATH": str(tree), "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        sums.append((out / "SHA256SUMS").read_text())
    program = f"coder-{platform}" if platform in DESKTOP else "coder-slim-linux-"
    assert sums[0] == sums[1] and sums[0].count(program) >= 2
