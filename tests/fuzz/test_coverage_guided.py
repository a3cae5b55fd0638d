"""The parsers of test_every_parser.py, with a fuzzer that sees which branches its inputs reach."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.harnesses import HARNESSES

ROOT = Path(__file__).resolve().parents[2]
RUNS = 100_000
SECONDS = 20

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        importlib.util.find_spec("atheris") is None,
        reason="atheris is not installed (scripts/test --soak tries to; there are wheels for few platforms)",
    ),
]


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_no_input_escapes_its_error(name: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    limits = [
        f"-atheris_runs={RUNS}",
        f"-max_total_time={SECONDS}",
        "-max_len=2048",
        "-timeout=10",
        "-rss_limit_mb=1024",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", name, str(corpus), f"-artifact_prefix={tmp_path}/", *limits],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    left = {path.name: path.read_bytes().hex() for path in tmp_path.iterdir() if path.is_file()}
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}\n{left}"
