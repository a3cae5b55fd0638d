"""Batch file that gives a program another name on Windows."""

from __future__ import annotations


def batch_file(program: str, code_page: str) -> bytes:
    """Return a batch file that runs a program with its own arguments.

    cmd.exe reads it in the code page of consoles, and `%` as the beginning of a variable. For a name that the code page
    lacks, the file selects UTF-8 first.
    """
    line = '@"' + program.replace("%", "%%") + '" %*\r\n'
    try:
        return line.encode(code_page)
    except UnicodeEncodeError:
        return b"@chcp 65001 >nul\r\n" + line.encode()
