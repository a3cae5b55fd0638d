"""Sessions inside a container of the workspace: the command line that puts a shell or command there.

Lives here: `docker exec` (or podman's) and what runs first inside. Does not live here: listing containers and building
dev containers (`coder/agent/devcontainers`). Whoever may open a session here may run the same command by hand, so
nothing is allowed by it.
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
"""Only inside does anybody know which shell and home the user has there; a container need not have getent."""


class ContainerError(OSError):
    """The container cannot be entered; `strerror` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


@dataclass(frozen=True, slots=True)
class Container:
    """Where a session wants to go."""

    name: str
    user: str = ""
    """Empty: the container's own."""

    @staticmethod
    def named(name: str, user: str = "") -> Container | None:
        """What a client asked for; None when it asked for none."""
        return Container(name, user) if name else None

    def command_line(
        self, command: str | None, env: Mapping[str, str], *, tty: bool, passed: Iterable[str] = ()
    ) -> list[str]:
        """argv for a session inside. ContainerError when the names are none or there is no engine.

        `env` is the environment the engine's program will have; of it the variables in `passed` reach the command. Only
        their names are written here: everybody on the machine can read command lines.
        """
        if not _NAME.fullmatch(self.name):
            raise ContainerError(f"{self.name!r} is no name of a container")
        if self.user and not _USER.fullmatch(self.user):
            raise ContainerError(f"{self.user!r} is no name of a user")
        path = env.get("PATH", os.defpath)
        engine = next((found for name in ENGINES if (found := shutil.which(name, path=path))), None)
        if engine is None:
            raise ContainerError(NO_ENGINE)
        argv = [engine, "exec", "--interactive", *(["--tty"] if tty else [])]
        if self.user:
            argv += ["--user", self.user]
        for name in passed:
            if name in env:
                argv += ["--env", name]
        return [*argv, self.name, "/bin/sh", "-c", _FIRST, "sh", *([command] if command else [])]
