"""The built programs (`./scripts/test --binary`): both editions have whatever any of their commands could import."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build"))
import check  # noqa: E402 - the recipe is no package

BUILT = os.environ.get("CODER_TEST_BINARY", "")
pytestmark = [pytest.mark.system, pytest.mark.skipif(not BUILT, reason="a built program is asked")]


@pytest.mark.parametrize("edition", ["full", "slim"])
def test_no_importable_module_is_missing(edition: str) -> None:
    program = Path(BUILT)
    if edition == "slim":
        program = program.with_name(program.name.replace("coder-", "coder-slim-", 1))
    report = check.check(program)
    assert report.edition == edition and report.missing == []
    assert report.loaded > 2000, "it was not asked for much"


def test_baseline_processor_is_enough() -> None:
    """All that the slim program could load is loaded on an x86-64 of 2003: nothing newer is used unasked."""
    emulator = shutil.which("qemu-x86_64-static")
    if emulator is None or sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("qemu-user-static is not installed")
    program = Path(BUILT).with_name(Path(BUILT).name.replace("coder-", "coder-slim-", 1))
    report = check.check(program, [emulator, "-cpu", "Opteron_G1"])
    assert report.edition == "slim" and report.missing == []
