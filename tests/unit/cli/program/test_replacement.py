"""Replacement of a program step by step: a step that fails undoes the earlier ones, a killed command loses nothing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.cli.program import replacement
from coder.cli.program.replacement import Record, identity, link_or_copy, read_record, stage, swap, unchanged_on_failure

BEFORE = {"coder": b"two", "coder.previous": b"one", "coder.previous.json": b""}
ONLY = {"coder": b"two"}


class KilledError(BaseException):
    """The process ends here."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name, content in BEFORE.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path / "coder"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def exchange(program: Path, *, is_rollback: bool) -> None:
    """Replaces version two by three, or by one, the previous one."""
    with stage(program, identity(program)) as folder:
        new = folder / "coder"
        new.write_bytes(b"one" if is_rollback else b"three")
        swap(new, program, Record("two", "other"), is_rollback=is_rollback)


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Raises at the rename of this number, from 0; later ones work, as an undoing needs."""
    original, done = Path.replace, []

    def replace(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == number + 1:
            raise error
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)


@pytest.mark.parametrize("is_rollback", [False, True])
def test_exchange_keeps_the_program(program: Path, is_rollback: bool) -> None:
    exchange(program, is_rollback=is_rollback)
    found = files(program.parent)
    assert found["coder"] == (b"one" if is_rollback else b"three") and found["coder.previous"] == b"two"
    assert read_record(program) == Record("two", "other") and len(list(program.parent.iterdir())) == 3


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("is_rollback", [False, True])
@pytest.mark.parametrize("step", range(3))
def test_failed_step_undoes_the_others(
    program: Path, step: int, is_rollback: bool, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_first:
        for name in BEFORE.keys() - ONLY.keys():
            (program.parent / name).unlink()
    stop_at(monkeypatch, step, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(CoderError, match="unchanged"):
        exchange(program, is_rollback=is_rollback)
    assert files(program.parent) == (ONLY if is_first else BEFORE)
    assert len(list(program.parent.iterdir())) == len(files(program.parent))


@pytest.mark.parametrize("is_rollback", [False, True])
@pytest.mark.parametrize("step", range(3))
def test_killed_command_loses_no_version(
    program: Path, step: int, is_rollback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, step, KilledError())
        patch.setattr(replacement, "_put_back", lambda saved, target: None)
        patch.setattr(shutil, "rmtree", lambda folder, **options: None)
        with pytest.raises(KilledError):
            exchange(program, is_rollback=is_rollback)
    found = files(program.parent)
    assert found["coder"] == (b"one" if is_rollback and step else b"two")
    assert found["coder.previous"] in {b"one", b"two"}
    assert not is_rollback or b"one" in found.values()
    exchange(program, is_rollback=False)
    assert files(program.parent)["coder"] == b"three" and len(list(program.parent.iterdir())) == 3


@pytest.mark.parametrize("step", range(3))
def test_windows_moves_programs_in_use(program: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows renames a running program, and does not replace it."""
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        assert not target.exists()
        return original(self, target)

    monkeypatch.setattr(replacement, "is_windows", lambda: True)
    monkeypatch.setattr(Path, "replace", replace)
    exchange(program, is_rollback=False)
    assert files(program.parent)["coder"] == b"three" and files(program.parent)["coder.previous"] == b"two"
    monkeypatch.setattr(Path, "replace", original)
    stop_at(monkeypatch, step, OSError(errno.EACCES, "Access is denied"))
    before = files(program.parent)
    with pytest.raises(CoderError, match="unchanged"):
        exchange(program, is_rollback=False)
    assert files(program.parent) == before


def no_links(*paths: Any, **options: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("is_rollback", [False, True])
def test_exchange_without_hard_links(program: Path, is_rollback: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program.chmod(0o751)
    monkeypatch.setattr(os, "link", no_links)
    exchange(program, is_rollback=is_rollback)
    previous = program.with_name("coder.previous")
    assert previous.read_bytes() == b"two" and previous.stat().st_mode & 0o777 == 0o751


@pytest.mark.parametrize("has_links", [True, False])
def test_second_name_never_replaces(tmp_path: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    target.write_bytes(b"kept")
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(FileExistsError):
        link_or_copy(source, target)
    assert target.read_bytes() == b"kept"


@pytest.fixture
def untouched(program: Path) -> Iterator[Path]:
    yield program
    assert files(program.parent) == BEFORE and len(list(program.parent.iterdir())) == len(BEFORE)


def test_program_of_another_upgrade_is_kept(untouched: Path) -> None:
    """The version of the command is not that of the file any more."""
    began = identity(untouched)
    os.utime(untouched, ns=(1, 1))
    with pytest.raises(CoderError, match="another upgrade replaced"), stage(untouched, began):
        pass


def test_program_of_another_user_is_kept(untouched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder may be writable for a group; the new program would belong to the caller."""
    monkeypatch.setattr(os, "geteuid", lambda: untouched.stat().st_uid + 1)
    with pytest.raises(CoderError, match="belongs to another user"), stage(untouched, identity(untouched)):
        pass


def test_read_only_file_system_is_named(untouched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(CoderError, match="Read-only file system"), stage(untouched, identity(untouched)):
        pass


@pytest.mark.parametrize(
    ("number", "code", "message", "hint"),
    [
        (32, "upgrade_failed", "another program holds coder.exe open", "antivirus"),
        (5, "upgrade_not_permitted", "this user may not replace the program: coder.exe", "as administrator"),
    ],
)
def test_windows_errors_have_a_way_out(
    number: int, code: str, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "coder.exe")
    error.winerror = number  # type: ignore[attr-defined]
    monkeypatch.setattr(replacement, "is_windows", lambda: True)
    with pytest.raises(CoderError, match=message) as raised, unchanged_on_failure():
        raise error
    assert raised.value.code == code and "unchanged" in raised.value.message and hint in raised.value.hint
