"""`coder dotfiles`: applies a user's settings from a Git repository to a workspace.

The repository is cloned, or updated. Then its install script runs, or, without one, its dotfiles are linked into the
home directory (dotfile_links.py). A conflicting file is renamed as a backup with a date in its name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli import session
from coder.cli.agents.dotfile_links import link_dotfiles, top_entries
from coder.cli.command import YES, Command, Invocation
from coder.cli.output import confirm

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


def _dotfiles(invocation: Invocation) -> int:
    if shutil.which("git") is None:
        raise CoderError("git", "git is not installed", "Install it in the workspace's image.")
    repository = invocation.args[0]
    folder = session.config_dir(invocation) / invocation["repo_dir"]
    _refuse_change(folder, repository)
    action = "Updating" if folder.is_dir() else "Cloning"
    confirm(invocation, f"{action} {repository} into directory {folder}.\n\n  Continue?", default=True)
    _fetch(folder, repository, invocation["branch"])
    script = next((folder / name for name in SCRIPTS if (folder / name).is_file()), None)
    if script is not None:
        return _install(invocation, folder, script)
    return _link_all(invocation, folder)


def _git(*words: str, folder: Path | None = None) -> None:
    done = subprocess.run(["git", *words], cwd=folder, check=False)
    if done.returncode != 0:
        raise CoderError("git", f"git {words[0]} exited with code {done.returncode}", "Git's output is above.")


def _refuse_change(folder: Path, repository: str) -> None:
    """Refuse another repository in the same directory, which would mix the files of both."""
    if not folder.is_dir():
        return
    done = subprocess.run(
        ["git", "config", "--get", "remote.origin.url"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.stdout.strip() not in {"", repository}:
        raise CoderError(
            "dotfiles", f"{folder} is a clone of {done.stdout.strip()}", f"Remove {folder}, or choose --repo-dir."
        )


def _fetch(folder: Path, repository: str, branch: str) -> None:
    if folder.is_dir():
        if branch:
            _git("fetch", "origin", branch, folder=folder)
            _git("checkout", branch, folder=folder)
        _git("pull", "--ff-only", folder=folder)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    _git("clone", *(["--branch", branch] if branch else []), "--", repository, str(folder))


def _install(invocation: Invocation, folder: Path, script: Path) -> int:
    confirm(invocation, f"Running install script {script.relative_to(folder)}.\n\n  Continue?", default=True)
    if not os.access(script, os.X_OK):
        script.chmod(script.stat().st_mode | 0o100)
    done = subprocess.run([str(script)], cwd=folder, check=False)
    if done.returncode != 0:
        raise CoderError("dotfiles", f"the install script exited with code {done.returncode}")
    sys.stdout.write("Dotfiles installation complete.\n")
    return 0


def _link_all(invocation: Invocation, folder: Path) -> int:
    if not top_entries(folder):
        raise CoderError("dotfiles", "no files found to link: the repository has no dotfiles and no install script")
    confirm(invocation, "No install scripts found, symlinking dotfiles to home directory.\n\n  Continue?", default=True)
    target = Path(invocation["symlink_dir"]).expanduser() if invocation["symlink_dir"] else Path.home()
    target.mkdir(parents=True, exist_ok=True)
    link_dotfiles(folder, session.config_dir(invocation), target)
    sys.stdout.write("Dotfiles installation complete.\n")
    return 0


DOTFILES = Command(
    words="dotfiles",
    summary="Personalize your workspace by applying a canonical dotfiles repository",
    usage="<git_repo_url>",
    run=_dotfiles,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "symlink_dir",
            "symlink-dir",
            "CODER_SYMLINK_DIR",
            help="Directory for the symbolic links; defaults to your home.",
        ),
        Option(
            "branch", "branch", short="b", help="Branch of the repository to check out; defaults to its default branch."
        ),
        Option(
            "repo_dir",
            "repo-dir",
            "CODER_DOTFILES_REPO_DIR",
            default="dotfiles",
            help="Directory of the clone, below the configuration directory.",
        ),
        YES,
    ),
)
