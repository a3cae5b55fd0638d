"""Sessions inside a container of the workspace: the command line that starts a shell or command there.

This module covers `docker exec` (or podman's) and the first program inside. Listing containers and building dev
containers is in `coder/agent/devcontainers`. A user who may open a session could run the same command by hand, so this
grants no permission.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENGINES = ("docker", "podman")
NO_ENGINE = "neither docker nor podman is installed in this workspace"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_FIRST = (
    'shell=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f7); '
    '[ -x "$shell" ] || shell=/bin/sh; export SHELL="$shell"; cd 2>/dev/null; '
    'if [ $# -gt 0 ]; then exec "$shell" -c "$1"; fi; exec "$shell" -l'
)
"""The user's shell and home are only known inside the container; a container need not have getent."""


class ContainerError(OSError):
    """The container cannot be entered; `strerror` is the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


@dataclass(frozen=True, slots=True)
class Container:
    """Container and user of a requested session."""

    name: str
    user: str = ""
    """Name or id of the user; empty for the container's default."""

    @staticmethod
    def from_request(name: str, user: str = "") -> Container | None:
        """Return the requested container; None when `name` is empty."""
        return Container(name, user) if name else None

    def command_line(
        self, command: str | None, env: Mapping[str, str], *, tty: bool, passed: Iterable[str] = ()
    ) -> list[str]:
        """Return argv for a session inside. Raises ContainerError for invalid names or when no engine is installed.

        `env` is the environment of the engine's program; the variables named in `passed` reach the command. Only their
        names are on the command line: every user of the machine can read command lines.
        """
        if not _NAME.fullmatch(self.name):
            raise ContainerError(f"{self.name!r} is not a valid container name")
        if self.user and not _USER.fullmatch(self.user):
            raise ContainerError(f"{self.user!r} is not a valid user name")
        path = env.get("PATH", os.defpath)
        engine = next((executable for name in ENGINES if (executable := shutil.which(name, path=path))), None)
        if engine is None:
            raise ContainerError(NO_ENGINE)
        argv = [engine, "exec", "--interactive", *(["--tty"] if tty else [])]
        if self.user:
            argv += ["--user", self.user]
        for name in passed:
            if name in env:
                argv += ["--env", name]
        return [*argv, self.name, "/bin/sh", "-c", _FIRST, "sh", *([command] if command else [])]
