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

from coder.base.errors import CoderError
from coder.base.whole_file import move_aside, shown
from coder.cli.output import say

_PRIVATE = 0o700
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
            "dotfiles", f"{refused} of the dot-files could not be linked", "The lines above say which, and why."
        )


class _Linker:
    """Run over the files of a clone."""

    def __init__(self, clone: Path, config_dir: Path, target: Path) -> None:
        self.clone = clone
        self._target = target
        real_target = Path(os.path.realpath(target))
        real_config = Path(os.path.realpath(config_dir))
        self._kept = {Path(os.path.realpath(clone)): "the clone of the repository"}
        if real_config != real_target and real_config not in real_target.parents:
            self._kept[real_config] = "this program's configuration directory"

    def link(self, entries: Iterable[Path]) -> int:
        """Link all entries. Return the number of entries that the system rejected."""
        refused = 0
        waiting = [(path, self._target / path.name) for path in entries]
        while waiting:  # not by recursion: the author of a repository controls its depth
            path, place = waiting.pop(0)
            try:
                if path.is_dir() and not path.is_symlink():
                    waiting[:0] = self._enter(path, place)
                else:
                    self._put(path, place)
            except OSError as error:
                refused += 1
                say(f"Not linked: {place}: {error.strerror or error}")
        return refused

    def _enter(self, path: Path, place: Path) -> list[tuple[Path, Path]]:
        """Create the directory `place`. Return the entries of `path` to link in it, with their locations."""
        if place.is_symlink() and place.is_dir():
            inside = Path(os.path.realpath(place))
            if inside == Path(os.path.realpath(path)):
                return []  # a link to the whole directory, by an earlier version or by hand
            if self._is_kept(inside, place):
                return []
            say(f"{place} is a link: linking into {inside}")
        elif self._is_kept(_real(place), place):
            return []
        elif not place.is_dir():
            self._clear(place)
            place.mkdir(_PRIVATE)
        return [(child, place / child.name) for child in sorted(path.iterdir()) if child.name != ".git"]

    def _put(self, path: Path, place: Path) -> None:
        """Make `place` a link to `path`."""
        real = _real(place)
        if self._is_kept(real, place):
            return
        if place.is_symlink() and place.readlink() == path:
            return
        if Path(os.path.realpath(path)) == real:
            say(f"Skipped {place}: the repository has a link to this place itself")
        elif place.is_dir() and not place.is_symlink():
            say(f"Skipped {place}: a directory is there, where the repository has {_kind(path)}")
        elif not self._leads_to_kept(place):
            self._clear(place)
            place.symlink_to(path)

    def _is_kept(self, real: Path, place: Path) -> bool:
        """Return whether `real`, the target of `place`, is in the clone or the configuration directory."""
        for kept, name in self._kept.items():
            if real == kept or kept in real.parents:
                say(f"Skipped {place}: it belongs to {name}")
                return True
        return False

    def _leads_to_kept(self, place: Path) -> bool:
        """Return whether a link to replace is on the path to the clone or the configuration directory."""
        inside = Path(os.path.realpath(place))
        for kept, name in self._kept.items():
            if place.is_symlink() and (inside == kept or inside in kept.parents):
                say(f"Skipped {place}: it is a link that leads to {name}")
                return True
        return False

    def _clear(self, place: Path) -> None:
        """Remove a link, or rename a file as a backup."""
        if place.is_symlink():
            led_to = place.readlink()
            place.unlink()
            _tell(f"Replaced {place}, a link to {led_to}")
        elif os.path.lexists(place):
            kept = move_aside(place, place.with_name(f"{place.name}.bak-{datetime.now().strftime('%Y%m%d%H%M%S')}"))
            _tell(f"Moved {place} to {kept}")


def _tell(text: str) -> None:
    sys.stdout.write(shown(text) + "\n")


def _real(place: Path) -> Path:
    """Return the real path of `place`, resolving its parents but not a final link."""
    return Path(os.path.realpath(place.parent)) / place.name


def _kind(path: Path) -> str:
    return "a link" if path.is_symlink() else "a file"
