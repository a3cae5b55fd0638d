"""`coder agent install`: its dry run, its files and its errors."""

from __future__ import annotations

import os
import plistlib
import stat
from pathlib import Path

import pytest

from coder.cli.agents import agent_install
from tests.kit.programs.command_line import run_cli

TOKEN = "11111111-2222-4333-8444-555555555555"
FLAGS = ["--agent-url", "https://c.example", "--agent-token", TOKEN]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Service managers that record their command lines."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("systemctl", "loginctl", "launchctl"):
        path = folder / name
        path.write_text(
            f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\nexit $(cat {tmp_path}/{name}-fails || echo 0)\n'
        )
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODER_SELF", raising=False)
    return tmp_path


async def test_dry_run_changes_nothing(programs: Path) -> None:
    done = await run_cli(["agent", "install", "--dry-run", *FLAGS], home=programs)
    assert done.code == 0, done.stderr
    assert "mode 600" in done.stdout and "run systemctl --user daemon-reload" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert not (programs / "calls").exists() and not (programs / ".config/coder-agent").exists()


async def test_install_twice_then_uninstall(programs: Path) -> None:
    path = programs / ".config/coder-agent/token"
    for token in (TOKEN, TOKEN.replace("1", "9")):
        done = await run_cli(["agent", "install", *FLAGS[:3], token], home=programs)
        assert done.code == 0, done.stderr
        assert path.read_text() == token
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    unit = programs / ".config/systemd/user/coder-agent.service"
    assert "--agent-token-file" in unit.read_text() and TOKEN not in unit.read_text()
    calls = (programs / "calls").read_text().splitlines()
    assert calls[:3] == [
        f"systemctl --user {verb}" for verb in ("daemon-reload", "enable coder-agent", "restart coder-agent")
    ]
    done = await run_cli(["agent", "uninstall"], home=programs)
    assert done.code == 0, done.stderr
    assert not unit.exists() and not path.exists()


async def test_install_on_macos_writes_files(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of macOS, written here, with a launchctl that records its command lines."""
    monkeypatch.setitem(agent_install._PLATFORMS, "linux", "darwin")
    library, service = programs / "Library", f"gui/{os.getuid()}/com.coder.coder-agent"
    unit, token = (
        library / "LaunchAgents/com.coder.coder-agent.plist",
        library / "Application Support/coder-agent/token",
    )
    done = await run_cli(["agent", "install", *FLAGS], home=programs)
    assert done.code == 0, done.stderr
    assert f"`launchctl print {service}` shows its state." in done.stderr
    properties = plistlib.loads(unit.read_bytes())
    assert f"--agent-token-file={token}" in properties["ProgramArguments"] and TOKEN not in unit.read_text()
    assert token.read_text() == TOKEN
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (unit, token, Path(properties["StandardErrorPath"]))}
    assert [*modes.values()] == [0o644, 0o600, 0o600]
    verbs = [line.split()[1:] for line in (programs / "calls").read_text().splitlines()]
    bootstrap = ["bootstrap", f"gui/{os.getuid()}", str(unit)]
    assert verbs == [["bootout", service], ["enable", service], bootstrap]
    done = await run_cli(["agent", "uninstall"], home=programs)
    assert done.code == 0 and not any(path.exists() for path in modes), done.stderr


async def test_failure_is_reported(programs: Path) -> None:
    (programs / "systemctl-fails").write_text("1")
    failed = await run_cli(["agent", "install", *FLAGS], home=programs)
    assert failed.code == 1 and "systemctl --user daemon-reload failed" in failed.stderr
    assert "Traceback" not in failed.stderr
    nameless = await run_cli(["agent", "install", *FLAGS, "--name", "../x"], home=programs)
    assert nameless.code == 1 and "not a valid service name" in nameless.stderr
    tokenless = await run_cli(["agent", "install", *FLAGS[:2]], home=programs)
    assert tokenless.code == 1 and "CODER_AGENT_TOKEN" in tokenless.stderr


def test_running_program_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows renames the file of a running program, and does not replace it."""
    installed, source = tmp_path / "coder.exe", tmp_path / "download"
    installed.write_text("old")
    source.write_text("new")
    (tmp_path / ".coder.exe.old-1").write_text("older")

    def held(new: Path, path: Path) -> None:
        if path.exists():
            raise PermissionError(13, "The process cannot access the file")
        new.replace(path)

    monkeypatch.setattr(agent_install, "replace_file", held)
    agent_install._replace_program(source, installed)
    assert installed.read_text() == "new"
    assert [path.read_text() for path in tmp_path.glob(".coder.exe.*")] == ["old"]
