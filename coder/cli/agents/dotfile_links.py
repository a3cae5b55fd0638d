"""Links from a home directory into a clone of dot-files, file by file.

A directory of the repository is a real directory in the home, which may hold other files too; each file of the
repository becomes a link in it. No directory is ever moved, removed or replaced: ~/.config holds the clone itself and
the session of the command line, ~/.ssh the keys.

What may already be in the place of

- a directory: a directory is used; a link to a directory is followed; a file is kept as a backup; any other link is
  replaced.
- a file, or a link of the repository: the link to it stays; another link is replaced; a file is kept as a backup; a
  directory is left alone and named.

The clone and the configuration directory are left alone, however a path reaches them.
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
"Mode of directories made here: sshd and gpg refuse wider ones, and the XDG specification asks for it."


def top_entries(clone: Path) -> list[Path]:
    """The dot-files of a repository. Git's own are none, except for .gitconfig."""
    return sorted(
        path
        for path in clone.iterdir()
        if path.name.startswith(".") and (path.name == ".gitconfig" or not path.name.startswith(".git"))
    )


def link_dotfiles(clone: Path, config_dir: Path, target: Path) -> None:
    """Links the dot-files of `clone` into `target`, and says what it moves, replaces or leaves out.

    Links all it can. Raises CoderError afterwards when the system refused some.
    """
    linker = _Linker(clone.absolute(), config_dir, target)
    refused = linker.link(top_entries(linker.clone))
    if refused:
        raise CoderError(
            "dotfiles", f"{refused} of the dot-files could not be linked", "The lines above say which, and why."
        )


class _Linker:
    """One run over a clone."""

    def __init__(self, clone: Path, config_dir: Path, target: Path) -> None:
        self.clone = clone
        self._target = target
        real_target = Path(os.path.realpath(target))
        real_config = Path(os.path.realpath(config_dir))
        self._kept = {Path(os.path.realpath(clone)): "the clone of the repository"}
        if real_config != real_target and real_config not in real_target.parents:
            self._kept[real_config] = "this program's configuration directory"

    def link(self, entries: Iterable[Path]) -> int:
        """Returns how many entries the system refused."""
        refused = 0
        waiting = [(path, self._target / path.name) for path in entries]
        while waiting:  # not by recursion: a repository is as deep as its author likes
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
        """Makes `place` a directory. Returns what of `path` has to be linked in it, and where."""
        if place.is_symlink() and place.is_dir():
            inside = Path(os.path.realpath(place))
            if inside == Path(os.path.realpath(path)):
                return []  # a link to the whole directory, of an earlier version or made by hand
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
        """Makes `place` a link to `path`."""
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
        """Whether `real`, to which `place` leads, is the clone or the configuration directory, or lies in one."""
        for kept, name in self._kept.items():
            if real == kept or kept in real.parents:
                say(f"Skipped {place}: it belongs to {name}")
                return True
        return False

    def _leads_to_kept(self, place: Path) -> bool:
        """Whether a link that is to be replaced is on the way to the clone or the configuration directory."""
        inside = Path(os.path.realpath(place))
        for kept, name in self._kept.items():
            if place.is_symlink() and (inside == kept or inside in kept.parents):
                say(f"Skipped {place}: it is a link that leads to {name}")
                return True
        return False

    def _clear(self, place: Path) -> None:
        """Takes away a link, and keeps a file beside."""
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
    """Where `place` really is; it may be a link itself."""
    return Path(os.path.realpath(place.parent)) / place.name


def _kind(path: Path) -> str:
    return "a link" if path.is_symlink() else "a file"
