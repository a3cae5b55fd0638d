"""Log of a connection: its path, its name, and its debug messages."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from coder.base import log
from coder.base.errors import CoderError
from coder.client.tracing import log_to_directory
from coder.net.request_log import REQUESTS

NAME = re.compile(r"coder-ssh-(\d{8}-\d{6})-([0-9a-f]+)-(\d+)\.log")
"""Pattern of editors for the name: time, a unique part, and the parent's pid."""


def test_log_name_for_editors(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "deep"
    with log_to_directory(str(folder)) as first:
        log.get_logger("mesh").debug("a packet went out", to="there")
    with log_to_directory(str(folder)) as second:
        pass
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = [NAME.fullmatch(path.name) for path in (first, second)]
    assert names[0] is not None and names[1] is not None
    assert names[0][2] != names[1][2]
    assert names[0][3] == names[1][3] == str(os.getppid())
    assert "[debug] mesh: a packet went out  to=there" in first.read_text()
    assert second.read_text() == ""


def test_requests_go_to_the_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    REQUESTS.listener = lambda exchange: shown.append(str(exchange))  # as `--verbose` does
    try:
        with log_to_directory(str(tmp_path)) as path:
            REQUESTS.note("GET", "http://host/api/v2/users/me?token=secret", 200, 0.012)
        REQUESTS.note("GET", "http://host/later", 200, 0.0)
        with pytest.raises(CoderError), log_to_directory(str(tmp_path)):
            raise CoderError("not_found", "no such workspace")
        REQUESTS.note("GET", "http://host/near-misses", 200, 0.0)
    finally:
        REQUESTS.listener = None
    assert "[debug] requests: GET http://host/api/v2/users/me" in path.read_text()
    assert "secret" not in path.read_text()
    assert [line.split()[1] for line in shown] == ["http://host/later"]
    assert capsys.readouterr() == ("", "")


def test_unwritable_directory_is_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CoderError, match="cannot write a log"), log_to_directory(str(tmp_path / "file")):
        pass
