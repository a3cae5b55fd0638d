"""`coder agent install` and `uninstall`: the agent as a system service.

`cli/agents/service_units.py` computes the steps; this module prints (`--dry-run`) or executes them.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from coder.base.atomic_file import naming, write_atomically
from coder.base.errors import CoderError
from coder.base.files.private_files import replace_file, when_free
from coder.base.quoted import quoted
from coder.cli.agents.credentials import require_token, require_url
from coder.cli.agents.service_units import (
    NAME,
    CopyFile,
    InstallSpec,
    RemoveFile,
    WriteFile,
    install_steps,
    status_command,
    uninstall_steps,
)
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.edition import is_windows
from coder.cli.declarations.agents.agent_install import (
    INSTALL,
    UNINSTALL,
    AgentInstallOptions,
    AgentUninstallOptions,
    ServiceOptions,
)
from coder.cli.ui.output import say

if TYPE_CHECKING:
    from coder.cli.agents.service_units import Platform, Step

_PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}


@implements(INSTALL)
def _install(invocation: Invocation[AgentInstallOptions]) -> int:
    url, token = require_url(invocation), require_token(invocation)
    spec = _spec(invocation, session.deployment_url(url))
    _execute_steps(install_steps(spec), token, dry_run=invocation.options.dry_run)
    if not invocation.options.dry_run:
        say(f"The agent runs as {spec.name}, and starts with the machine. `coder agent uninstall` removes it.")
        say(f"`{shlex.join(status_command(spec))}` shows its state.")
    return 0


@implements(UNINSTALL)
def _uninstall(invocation: Invocation[AgentUninstallOptions]) -> int:
    _execute_steps(uninstall_steps(_spec(invocation, "")), "", dry_run=invocation.options.dry_run)
    return 0


def _spec(invocation: Invocation[ServiceOptions], url: str) -> InstallSpec:
    platform = _PLATFORMS.get(sys.platform)
    if platform is None:
        raise CoderError(
            "no_services", f"services on {sys.platform} are not supported", "Start `coder agent` yourself."
        )
    name = str(invocation.options.name)
    if not NAME.fullmatch(name):
        raise CoderError("bad_name", f"{quoted(name)} is not a valid service name", "Use letters, digits, - and _.")
    user = _user()
    system = bool(invocation.options.system)
    program = session.program()
    return InstallSpec(
        platform=cast("Platform", platform),
        system=system,
        name=name,
        home=str(Path.home()),
        user=str(invocation.options.run_as or invocation.env.get("SUDO_USER") or user) if system else user,
        uid=getattr(os, "getuid", lambda: 0)(),
        program=program,
        copies_program="CODER_SELF" in os.environ,
        url=url,
        self_upgrade=invocation.options.self_upgrade,
    )


def _user() -> str:
    """Return the caller's name as the service manager knows it: Windows has users of domains and of the machine."""
    domain = os.environ.get("USERDOMAIN") if is_windows() else ""
    return f"{domain}\\{getpass.getuser()}" if domain else getpass.getuser()


def _execute_steps(steps: Sequence[Step], token: str, *, dry_run: bool) -> None:
    for step in steps:
        if dry_run:
            sys.stdout.write(_describe_step(step) + "\n")
        else:
            _run_step(step, token)


def _describe_step(step: Step) -> str:
    if isinstance(step, WriteFile):
        text = "(the token)" if step.text is None else step.text.rstrip("\n")
        return f"write {step.path} (mode {step.mode:o}):\n" + "\n".join(f"    {line}" for line in text.split("\n"))
    if isinstance(step, CopyFile):
        return f"copy {step.source} to {step.path}"
    if isinstance(step, RemoveFile):
        return f"remove {step.path}"
    return f"run {shlex.join(step.argv)}"


def _run_step(step: Step, token: str) -> None:
    try:
        if isinstance(step, WriteFile):
            _write(step, token if step.text is None else step.text)
        elif isinstance(step, CopyFile):
            _replace_program(Path(step.source), Path(step.path))
        elif isinstance(step, RemoveFile):
            when_free(partial(Path(step.path).unlink, missing_ok=True))
        else:
            done = subprocess.run(step.argv, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode and not step.may_fail:
                raise CoderError(
                    "service", f"{shlex.join(step.argv)} failed: {(done.stderr or done.stdout).strip()}", _HINT
                )
    except OSError as error:
        if getattr(step, "may_fail", False):
            return  # no service manager, so nothing to stop
        raise CoderError(
            "service", f"{_describe_step(step).splitlines()[0]}: {error.strerror or error}", _HINT
        ) from error


_HINT = (
    "Run it in a terminal as administrator: other users may not start programs that outlive their session. "
    if is_windows()
    else "--system requires root. "
) + "Run with --dry-run to print every step, which you can run yourself."


def _write(step: WriteFile, text: str) -> None:
    """Write the file atomically and never readable by other users."""
    path = Path(step.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = step.owner if step.owner != _user() else ""
    write_atomically(path, text, mode=step.mode, owner=owner, encoding=step.encoding)


def _replace_program(source: Path, path: Path) -> None:
    if path.exists() and source.samefile(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for earlier in path.parent.glob(f".{path.name}.old-*"):
        with contextlib.suppress(OSError):  # it still runs
            earlier.unlink()
    beside, aside = (path.with_name(f".{path.name}.{kind}-{os.urandom(4).hex()}") for kind in ("new", "old"))
    try:
        with naming(beside), source.open("rb") as program, beside.open("xb") as copy:
            shutil.copyfileobj(program, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
        beside.chmod(0o755)
        try:
            replace_file(beside, path)  # the file of a running program cannot be overwritten
        except PermissionError:
            # Windows does not replace the file of a running program either, but renames it.
            when_free(lambda: path.rename(aside))
            try:
                replace_file(beside, path)
            except OSError:
                replace_file(aside, path)
                raise
    finally:
        beside.unlink(missing_ok=True)
