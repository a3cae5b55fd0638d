"""`coder dotfiles`: applies a user's settings from a Git repository to a workspace.

The repository is cloned or updated (dotfiles_clone.py). Then its install script runs, or, without one, its dotfiles
are linked into the home directory (dotfile_links.py). A conflicting file is renamed as a backup, with its date.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.agents.dotfile_links import link_dotfiles, top_entries
from coder.cli.agents.dotfiles_clone import Clone
from coder.cli.core import session
from coder.cli.core.command import YES, Command, Invocation
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


def _dotfiles(invocation: Invocation) -> int:
    config_dir = session.config_dir(invocation)
    folder = config_dir / invocation["repo_dir"]
    clone = Clone(folder.absolute(), invocation.args[0], invocation["branch"], config_dir)
    confirm(invocation, clone.question(), default=True)
    clone.prepare()
    script = next((folder / name for name in SCRIPTS if (folder / name).is_file()), None)
    if script is not None:
        return _install(invocation, folder, script)
    return _link_all(invocation, folder)


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
        sys.stdout.write("No install scripts or dotfiles found, nothing to do.\n")
        return 0
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
