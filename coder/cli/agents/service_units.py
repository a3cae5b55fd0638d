"""Steps to install and remove the agent's system service, as values.

systemd.service(5) and systemd.syntax(7), launchd.plist(5), and Windows' Task Scheduler
(`coder/cli/agents/windows_task.py`).
The functions are pure; the token is only ever in a separate file.
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coder.base.json_types import JsonObject
from coder.cli.agents import windows_task

Platform = Literal["linux", "darwin", "windows"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
RESTART_SECONDS = 5
STOP_SECONDS = 90
"Seconds (ours) for stop scripts before the agent is killed. systemd's default is 90, launchd's 20."


@dataclass(frozen=True, slots=True)
class InstallSpec:
    """Parameters of the installation."""

    platform: Platform
    system: bool
    "Install for the whole machine; otherwise for the calling user."
    name: str
    home: str
    user: str
    "User that runs the agent of a machine-wide installation."
    uid: int
    program: str
    copies_program: bool
    "Whether to copy the program, because its path can vanish (a download, a temporary directory)."
    url: str
    self_upgrade: bool = True
    "Whether the agent upgrades itself to a newer server's version."


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: str
    mode: int
    text: str | None
    "Content of the file; None for the token."
    owner: str = ""
    encoding: str = "utf-8"


@dataclass(frozen=True, slots=True)
class CopyFile:
    source: str
    path: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    argv: tuple[str, ...]
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class RemoveFile:
    path: str


Step = WriteFile | CopyFile | RunCommand | RemoveFile


@dataclass(frozen=True, slots=True)
class _Places:
    unit: str
    token: str
    program: str
    log: str = ""
    "Log file, where the service manager keeps no output; it is created for the user who runs the agent."


def install_steps(spec: InstallSpec) -> list[Step]:
    """Return the steps in order; repeating them applies a new token, address or program."""
    paths = _outputs(spec)
    program = paths.program if spec.copies_program else spec.program
    argv = [program, "agent", f"--agent-url={spec.url}", f"--agent-token-file={paths.token}"]
    argv += ["--self-upgrade"] if spec.self_upgrade else []
    argv += [f"--log-human={paths.log}"] if paths.log else []
    steps: list[Step] = []
    if spec.platform == "windows":  # which does not replace a running program, nor a log that one holds open
        steps.append(RunCommand(windows_task.end_command(spec.name), may_fail=True))
    steps += [CopyFile(spec.program, program)] if spec.copies_program else []
    owner = spec.user if spec.system else ""
    steps.append(WriteFile(paths.token, 0o600, None, owner))
    steps += [WriteFile(paths.log, 0o600, "", owner)] if paths.log else []
    encoding = windows_task.ENCODING if spec.platform == "windows" else "utf-8"
    steps.append(WriteFile(paths.unit, 0o644, _definition(spec, argv, paths.log), encoding=encoding))
    return steps + [RunCommand(words, may_fail) for words, may_fail in _start_commands(spec, paths)]


def uninstall_steps(spec: InstallSpec) -> list[Step]:
    """Return the steps that undo `install_steps`, complete or partial."""
    paths = _outputs(spec)
    stop: list[Step] = [RunCommand(words, may_fail=True) for words in _stop_commands(spec)]
    steps = [*stop, *(RemoveFile(path) for path in (paths.unit, paths.token, paths.program, paths.log) if path)]
    if spec.platform == "linux":
        steps.append(RunCommand((*_systemctl(spec), "daemon-reload"), may_fail=True))
    return steps


def _outputs(spec: InstallSpec) -> _Places:
    name, home = spec.name, spec.home
    if spec.platform == "darwin":
        base = "/Library/LaunchDaemons" if spec.system else f"{home}/Library/LaunchAgents"
        folder = f"/Library/Application Support/{name}" if spec.system else f"{home}/Library/Application Support/{name}"
        log = f"{'' if spec.system else home}/Library/Logs/{name}.log"
        return _Places(f"{base}/{_label(name)}.plist", f"{folder}/token", f"{folder}/coder", log)
    if spec.platform == "windows":  # users can add files to folders below ProgramData
        folder = f"C:\\Program Files\\{name}" if spec.system else f"{home}\\AppData\\Local\\{name}"
        return _Places(*(f"{folder}\\{file}" for file in ("task.xml", "token", "coder.exe", "agent.log")))
    if spec.system:
        return _Places(f"/etc/systemd/system/{name}.service", f"/etc/{name}/token", f"/usr/local/lib/{name}/coder")
    unit = f"{home}/.config/systemd/user/{name}.service"
    return _Places(unit, f"{home}/.config/{name}/token", f"{home}/.local/share/{name}/coder")


def _label(name: str) -> str:
    return f"com.coder.{name}"


def _domain(spec: InstallSpec) -> str:
    """Return launchd's domain of the service; a user's exists while that user is signed in at the screen."""
    return "system" if spec.system else f"gui/{spec.uid}"


def _systemctl(spec: InstallSpec) -> tuple[str, ...]:
    return ("systemctl",) if spec.system else ("systemctl", "--user")


def _start_commands(spec: InstallSpec, paths: _Places) -> list[tuple[tuple[str, ...], bool]]:
    """Return (words, may fail) of each command."""
    if spec.platform == "linux":
        ctl = _systemctl(spec)
        commands = [((*ctl, "daemon-reload"), False), ((*ctl, "enable", spec.name), False)]
        commands.append(((*ctl, "restart", spec.name), False))
        # Without lingering, a user's services stop with the last session.
        return commands if spec.system else [*commands, (("loginctl", "enable-linger", spec.user), True)]
    if spec.platform == "windows":
        return [(windows_task.create_command(spec.name, paths.unit), False)]
    domain = _domain(spec)
    service = f"{domain}/{_label(spec.name)}"
    # launchd remembers a service that a user disabled, and does not load it.
    return [
        (("launchctl", "bootout", service), True),
        (("launchctl", "enable", service), True),
        (("launchctl", "bootstrap", domain, paths.unit), False),
    ]


def _stop_commands(spec: InstallSpec) -> list[tuple[str, ...]]:
    if spec.platform == "linux":
        return [(*_systemctl(spec), "disable", "--now", spec.name)]
    if spec.platform == "windows":
        return [windows_task.end_command(spec.name), windows_task.delete_command(spec.name)]
    return [("launchctl", "bootout", f"{_domain(spec)}/{_label(spec.name)}")]


def status_command(spec: InstallSpec) -> tuple[str, ...]:
    """Return the service manager's command that shows the state of the service."""
    if spec.platform == "linux":
        return (*_systemctl(spec), "status", spec.name)
    if spec.platform == "windows":
        return windows_task.query_command(spec.name)
    return ("launchctl", "print", f"{_domain(spec)}/{_label(spec.name)}")


def _definition(spec: InstallSpec, argv: Sequence[str], log: str) -> str:
    if spec.platform == "windows":
        return windows_task.task_definition(spec.name, spec.user, argv)
    return _systemd_unit(spec, argv) if spec.platform == "linux" else _plist(spec, argv, log)


def _systemd_unit(spec: InstallSpec, argv: Sequence[str]) -> str:
    runs_as = f"User={spec.user}\n" if spec.system else ""
    target = "multi-user.target" if spec.system else "default.target"
    words = " ".join(systemd_word(word) for word in argv)
    return (
        "# Written by `coder agent install`; `coder agent uninstall` removes it.\n"
        "[Unit]\nDescription=Coder agent\nAfter=network-online.target\nWants=network-online.target\n"
        "StartLimitIntervalSec=0\n\n"
        f"[Service]\nType=simple\n{runs_as}ExecStart={words}\nRestart=always\nRestartSec={RESTART_SECONDS}\n"
        f"KillMode=mixed\nTimeoutStopSec={STOP_SECONDS}\n\n"
        f"[Install]\nWantedBy={target}\n"
    )


def systemd_word(word: str) -> str:
    """Quote one argument of ExecStart=, with specifiers and variables escaped."""
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'


def _plist(spec: InstallSpec, argv: Sequence[str], log: str) -> str:
    properties: JsonObject = {
        "Label": _label(spec.name),
        "ProgramArguments": list(argv),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": RESTART_SECONDS,
        "ProcessType": "Interactive",
        "ExitTimeOut": STOP_SECONDS,
    }
    if spec.system:
        properties["UserName"] = spec.user
    # The agent writes its log itself; what the launcher and the interpreter say without it belongs there as well.
    properties |= {"StandardOutPath": log, "StandardErrorPath": log}
    return plistlib.dumps(properties, sort_keys=True).decode()
