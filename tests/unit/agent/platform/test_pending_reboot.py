"""The mark of a pending reboot, in the files of Debian and Ubuntu."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.agent.platform.pending_reboot import MARKS, WRITERS, pending_reboot


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), None),
        *(((mark,), True) for mark in MARKS),
        *(((writer,), False) for writer in WRITERS),
        ((MARKS[0], WRITERS[0]), True),
    ],
)
def test_pending_reboot_by_files(files: tuple[str, ...], expected: bool | None, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert pending_reboot(tmp_path) is expected
