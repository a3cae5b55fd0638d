"""Programs that another tool upgrades: packages, containers, agents. `coder upgrade` prints that tool's command."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.cli.core.edition import is_windows

Ask = Callable[[list[str]], str]
"""Runs a command and returns its output, "" if it fails or is missing."""
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and podman put into every container."""
UNIT_FOLDERS = (Path("/etc/systemd/system"), Path.home() / ".config/systemd/user", Path("/Library/LaunchDaemons"))
_LIMIT = 20.0
_FOLDERS = (
    ("/Cellar/", "Homebrew installed this program", "brew upgrade coder"),
    ("/nix/store/", "Nix installed this program", "nix profile upgrade coder"),
    ("/snap/", "snap installed this program", "snap refresh coder"),
    ("/WinGet/", "winget installed this program", "winget upgrade coder"),
    ("/scoop/", "scoop installed this program", "scoop update coder"),
)
"""Part of the path -> reason and command."""


def refuse_managed(path: Path | None, env: Mapping[str, str], ask: Ask | None = None) -> Path:
    """Return the file to replace. Raise CoderError `managed_program` with the command to use instead."""
    ask = ask or _ask
    if path is None:
        raise _refusal("this program was not installed as one file", "pipx upgrade coder, or update the checkout")
    real = path.resolve()
    if env.get("KUBERNETES_SERVICE_HOST") or (not is_windows() and any(mark.exists() for mark in CONTAINER_MARKS)):
        raise _refusal("this program belongs to a container image", "start a container of the new image")
    if _is_agent(path, env):
        raise _refusal("this is an agent's program", "coder agent install --self-upgrade, or a new start script")
    for part, reason, command in _FOLDERS:
        if part.lower() in real.as_posix().lower():
            raise _refusal(reason, command)
    if owner := _dpkg_owner(ask, path, real):
        raise _refusal(
            f"the package {owner} installed this program", f"apt-get update && apt-get install --only-upgrade {owner}"
        )
    if owner := next((name for file in (path, real) if (name := _rpm_owner(ask, file))), ""):
        raise _refusal(f"the package {owner} installed this program", f"dnf upgrade {owner}")
    return real


def _refusal(reason: str, command: str) -> CoderError:
    return CoderError("managed_program", f"{reason}; upgrade it with: {command}")


def _is_agent(path: Path, env: Mapping[str, str]) -> bool:
    """Return whether an agent runs this file: in one of its shells (`GIT_SSH_COMMAND` names its program), or as a
    service that `coder agent install` made."""
    words = _shell_words(env.get("GIT_SSH_COMMAND", ""))
    if env.get("CODER") == "true" and words[1:2] == ["gitssh"] and Path(words[0]) == path:
        return True
    if (local := env.get("LOCALAPPDATA")) and path.parent == Path(local) / "coder-agent":
        return True  # the task of Windows, and an agent that upgraded itself
    for folder in () if is_windows() else UNIT_FOLDERS:  # there, "/etc" is a folder of the current drive
        for unit in (*folder.glob("coder-agent*.service"), *folder.glob("com.coder.*.plist")):
            try:
                text = unit.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if re.search(rf"""(?<=[\s='">]){re.escape(str(path))}(?=[\s'"<])""", text):
                return True
    return False


def _shell_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that does not end: not of an agent
        return []


def _dpkg_owner(ask: Ask, *files: Path) -> str:
    for file in files:
        # "coder-py: /usr/bin/coder"; diversions are printed with other words before the colon.
        for line in ask(["dpkg-query", "--search", str(file)]).splitlines():
            name, _, listed = line.partition(": ")
            if listed == str(file) and " " not in name:
                return name.partition(":")[0].partition(",")[0]
    return ""


def _rpm_owner(ask: Ask, file: Path) -> str:
    return ask(["rpm", "-qf", "--qf", "%{NAME}", str(file)]).strip()


def _ask(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT, check=False, env=child_env({"LC_ALL": "C"})
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
