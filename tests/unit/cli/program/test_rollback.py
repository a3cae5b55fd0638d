"""`coder upgrade --rollback`: what it says about the database's schema, and that the way forward stays open."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coder.base.version import BUILD_VERSION
from coder.cli.main import main
from coder.cli.program import replacement, rollback
from coder.cli.program.rollback import UNKNOWN, Exchange
from coder.cli.server import upgrade_backup
from tests.kit.programs.releases import KEY, NEWEST, Mirror, version_of

SCHEMAS = {BUILD_VERSION: "0035", NEWEST: "0099"}
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def roll_back(
    program: Path, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """An upgrade whose schema moved; returns a function that rolls back as the installed program would."""
    monkeypatch.setattr(upgrade_backup, "find_deployment", lambda invocation: object())
    monkeypatch.setattr(upgrade_backup, "own_revision", lambda: SCHEMAS[version_of(program)])
    monkeypatch.setattr(upgrade_backup, "save_database", lambda target, folder, version: tmp_path / "saved.backup")
    assert main(["upgrade", "--release-list", str(mirror.folder), "--key", KEY.public_line, "--yes"]) == 0
    capsys.readouterr()

    def run(*words: str) -> dict[str, Any]:
        monkeypatch.setattr(rollback, "BUILD_VERSION", version_of(program))
        assert main(["upgrade", "--rollback", "--yes", *words]) == 0
        out, err = capsys.readouterr()
        return {"said": err, **(json.loads(out) if "json" in words else {})}

    return run


def test_rollback_names_the_newer_schema(program: Path, tmp_path: Path, roll_back: Run) -> None:
    for _ in range(2):
        said = roll_back("--check")["said"]
        assert f"{BUILD_VERSION} rejects it (schema 0099, it knows 0035)" in said
        assert f"coder server restore {tmp_path / 'saved.backup'}" in said
        roll_back()
        assert version_of(program) == BUILD_VERSION
        assert roll_back()["said"] == ""  # the way forward needs no backup, and stays open
        assert version_of(program) == NEWEST


def test_rollback_as_json_has_both_schemas(tmp_path: Path, roll_back: Run) -> None:
    back, forward = roll_back("--output", "json"), roll_back("--output", "json")
    assert (back["current"], back["target"], back["backup"]) == (NEWEST, BUILD_VERSION, str(tmp_path / "saved.backup"))
    assert (back["schema_from"], back["schema_to"], back["schema_rejected"]) == ("0099", "0035", True)
    assert (forward["current"], forward["target"], forward["backup"]) == (BUILD_VERSION, NEWEST, "")
    assert (forward["schema_from"], forward["schema_to"], forward["schema_rejected"]) == ("0035", "0099", False)


def test_record_of_another_program_is_no_promise(program: Path, roll_back: Run) -> None:
    path = replacement.record_path(program)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "v1.0.0"}))
    assert f"No record says which schema {BUILD_VERSION} knows" in roll_back("--check")["said"]


def test_former_record_still_names_the_backup(program: Path, roll_back: Run) -> None:
    """Records had no schemas."""
    replacement.record_path(program).write_text(
        json.dumps({"version": BUILD_VERSION, "replaced_by": NEWEST, "backup": "/old.backup"})
    )
    assert "coder server restore /old.backup" in roll_back("--check")["said"]


def test_full_disk_needs_no_copy(program: Path, roll_back: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "copy_file", full_disk)
    roll_back()
    assert version_of(program) == BUILD_VERSION


def test_exchange_without_hard_links(program: Path, roll_back: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", full_disk)
    roll_back()
    assert version_of(program) == BUILD_VERSION


def full_disk(*paths: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("has_record", "current"), [(True, NEWEST), (False, UNKNOWN)])
def test_broken_program_is_not_called_previous(
    program: Path,
    roll_back: Run,
    has_record: bool,
    current: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The previous program puts itself back; its own version is not the installed one's."""
    program.write_bytes(b"broken")
    monkeypatch.setattr(upgrade_backup, "own_revision", lambda: SCHEMAS[BUILD_VERSION])
    if not has_record:
        replacement.record_path(program).unlink()
    monkeypatch.setenv("CODER_SELF", str(program.with_name("coder.previous")))
    assert main(["upgrade", "--rollback", "--yes", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["current"], found["target"]) == (current, BUILD_VERSION) and version_of(program) == BUILD_VERSION


@pytest.mark.parametrize(
    ("exchange", "rejects"),
    [
        (Exchange("v2.35.0", "v2.34.0", "", "0036", "0035"), True),
        (Exchange("v2.35.0", "v2.34.0", "", "0036", "0036"), False),
        (Exchange("v2.35.0", "v2.34.0", "", "10000", "9999"), True),
        (Exchange("v2.35.0", "v2.34.0", "/backup", "", "0035"), True),
        (Exchange("v2.35.0", "v2.34.0", "/backup", "", ""), True),
        (Exchange("v2.35.0", "v2.34.0"), False),
        (Exchange("v2.34.0", "v2.35.0", "/backup", "0035", "0036"), False),
    ],
)
def test_rejected_schemas(exchange: Exchange, rejects: bool) -> None:
    assert exchange.rejects_schema is rejects
