"""Parent pid of a command, also of one that another process runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from coder.base import caller


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no warm process")
def test_stand_in_reports_original_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "_parent", None)
    assert caller.parent_pid() == os.getppid()
    caller.run_command_of(os.getppid())
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    assert f"PPid:\t{caller.parent_pid()}\n" in status
    caller.run_command_of(os.getpid())
    assert caller.parent_pid() == os.getppid()
    caller.run_command_of(2**30)  # it has already exited
    assert caller.parent_pid() == os.getppid()
