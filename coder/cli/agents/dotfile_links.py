"""Links from a home directory to the files of a dotfiles clone.

A directory of the repository becomes a real directory in the home, which can hold other files too; each file of the
repository becomes a link in it. Directories are never moved, removed or replaced: ~/.config contains the clone itself
and the session of the command line, ~/.ssh the keys.

Rules for an existing path that conflicts with

- a directory: a directory is used; a link to a directory is followed; a file is renamed as a backup; any other link is
replaced.
- a file, or a link of the repository: a link to it is kept; another link is replaced; a file is renamed as a backup; a
directory is kept and reported.

The clone and the configuration directory are never changed, regardless of the path that leads to them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from coder.base.atomic_file import move_aside, shown
from coder.base.errors import CoderError
from coder.cli.ui.output import say

_PRIVATE = 0o700
_NO_PRIVILEGE = 1314
"ERROR_PRIVILEGE_NOT_HELD of Windows."
"Mode of created directories: sshd and gpg reject wider modes, and the XDG specification requires it."


def top_entries(clone: Path) -> list[Path]:
    """Return the dotfiles of a repository. Git's own files are excluded, except for .gitconfig."""
    return sorted(
        path
        for path in clone.iterdir()
        if path.name.startswith(".") and (path.name == ".gitconfig" or not path.name.startswith(".git"))
    )


def link_dotfiles(clone: Path, config_dir: Path, target: Path) -> None:
    """Link the dotfiles of `clone` into `target`, and report what is moved, replaced or skipped.

    Link as many as possible. Raise CoderError afterwards if the system rejected some.
    """
    linker = _Linker(clone.absolute(), config_dir, target)
    refused = linker.link(top_entries(linker.clone))
    if refused:
        raise CoderError(
            "dotfiles", f"{refused} of the dotfiles could not be linked", "The lines above list them with the reasons."
        )


class _Linker:
    """Run over the files of a clone."""

    def __init__(self, clone: Path, config_dir: Path, target: Path) -> None:
        self.clone = clone
        self._target = target
        real_target = Path(os.path.realpath(target))
        real_config = Path(os.path.realpath(config_dir))
        self._protected = {Path(os.path.realpath(clone)): "the clone of the repository"}
        if real_config != real_target and real_config not in real_target.parents:
            self._protected[real_config] = "this program's configuration directory"

    def link(self, entries: Iterable[Path]) -> int:
        """Link all entries. Return the number of entries that the system rejected."""
        refused = 0
        waiting = [(path, self._target / path.name) for path in entries]
        while waiting:  # not by recursion: the author of a repository controls its depth
            path, target = waiting.pop(0)
            try:
                if path.is_dir() and not path.is_symlink():
                    waiting[:0] = self._enter_directory(path, target)
                else:
                    self._link_entry(path, target)
            except OSError as error:
                refused += 1
                say(f"Not linked: {target}: {error.strerror or error}")
        return refused

    def _enter_directory(self, path: Path, target: Path) -> list[tuple[Path, Path]]:
        """Create the directory `target`. Return the entries of `path` to link in it, with their locations."""
        if target.is_symlink() and target.is_dir():
            inside = Path(os.path.realpath(target))
            if inside == Path(os.path.realpath(path)):
                return []  # a link to the whole directory, by an earlier version or by hand
            if self._is_protected(inside, target):
                return []
            say(f"{target} is a link: linking into {inside}")
        elif self._is_protected(_real(target), target):
            return []
        elif not target.is_dir():
            self._make_room(target)
            target.mkdir(_PRIVATE)
        return [(child, target / child.name) for child in sorted(path.iterdir()) if child.name != ".git"]

    def _link_entry(self, path: Path, target: Path) -> None:
        """Make `target` a link to `path`."""
        real = _real(target)
        if self._is_protected(real, target):
            return
        if target.is_symlink() and target.readlink() == path:
            return
        if Path(os.path.realpath(path)) == real:
            say(f"Skipped {target}: the repository has a link to this path itself")
        elif target.is_dir() and not target.is_symlink():
            say(f"Skipped {target}: a directory is there, where the repository has {_kind(path)}")
        elif not self._leads_to_protected(target):
            self._make_room(target)
            try:
                target.symlink_to(path)
            except OSError as error:
                if getattr(error, "winerror", None) != _NO_PRIVILEGE:
                    raise
                raise CoderError(
                    "dotfiles",
                    f"Windows does not let this user create the link {target}",
                    "Turn on the developer mode of Windows, or run this as administrator.",
                ) from error

    def _is_protected(self, real: Path, target: Path) -> bool:
        """Return whether `real`, the target of `target`, is in the clone or the configuration directory."""
        for protected, name in self._protected.items():
            if real == protected or protected in real.parents:
                say(f"Skipped {target}: it belongs to {name}")
                return True
        return False

    def _leads_to_protected(self, target: Path) -> bool:
        """Return whether a link to replace is on the path to the clone or the configuration directory."""
        inside = Path(os.path.realpath(target))
        for protected, name in self._protected.items():
            if target.is_symlink() and (inside == protected or inside in protected.parents):
                say(f"Skipped {target}: it is a link that leads to {name}")
                return True
        return False

    def _make_room(self, target: Path) -> None:
        """Remove a link, or rename a file as a backup."""
        if target.is_symlink():
            led_to = target.readlink()
            target.unlink()
            _tell(f"Replaced {target}, a link to {led_to}")
        elif os.path.lexists(target):
            backup = move_aside(
                target, target.with_name(f"{target.name}.bak-{datetime.now().strftime('%Y%m%d%H%M%S')}")
            )
            _tell(f"Moved {target} to {backup}")


def _tell(text: str) -> None:
    sys.stdout.write(shown(text) + "\n")


def _real(target: Path) -> Path:
    """Return the real path of `target`, resolving its parents but not a final link."""
    return Path(os.path.realpath(target.parent)) / target.name


def _kind(path: Path) -> str:
    return "a link" if path.is_symlink() else "a file"
