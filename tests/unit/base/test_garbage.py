"""The collector's settings."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from coder.base import garbage


@pytest.fixture(autouse=True)
def thresholds() -> object:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_paused_enables_after_failure() -> None:
    with pytest.raises(ImportError), garbage.paused():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_server_loads_without_collections() -> None:
    """All its modules, whose collections would take a fifth of a start."""
    program = (
        "import gc; from coder.cli.core.command import implementation; "
        "before = gc.get_stats()[2]['collections']; implementation('server'); "
        "print(gc.isenabled(), gc.get_stats()[2]['collections'] - before, gc.get_freeze_count() > 100_000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "True"]
