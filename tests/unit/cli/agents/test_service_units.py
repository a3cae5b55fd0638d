"""Steps that install an agent as a service: for every platform, machine and user; the token is in one file only."""

from __future__ import annotations

import plistlib
import shlex
from itertools import product
from typing import Any
from xml.etree import ElementTree

import pytest

from coder.cli.agents.service_units import (
    CopyFile,
    InstallSpec,
    RemoveFile,
    RunCommand,
    WriteFile,
    install_steps,
    status_command,
    systemd_word,
    uninstall_steps,
)

URL = "https://coder.example.com/a b?x=%h&y=$HOME"


def spec(platform: Any = "linux", *, system: bool = False, **rest: Any) -> InstallSpec:
    values: dict[str, Any] = {
        "name": "coder-agent",
        "home": "/home/dev",
        "user": "dev",
        "uid": 1000,
        "program": "/tmp/x/coder",
        "copies_program": True,
        "url": URL,
    }
    return InstallSpec(platform=platform, system=system, **(values | rest))


EVERY = [spec(platform, system=system) for platform, system in product(("linux", "darwin", "windows"), (True, False))]


@pytest.mark.parametrize(
    "install_spec", EVERY, ids=lambda install_spec: f"{install_spec.platform}-{install_spec.system}"
)
def test_token_file_is_private(install_spec: InstallSpec) -> None:
    files = [step for step in install_steps(install_spec) if isinstance(step, WriteFile)]
    token = [step for step in files if step.text is None]
    assert {(step.mode, step.owner) for step in files if step.mode == 0o600} == {(0o600, token[0].owner)}
    assert [(step.mode, step.owner) for step in token] == [(0o600, "dev" if install_spec.system else "")]
    assert all(token[0].path in (step.text or "") for step in files if step.text)


@pytest.mark.parametrize(
    "install_spec", EVERY, ids=lambda install_spec: f"{install_spec.platform}-{install_spec.system}"
)
def test_uninstall_removes_installed(install_spec: InstallSpec) -> None:
    paths = {step.path for step in install_steps(install_spec) if isinstance(step, WriteFile | CopyFile)}
    assert {step.path for step in uninstall_steps(install_spec) if isinstance(step, RemoveFile)} == paths
    assert all(step.may_fail for step in uninstall_steps(install_spec) if isinstance(step, RunCommand))


def _text(install_spec: InstallSpec) -> str:
    return next(step.text for step in install_steps(install_spec) if isinstance(step, WriteFile) and step.text)


def test_systemd_unit_command() -> None:
    for system in (True, False):
        lines = _text(spec(system=system)).splitlines()
        start = next(line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart="))
        words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(start)]
        program = "/usr/local/lib/coder-agent/coder" if system else "/home/dev/.local/share/coder-agent/coder"
        assert words[:3] == [program, "agent", f"--agent-url={URL}"]
        assert ("User=dev" in lines) is system
        assert f"WantedBy={'multi-user' if system else 'default'}.target" in lines
    lingers = ("loginctl", "enable-linger", "dev")
    assert lingers in [step.argv for step in install_steps(spec()) if isinstance(step, RunCommand)]


LAUNCHD_KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "RunAtLoad": bool,
    "KeepAlive": bool,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "UserName": str,
}
"""Type of each key that launchd.plist(5) documents and the agent uses; launchd ignores a value of another type."""


@pytest.mark.parametrize("system", [True, False])
def test_launchd_keys_have_documented_types(system: bool) -> None:
    properties = plistlib.loads(_text(spec("darwin", system=system)).encode())
    assert {name: type(value) for name, value in properties.items()} == {
        name: kind for name, kind in LAUNCHD_KEYS.items() if system or name != "UserName"
    }


@pytest.mark.parametrize("system", [True, False])
def test_launchd_runs_installed_program(system: bool) -> None:
    properties = plistlib.loads(_text(spec("darwin", system=system, home="/Users/zoë & co")).encode())
    home = "" if system else "/Users/zoë & co"
    folder, log = f"{home}/Library/Application Support/coder-agent", f"{home}/Library/Logs/coder-agent.log"
    assert properties["ProgramArguments"] == [
        f"{folder}/coder",
        "agent",
        f"--agent-url={URL}",
        f"--agent-token-file={folder}/token",
        "--self-upgrade",
        f"--log-human={log}",
    ]
    assert {properties["StandardOutPath"], properties["StandardErrorPath"]} == {log}
    assert properties["KeepAlive"] and properties["RunAtLoad"] and properties.get("UserName", "") == "dev" * system


@pytest.mark.parametrize(("system", "domain"), [(True, "system"), (False, "gui/501")])
def test_launchd_service_is_replaced(system: bool, domain: str) -> None:
    """A loaded service is unloaded first, and one that a user disabled is enabled."""
    install_spec = spec("darwin", system=system, uid=501, home="/Users/dev")
    folder = "/Library/LaunchDaemons" if system else "/Users/dev/Library/LaunchAgents"
    service = f"{domain}/com.coder.coder-agent"
    assert [step for step in install_steps(install_spec) if isinstance(step, RunCommand)] == [
        RunCommand(("launchctl", "bootout", service), may_fail=True),
        RunCommand(("launchctl", "enable", service), may_fail=True),
        RunCommand(("launchctl", "bootstrap", domain, f"{folder}/com.coder.coder-agent.plist")),
    ]
    assert status_command(install_spec) == ("launchctl", "print", service)


def test_stop_scripts_have_equal_time() -> None:
    """systemd and launchd wait equally long before they kill the agent."""
    properties = plistlib.loads(_text(spec("darwin")).encode())
    assert f"TimeoutStopSec={properties['ExitTimeOut']}" in _text(spec()).splitlines()


TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"


def windows_words(line: str) -> list[str]:
    """Split a command line as programs of Windows do, where only quotes matter here."""
    return [word.replace("\0", " ") for word in shlex.split(line.replace("\\", "\\\\"))]


@pytest.mark.parametrize("system", [True, False])
def test_windows_task_survives_logoff(system: bool) -> None:
    home = "C:\\Users\\Zoë & Co"
    install_spec = spec("windows", system=system, home=home, user="PC\\Zoë & Co")
    steps = install_steps(install_spec)
    (text,) = [step.text for step in steps if isinstance(step, WriteFile) and step.encoding == "utf-16"]
    assert text is not None
    task = ElementTree.fromstring(text.encode("utf-16"))  # noqa: S314 - our own

    def at(path: str) -> str | None:
        return task.findtext("/".join(f"{TASK}{name}" for name in path.split("/")))

    assert at("Principals/Principal/UserId") == "PC\\Zoë & Co" and at("Principals/Principal/LogonType") == "S4U"
    assert at("Settings/ExecutionTimeLimit") == "PT0S" and at("Settings/MultipleInstancesPolicy") == "IgnoreNew"
    assert at("Triggers/BootTrigger/Repetition/Interval") == "PT1M"
    folder = "C:\\Program Files\\coder-agent" if system else f"{home}\\AppData\\Local\\coder-agent"
    assert at("Actions/Exec/Command") == f"{folder}\\coder.exe"
    assert windows_words(at("Actions/Exec/Arguments") or "") == [
        "agent",
        f"--agent-url={URL}",
        f"--agent-token-file={folder}\\token",
        "--self-upgrade",
        f"--log-human={folder}\\agent.log",
    ]


def test_windows_task_ends_before_files_change() -> None:
    first, *rest = install_steps(spec("windows"))
    assert first == RunCommand(("schtasks", "/End", "/TN", "coder-agent"), may_fail=True)
    assert rest[-1] == RunCommand(
        ("schtasks", "/Create", "/TN", "coder-agent", "/XML", "/home/dev\\AppData\\Local\\coder-agent\\task.xml", "/F")
    )


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", "systemctl"), ("darwin", "launchctl"), ("windows", "schtasks")]
)
def test_status_command_names_service(platform: str, expected: str) -> None:
    command = status_command(spec(platform))
    assert command[0] == expected and "coder-agent" in " ".join(command)


def test_words_are_quoted() -> None:
    assert systemd_word(r'a "b" \c %h $X') == r'"a \"b\" \\c %%h $$X"'


def test_installed_program_is_not_copied() -> None:
    steps = install_steps(spec(copies_program=False, program="/usr/bin/coder"))
    assert not [step for step in steps if isinstance(step, CopyFile)]
    assert 'ExecStart="/usr/bin/coder"' in _text(spec(copies_program=False, program="/usr/bin/coder"))
