"""Batch file of a program, in the code page in which cmd.exe reads it."""

from __future__ import annotations

import pytest

from coder.agent.platform.batch_file import batch_file


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("C:\\a b\\coder.exe", b'@"C:\\a b\\coder.exe" %*\r\n'),
        ("C:\\Zo\u00eb\\coder.exe", b'@"C:\\Zo\x89\\coder.exe" %*\r\n'),
        ("C:\\100%\\coder.exe", b'@"C:\\100%%\\coder.exe" %*\r\n'),
        ("C:\\\u6f22\\coder.exe", '@chcp 65001 >nul\r\n@"C:\\\u6f22\\coder.exe" %*\r\n'.encode()),
    ],
)
def test_batch_file_runs_program(program: str, expected: bytes) -> None:
    assert batch_file(program, "cp437") == expected
