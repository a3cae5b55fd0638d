"""The same sources are the same program: built twice, in folders of different names, of files of different age."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.paths import ROOT

sys.path.insert(0, str(ROOT / "build"))
import compiled

from tests.kit.programs.single_binary import NEEDS


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not NEEDS, reason="gcc, zstd and its library are needed")
def test_two_builds_are_equal(tmp_path: Path) -> None:
    """Programs, bills of materials and all, by the checksums the build itself writes."""
    sums: list[str] = []
    for name in ("one", "another/deeper"):
        tree, out = tmp_path / name, tmp_path / f"out-{len(sums)}"
        compiled.copy_tree(tree, whole=True)  # the build describes the API by a script
        for path in tree.rglob("*.py"):
            os.utime(path, (len(sums) * 86400 + 1_000_000_000,) * 2)
        command: list[str | Path] = [sys.executable, tree / "build/build.py", "--out", out]
        command += ["--quick", "--pure", "--keep-dashboard"]
        env = os.environ | {"PYTHONPATH": str(tree), "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        sums.append((out / "SHA256SUMS").read_text())
    assert sums[0] == sums[1] and sums[0].count("coder-slim-linux-") >= 2
