"""Values of files that change."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.base.files.from_files import FromFiles
from coder.base.log import Level
from coder.base.log import also as log_to


def replace(path: Path, text: str) -> None:
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def words_of(path: Path) -> FromFiles[list[str]]:
    def make() -> list[str]:
        text = path.read_text() if path.exists() else ""
        if not text:
            raise CoderError("empty", "there are no words")
        return text.split()

    return FromFiles("words", lambda: [str(path), ""], make)


def test_value_is_kept_and_made_again(tmp_path: Path) -> None:
    replace(tmp_path / "words", "one two")
    words = words_of(tmp_path / "words")
    first = words.get()
    assert first == ["one", "two"] and words.get() is first
    replace(tmp_path / "words", "three")
    assert words.get() == ["three"]


def test_unusable_change_keeps_value(tmp_path: Path) -> None:
    path, messages = tmp_path / "words", list[tuple[str, Any]]()

    def note(_level: Level, _at: datetime, _name: str, message: str, fields: dict[str, Any]) -> None:
        messages.append((message, fields["what"]))

    replace(path, "one")
    words = words_of(path)
    with log_to(note):
        path.unlink()
        assert [words.get(), words.get()] == [["one"]] * 2
        replace(path, "")
        assert [words.get(), words.get()] == [["one"]] * 2
        replace(path, "two")
        assert words.get() == ["two"]
    failed = ("changed files cannot be used; what they had before stays", "words")
    assert messages == [failed, failed, ("changed files were read again", "words")]


def test_unusable_file_is_refused_at_first(tmp_path: Path) -> None:
    with pytest.raises(CoderError, match="there are no words"):
        words_of(tmp_path / "missing")
