"""The committed protobuf modules equal the generator's output for the .proto files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.paths import ROOT

COMMITTED = ROOT / "coder" / "rpc" / "proto"


def test_generated_files_are_current(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    env = {**os.environ, "PYTHON": sys.executable}
    subprocess.run([ROOT / "scripts" / "generate-proto", tmp_path], check=True, env=env, capture_output=True)
    made = tmp_path / "coder" / "rpc" / "proto"
    names = sorted(path.name for path in made.iterdir())
    assert names == sorted(path.name for path in COMMITTED.glob("*_pb2.py*"))
    for name in names:
        assert (made / name).read_text() == (COMMITTED / name).read_text(), f"{name}: run scripts/generate-proto"
