"""A script's log file: bounded, and never a reason to fail."""

from __future__ import annotations

from pathlib import Path

from coder.agent.workspace.script_log import ScriptLog


def test_a_script_log_holds_a_bounded_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with ScriptLog(path, most=1000) as log:
        for _ in range(100):
            log.write(b"x" * 99)
    kept = path.read_bytes()
    assert kept.startswith(b"x" * 1000 + b"\n[the rest") and len(kept) < 1100


def test_what_cannot_be_kept_is_let_go(tmp_path: Path) -> None:
    for path in (Path("/dev/full"), Path("/proc/nowhere/log"), tmp_path):
        with ScriptLog(path) as log:
            log.write(b"one")
            log.write(b"two")
