"""`coder upgrade` and the service that runs the program: its settings, and its restart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coder.cli.main import main
from coder.cli.program import upgrade
from coder.cli.server import installed_service
from coder.cli.server.installed_service import InstalledService
from tests.kit.programs.releases import KEY, NEWEST, Mirror, version_of


@pytest.fixture
def service(
    program: Path, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[str]]:
    """A service that runs the program, with a systemctl in place of systemd's; returns its calls."""
    calls = tmp_path / "calls"
    place = tmp_path / "systemd"
    place.mkdir()
    found = InstalledService(
        "coder",
        tmp_path / "data",
        {"CODER_RELEASE_LIST": str(mirror.folder), "CODER_RELEASE_KEY": KEY.public_line},
        program=str(program),
    )
    monkeypatch.setattr(upgrade, "find_service", lambda: found)

    def begin(answers: str) -> list[str]:
        (place / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{calls}\n{answers}\n')
        (place / "systemctl").chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
        return calls.read_text().splitlines() if calls.exists() else []

    return begin


@pytest.mark.parametrize(
    ("answers", "words", "code", "told", "restarts"),
    [
        ("exit 0", (), 0, "systemctl restart coder", 0),
        ("exit 0", ("--restart",), 0, "was restarted", 1),
        ("exit 3", ("--restart",), 0, "", 0),
        ('[ "$1" = is-active ]', ("--restart",), 1, "its service did not start", 1),
    ],
)
def test_service_of_the_program(
    program: Path,
    service: Callable[[str], list[str]],
    answers: str,
    words: tuple[str, ...],
    code: int,
    told: str,
    restarts: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """List and key are the service's settings; a stopped service stays stopped."""
    service(answers)
    assert main(["upgrade", "--yes", *words]) == code
    assert told in capsys.readouterr().err and version_of(program) == NEWEST
    assert service(answers).count("restart coder") == restarts


def test_other_programs_service_is_left_alone(
    program: Path, mirror: Mirror, service: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"CODER_RELEASE_LIST": str(mirror.folder), "CODER_RELEASE_KEY": KEY.public_line}
    other = InstalledService("coder", Path("/data"), settings, program="/usr/bin/coder")
    monkeypatch.setattr(upgrade, "find_service", lambda: other)
    service("exit 0")
    assert main(["upgrade", "--yes", "--restart"]) == 0
    assert service("exit 0") == []


def test_unit_may_start_a_link(
    program: Path,
    mirror: Mirror,
    service: Callable[[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = tmp_path / "coder"
    link.symlink_to(program)
    settings = {"CODER_RELEASE_LIST": str(mirror.folder), "CODER_RELEASE_KEY": KEY.public_line}
    linked = InstalledService("coder", tmp_path / "data", settings, program=str(link))
    monkeypatch.setattr(upgrade, "find_service", lambda: linked)
    service("exit 0")
    assert main(["upgrade", "--yes", "--restart"]) == 0
    assert service("exit 0").count("restart coder") == 1


def test_unit_names_its_program() -> None:
    text = '[Service]\nUser=coder\nExecStart=-"/opt/coder/coder" server\nExecStartPost=/bin/true\n'
    assert installed_service._from_unit(text).program == "/opt/coder/coder"
