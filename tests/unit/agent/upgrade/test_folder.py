"""Folder of programs, its permissions, and the links in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from coder.agent.upgrade.folder import ensure_private, link_others, locked
from coder.agent.upgrade.outcomes import UpgradeNotNowError

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users and modes of POSIX")
MODES = {0o700: "", 0o755: "", 0o770: "is writable by other users", 0o702: "is writable by other users"}
MODES_ABOVE = {0o700: "", 0o755: "", 0o775: "", 0o1777: "", 0o777: "is writable by everyone", 0o703: "by everyone"}


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_writable_folder_is_rejected(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "upgrade"
    ensure_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    _expect(folder, MODES[mode])


@pytest.mark.parametrize("mode", MODES_ABOVE, ids=oct)
def test_writable_parent_is_rejected(mode: int, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(mode)
    _expect(tmp_path / "state" / "a" / "upgrade", MODES_ABOVE[mode])
    (tmp_path / "link").symlink_to(tmp_path / "state")
    _expect(tmp_path / "link" / "a" / "upgrade", MODES_ABOVE[mode])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives folders away")
def test_foreign_owner_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "upgrade"
    ensure_private(folder)
    os.chown(folder, 1234, -1)
    _expect(folder, "belongs to another user")
    os.chown(folder, 0, -1)
    os.chown(folder.parent, 1234, -1)
    _expect(folder, "belongs to another user")


def test_link_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "upgrade").symlink_to(tmp_path / "other")
    _expect(tmp_path / "upgrade", "is not a directory")


def _expect(folder: Path, reason: str) -> None:
    if not reason:
        ensure_private(folder)
        return
    with pytest.raises(UpgradeNotNowError, match=re.escape(reason)):
        ensure_private(folder)


def test_lock_is_exclusive(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UpgradeNotNowError, match="another agent"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


NAMES = [f"coder-{number:016x}" for number in range(4)]


@pytest.mark.parametrize("runs", ["one of the folder", "installed", "from sources"])
def test_other_names_link_to_current(runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the previous agent ended: a shell of it may live, and git runs the program to ask for a password."""
    installed, folder = tmp_path / "installed", tmp_path / "upgrade"
    folder.mkdir()
    installed.write_text("installed")
    for name in (*NAMES[:-1], "coder-x", "refused.json"):
        (folder / name).write_text(name)
    (folder / NAMES[-1]).symlink_to("nowhere")
    own = {"one of the folder": str(folder / NAMES[0]), "installed": str(installed), "from sources": ""}[runs]
    monkeypatch.setenv("CODER_SELF", own)
    for _ in range(2):
        link_others(folder, folder / NAMES[1])
        shown = {name: (folder / name).read_text() for name in (*NAMES[:3], "coder-x", "refused.json")}
        expected = {name: name for name in shown}
        if runs != "from sources":
            expected[NAMES[2]] = Path(own).read_text()
            assert (folder / NAMES[-1]).read_text() == expected[NAMES[2]]
        if runs == "installed":
            expected[NAMES[0]] = "installed"
        assert shown == expected and not list(folder.glob("*.part"))
