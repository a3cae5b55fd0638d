"""Restart of the service that runs a replaced program."""

from __future__ import annotations

import subprocess
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.own_binary import own_binary
from coder.cli.core.command import Invocation
from coder.cli.declarations.program.upgrade import UpgradeOptions
from coder.cli.server.installed_service import InstalledService
from coder.cli.ui.output import say


def finish_service(invocation: Invocation[UpgradeOptions], program: Path, service: InstalledService | None) -> None:
    """Restart the service that runs this program, with --restart, or print how."""
    if service is None or not _runs(service, program) or not _is_active():
        return
    command = ["systemctl", "restart", "coder"]
    if not invocation.options.restart:
        say(f"The service still runs the program before: {' '.join(command)}")
        return
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise CoderError("service_not_restarted", f"systemctl cannot be started: {error.strerror}") from error
    if done.returncode or not _is_active():
        raise CoderError(
            "service_not_restarted",
            "the program was replaced, and its service did not start",
            "See `journalctl -u coder`; `coder upgrade --rollback` puts the program before back.",
        )
    say("The service coder was restarted.")


def _runs(service: InstalledService, program: Path) -> bool:
    """Return whether the unit starts this program, also by a link to it."""
    if not service.program:
        return False
    return service.program == str(own_binary()) or Path(service.program).resolve() == program


def _is_active() -> bool:
    try:
        done = subprocess.run(["systemctl", "is-active", "--quiet", "coder"], check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
