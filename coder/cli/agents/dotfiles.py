"""`coder dotfiles`: applies a user's settings from a Git repository to a workspace.

The repository is cloned or updated (dotfiles_clone.py). Then its install script runs, or, without one, its dotfiles
are linked into the home directory (dotfile_links.py). A conflicting file is renamed as a backup, with its date.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

from coder.base.atomic_file import shown
from coder.base.errors import CoderError
from coder.cli.agents.dotfile_links import link_dotfiles, top_entries
from coder.cli.agents.dotfiles_clone import Clone
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.edition import is_windows
from coder.cli.declarations.agents.dotfiles import DOTFILES, DotfilesOptions
from coder.cli.ui.output import confirm

SCRIPTS = (
    "install.sh",
    "install",
    "bootstrap.sh",
    "bootstrap",
    "setup.sh",
    "setup",
    "script/install.sh",
    "script/install",
    "script/bootstrap.sh",
    "script/bootstrap",
    "script/setup.sh",
    "script/setup",
)
"""Install scripts in upstream's order: the first that exists runs."""


@implements(DOTFILES)
def _dotfiles(invocation: Invocation[DotfilesOptions]) -> int:
    config_dir = session.config_dir(invocation)
    folder = config_dir / invocation.options.repo_dir
    clone = Clone(folder.absolute(), invocation.args[0], invocation.options.branch, config_dir)
    confirm(invocation.options.yes, clone.question(), default=True)
    clone.prepare()
    script = next((folder / name for name in SCRIPTS if (folder / name).is_file()), None)
    if script is not None:
        return _install(invocation, folder, script)
    return _link_all(invocation, folder)


def _install(invocation: Invocation[DotfilesOptions], folder: Path, script: Path) -> int:
    confirm(
        invocation.options.yes, f"Running install script {script.relative_to(folder)}.\n\n  Continue?", default=True
    )
    if not os.access(script, os.X_OK):
        with contextlib.suppress(OSError):  # the start then fails, with its own explanation
            script.chmod(script.stat().st_mode | 0o100)
    done = _run(script, folder)
    if done.returncode != 0:
        raise CoderError("dotfiles", f"the install script exited with code {done.returncode}")
    sys.stdout.write("Dotfiles installation complete.\n")
    return 0


def _run(script: Path, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a script; one without `#!` runs in sh, as a shell would do. Raises CoderError if it cannot be started."""
    if is_windows():  # which starts no scripts; Git for Windows brings a shell
        return subprocess.run([find_shell(), str(script)], cwd=folder, check=False)
    try:
        return subprocess.run([str(script)], cwd=folder, check=False)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return subprocess.run(["/bin/sh", str(script)], cwd=folder, check=False)
        raise CoderError("dotfiles", *_explain_start(script, error)) from error


def _explain_start(script: Path, error: OSError) -> tuple[str, str]:
    """Return the reason and the way out; the system says "No such file" of a script whose interpreter is missing, and
    "Permission denied" for three reasons: the script's mode, its interpreter, and its file system."""
    reason = f"the install script {script.name} cannot be started"
    try:
        with script.open("rb") as file:
            first = file.readline(512)
    except OSError as unreadable:  # a script that may be executed but not read
        return f"{reason}: it cannot be read ({unreadable.strerror})", f"Run `chmod u+rx {shown(str(script))}`."
    if isinstance(error, PermissionError):
        return f"{reason}: {error.strerror}", _explain_refusal(script, first)
    if error.errno != errno.ENOENT or not first.startswith(b"#!"):
        return f"{reason}: {error.strerror}", ""
    interpreter = shown(first[2:].decode(errors="replace").strip(" \t\n"))
    if first.endswith(b"\r\n"):
        return f"{reason}: its lines end as on Windows", "Commit it with LF line ends (.gitattributes: *.sh eol=lf)."
    return f"{reason}: its interpreter {interpreter} does not exist", "Install it, or change the first line."


def _explain_refusal(script: Path, first: bytes) -> str:
    """Return the way out for a script that the system refuses to execute."""
    words = first[2:].decode(errors="replace").split(maxsplit=1) if first.startswith(b"#!") else []
    if words and not (Path(words[0]).is_file() and os.access(words[0], os.X_OK)):
        return f"Its interpreter {words[0]} is not a program that you may execute: change the first line."
    if not script.stat().st_mode & 0o111:  # `_install` may not change a file of another user
        return "Make it executable in the repository: git update-index --chmod=+x"
    return "Its folder may be mounted with noexec: clone the dotfiles elsewhere with --repo-dir."


def find_shell() -> str:
    """Return the POSIX shell of Git for Windows. Raise CoderError without one. `bash` alone may be that of WSL, which
    runs in another machine."""
    git = shutil.which("git")
    for folder in Path(git).parents if git else ():
        if (shell := folder / "bin" / "bash.exe").is_file():
            return str(shell)
    raise CoderError(
        "dotfiles", "no shell was found to run the install script", "Install Git for Windows, which has one."
    )


def _link_all(invocation: Invocation[DotfilesOptions], folder: Path) -> int:
    if not top_entries(folder):
        sys.stdout.write("No install scripts or dotfiles found, nothing to do.\n")
        return 0
    confirm(
        invocation.options.yes,
        "No install scripts found, symlinking dotfiles to home directory.\n\n  Continue?",
        default=True,
    )
    target = Path(invocation.options.symlink_dir).expanduser() if invocation.options.symlink_dir else Path.home()
    target.mkdir(parents=True, exist_ok=True)
    link_dotfiles(folder, session.config_dir(invocation), target)
    sys.stdout.write("Dotfiles installation complete.\n")
    return 0
