"""Password files of libpq."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.coderd.store.engine.password_file import find_password

LINES = r"""
# a comment
db:5432:coder:ada:one
db:*:coder:*:t\:w\\o
localhost:5432:*:ada:th:ree
broken:line
*:*:*:zoe:
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "passwords"
    path.write_text(LINES)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("host", "port", "database", "user", "password"),
    [
        ("db", 5432, "coder", "ada", "one"),
        ("db", 5433, "coder", "ada", r"t:w\o"),
        ("db", 5432, "other", "ada", None),
        ("/run/pg", 5432, "any", "ada", "th"),
        ("x", 1, "y", "zoe", ""),
        ("x", 1, "y", "bob", None),
    ],
)
def test_first_matching_line(file: Path, host: str, port: int, database: str, user: str, password: str | None) -> None:
    assert find_password(file, [host], [port], database, user) == password


def test_unusable_files_are_ignored(file: Path, tmp_path: Path) -> None:
    login = (["db"], [5432], "coder", "ada")
    assert find_password(tmp_path / "none", *login) is None
    assert find_password(tmp_path, *login) is None
    file.chmod(0o640)
    assert find_password(file, *login) is None
    file.chmod(0o600)
    file.write_bytes(b"\xff\xfe")
    assert find_password(file, *login) is None
