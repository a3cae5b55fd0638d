"""Files with secrets: private from their first moment, and written by one function. Access lists of Windows are tested
under Wine (tests/system/test_windows_files.py)."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import pytest

import coder
from coder.agent.workspace import secret_files
from coder.base.atomic_file import write_atomically
from coder.base.files import private_files
from coder.base.files.private_files import open_private, replace_file, write_private
from coder.cli.core import session
from coder.client.tracing import open_capture
from coder.coderd.store.engine import backup

PACKAGE = Path(coder.__file__).parent
ON_EVERY_SYSTEM = ("agent", "base", "cli", "client", "net", "tailnet", "rpc", "wireguard")
ONLY_ON_POSIX = {"cli/server/", "cli/command_server/"}


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_new_file_is_private(tmp_path: Path) -> None:
    os.close(open_private(tmp_path / "token", os.O_WRONLY | os.O_CREAT))
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


@pytest.mark.parametrize(("flag", "mode"), [(os.O_TRUNC, 0o600), (0, 0o644), (os.O_APPEND, 0o644)])
def test_overwritten_file_becomes_private(flag: int, mode: int, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("older and longer")
    path.chmod(0o644)
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | flag), "wb") as out:
        assert stat.S_IMODE(path.stat().st_mode) == mode
        out.write(b"new")
    assert path.read_text() == {os.O_TRUNC: "new", 0: "newer and longer", os.O_APPEND: "older and longernew"}[flag]


def _capture(path: Path) -> None:
    with open_capture(str(path)):
        pass


WRITERS: dict[str, Callable[[Path], object]] = {
    "state pull, support bundle": lambda path: write_private(path, b"secret"),
    "session, configuration, record": lambda path: write_atomically(path, "secret"),
    "secret of a workspace": lambda path: secret_files._write(path, b"secret"),
    "command's token": lambda path: session.write_file(path.parent, path.name, "secret"),
    "capture of packets": _capture,
    "backup": lambda path: backup._private(path).close(),
}


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_of_secrets_is_private(writer: str, exists: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if exists:
        path.write_text("x" * 9999)
        path.chmod(0o644)
    WRITERS[writer](path)
    assert (stat.S_IMODE(path.stat().st_mode), b"x" in path.read_bytes()) == (0o600, False)


def full_disk(descriptor: int, mode: str) -> IO[bytes]:
    os.close(descriptor)
    return cast("IO[bytes]", Path("/dev/full").open(mode))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
@pytest.mark.parametrize("exists", [False, True])
def test_full_disk_keeps_previous_content(exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "terraform.tfstate"
    if exists:
        path.write_text("the only copy")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full_disk)
        with pytest.raises(OSError, match="No space"):
            write_private(path, b"new")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == (
        {"terraform.tfstate": "the only copy"} if exists else {}
    )


def test_private_content_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state")
    write_private(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "state").read_text() == "new"


def test_foreign_file_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    path.chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    os.close(open_private(path, os.O_WRONLY | os.O_TRUNC))
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o666, b"")


def test_overwritten_pipe_stays_usable() -> None:
    reader, writer = os.pipe()
    try:
        os.close(open_private(Path(f"/proc/self/fd/{writer}"), os.O_WRONLY | os.O_TRUNC))
    finally:
        os.close(reader)
        os.close(writer)


def private_modes(text: str) -> list[int]:
    """Return the lines of calls that create a file with the mode of secrets."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in {"open", "touch"}
        and any(isinstance(value, ast.Constant) and value.value == 0o600 for value in ast.walk(node))
    ]


def test_other_calls_are_detected() -> None:
    assert private_modes("os.open(path, os.O_CREAT, 0o600)\npath.touch(mode=0o600)\nopen_private(path, 0)") == [1, 2]


def test_secrets_use_one_function() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for room in ON_EVERY_SYSTEM
        for path in (PACKAGE / room).rglob("*.py")
        if (lines := private_modes(path.read_text()))
    }
    assert {name: lines for name, lines in found.items() if not name.startswith(tuple(ONLY_ON_POSIX))} == {}


class Held:
    """File whose replacement is refused as by Windows, a number of times."""

    def __init__(self, times: int, code: int) -> None:
        self.times, self.code, self.calls = times, code, 0

    def replace(self, _: Path) -> None:
        self.calls += 1
        if self.calls <= self.times:
            error = PermissionError(13, "held")
            error.winerror = self.code  # type: ignore[attr-defined]
            raise error


@pytest.mark.parametrize(("code", "times", "calls"), [(32, 3, 4), (5, 1, 2), (2, 1, 1)])
def test_held_file_is_awaited(code: int, times: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "HELD_INTERVAL", 0)
    held = Held(times, code)
    if calls <= times:
        with pytest.raises(PermissionError):
            replace_file(held, Path("x"))  # type: ignore[arg-type]
    else:
        replace_file(held, Path("x"))  # type: ignore[arg-type]
    assert held.calls == calls


def test_file_held_forever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "HELD_SECONDS", 0)
    with pytest.raises(PermissionError):
        replace_file(Held(1 << 30, 32), Path("x"))  # type: ignore[arg-type]


RENAMES_OF_POSIX = {"agent/platform/posix.py": 2}
"""Files whose renames never run on Windows, with their number."""


def own_renames(text: str) -> list[int]:
    """Return the lines of calls that rename a file outside `replace_file` and `when_free`. A `replace` of a string has
    two arguments, one of a date or of a dataclass has names."""
    tree = ast.parse(text)
    waiting = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "when_free"
        for inner in ast.walk(node)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"replace", "rename"}
        and (len(node.args), len(node.keywords)) == (1, 0)
        and id(node) not in waiting
    ]


def test_other_renames_are_detected() -> None:
    assert own_renames("a.replace(b)\na.rename(b)\n'a'.replace('b', 'c')\nwhen_free(lambda: a.rename(b))") == [1, 2]


def test_renames_wait_for_holders() -> None:
    """Windows renames no file that an antivirus reads, and a new program is read by every one."""
    found = {
        path.relative_to(PACKAGE).as_posix(): len(lines)
        for room in ON_EVERY_SYSTEM
        for path in (PACKAGE / room).rglob("*.py")
        if (lines := own_renames(path.read_text()))
    }
    assert {name: count for name, count in found.items() if not name.startswith(tuple(ONLY_ON_POSIX))} == (
        RENAMES_OF_POSIX
    )
