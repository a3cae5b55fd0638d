"""Clone of a user's dotfiles repository, prepared in start scripts without a user at the terminal.

Once a clone exists, a failure of Git does not stop the command, as upstream: a start script that fails makes the
workspace unhealthy, and the files of the last clone are still useful. Only a first clone that fails is an error.

| location of the clone | repository | result |
| --- | --- | --- |
| nothing, or an empty directory | any | clone |
| a directory without `.git` | any | rename it as a backup, then clone |
| a clone | the same, other user or password | set the URL, then update |
| a clone | the same | update: fetch the branch, check it out, fast-forward |
| a clone | another | clone, then rename the old clone as a backup |
| a clone | another that cannot be cloned | keep the old clone, and fail |

A clone appears at its location when it is complete: a killed `git clone` leaves nothing that looks like one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from coder.base.atomic_file import move_aside, shown
from coder.base.errors import CoderError
from coder.base.files.private_files import when_free
from coder.cli.core import session

_URL_FILE = "dotfilesurl"
"""Upstream's file of the configuration directory: the URL of the last run."""
_SSH_OPTIONS = "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no"
"""Upstream's options: the first clone in a new workspace meets a host that no known_hosts file lists."""


@dataclass(frozen=True, slots=True)
class Clone:
    """Clone of `repository` in `folder`; `branch` is "" for the repository's default."""

    folder: Path
    repository: str
    branch: str
    config_dir: Path

    def question(self) -> str:
        """Return the question to ask before `prepare`."""
        if not self._is_clone():
            return f"Cloning {self.repository} into directory {self.folder}.\n\n  Continue?"
        if self._is_changed():
            return (
                f"The dotfiles URL has changed from {self._last_url()} to {self.repository}.\n"
                f"  Coder will backup the existing repo to {self._backup()}.\n\n  Continue?"
            )
        return f"Updating {self.repository} in directory {self.folder}.\n\n  Continue?"

    def prepare(self) -> None:
        """Clone, update or replace. Raise CoderError only if there is no clone of the repository afterwards."""
        if self._is_clone() and not self._is_changed():
            self._update()
        else:
            self._clone()
        session.write_file(self.config_dir, _URL_FILE, self.repository)

    def _is_clone(self) -> bool:
        return os.path.lexists(self.folder / ".git")

    def _is_changed(self) -> bool:
        """Return whether the clone has another origin. An origin that the user has set since then is no change."""
        known = {_without_login(url) for url in (self._last_url(), self._origin()) if url}
        return bool(known) and _without_login(self.repository) not in known

    def _last_url(self) -> str:
        return session.read_file(self.config_dir, _URL_FILE) or self._origin()

    def _origin(self) -> str:
        if shutil.which("git") is None:
            return ""
        words = ["git", "config", "--file", str(self.folder / ".git/config"), "--get", "remote.origin.url"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

    def _backup(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}_backup_{datetime.now().strftime('%Y%m%dT%H%M%S')}")

    def _update(self) -> None:
        if shutil.which("git") is None:
            _tell("Git is not installed. Failed to update repo, continuing...")
            return
        origin = self._origin()
        if origin != self.repository and _without_login(origin) == _without_login(self.repository):
            self._git("remote", "set-url", "origin", "--", self.repository)
        if self.branch and self._current_branch() != self.branch:
            self._git("fetch", "origin")
            if not self._git("checkout", self.branch, "--"):
                _tell(f"Failed to use branch {self.branch}, continuing...")
            elif not self._current_branch():
                return  # a tag or a commit
        if not self._git("pull", "--ff-only"):
            _tell("Failed to update repo, continuing...")

    def _current_branch(self) -> str:
        words = ["git", "branch", "--show-current"]
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def _git(self, *words: str) -> bool:
        # An install script without execute permission gets it from this program: that is no change to the clone.
        done = subprocess.run(
            ["git", "-c", "core.fileMode=false", *words], cwd=self.folder, env=self._environment(), check=False
        )
        return done.returncode == 0

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "GIT_SSH_COMMAND": f"{os.environ.get('GIT_SSH_COMMAND') or 'ssh'} {_SSH_OPTIONS}",
            "GIT_CEILING_DIRECTORIES": str(self.folder.parent),  # a damaged clone must not lead to a repository above
        }

    def _clone(self) -> None:
        if shutil.which("git") is None:
            raise CoderError("git", "git is not installed", "Install it in the workspace's image.")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self._clone_into(self.folder)  # it can be a mount point, which cannot be renamed
            return
        with tempfile.TemporaryDirectory(prefix=f".{self.folder.name}-", dir=self.folder.parent) as temporary:
            made = Path(temporary, "clone")
            self._clone_into(made)
            if os.path.lexists(self.folder):
                _tell(f"Moved {self.folder} to {move_aside(self.folder, self._backup())}")
            when_free(lambda: made.rename(self.folder))

    def _clone_into(self, folder: Path) -> None:
        branch = ["--branch", self.branch] if self.branch else []
        done = subprocess.run(
            ["git", "clone", *branch, "--", self.repository, str(folder)], env=self._environment(), check=False
        )
        if done.returncode != 0:
            raise CoderError("git", f"git clone exited with code {done.returncode}", "Git's output is above.")


def _without_login(url: str) -> str:
    """Return a URL without user and password: a template can pass a token that is new at each start."""
    if "://" not in url:
        return url
    try:
        pieces = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit(pieces._replace(netloc=pieces.netloc.rpartition("@")[2]))


def _tell(text: str) -> None:
    sys.stdout.write(shown(text) + "\n")
    sys.stdout.flush()
