"""Which programs this server can hand out, and where they lie.

In this order: the configured site's `bin` folder, the `bin` folder of the cache directory (where `build/build.py`
puts what it made), and, when the server itself runs from the single binary, that very file for its own platform.
A file's SHA-1 is computed once and kept as long as the file looks the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from coder.base.own_binary import own_binary
from coder.domain.init_scripts import PLATFORMS

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

_MACHINES = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv7l": "armv7",
}


@dataclass(frozen=True, slots=True)
class Binary:
    """A file to hand out."""

    path: Path
    size: int
    etag: str
    "Quoted SHA-1 of the content."


def names() -> tuple[str, ...]:
    """Every name a platform's program may have."""
    return tuple(f"coder-{system}-{arch}{'.exe' if system == 'windows' else ''}" for system, arch in PLATFORMS)


def own_name() -> str:
    """The name of the program this machine would run."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    arch = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    return f"coder-{system}-{arch}{'.exe' if system == 'windows' else ''}"


class Binaries:
    """The shelf of one server process, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        site = ctx.config.site_dir
        folders = [Path(site).expanduser() / "bin"] if site else []
        folders.append(ctx.config.cache_dir.expanduser() / "bin")
        self._folders = folders
        self._hashes: dict[tuple[Path, int, int], str] = {}
        self._hashing = trio.Lock()

    async def find(self, name: str) -> Binary | None:
        """The program of that name; None for unknown names and for platforms nobody built."""
        if name not in names():
            return None
        for path in self._candidates(name):
            try:
                stat = path.stat()
            except OSError:
                continue
            if path.is_file():
                return Binary(path, stat.st_size, await self._etag(path, stat))
        return None

    def _candidates(self, name: str) -> list[Path]:
        found = [folder / name for folder in self._folders]
        own = own_binary()
        if own is not None and name == own_name():
            found.append(own)
        return found

    async def _etag(self, path: Path, stat: os.stat_result) -> str:
        key = (path, stat.st_size, stat.st_mtime_ns)
        async with self._hashing:  # fifty machines asking at once hash the file once
            if key not in self._hashes:
                digest = await trio.to_thread.run_sync(_sha1, path)
                self._hashes[key] = f'"{digest}"'
        return self._hashes[key]

    async def explain_missing(self, name: str) -> str:
        """What is there instead, and how the missing one is made."""
        built = [other for other in names() if await self.find(other) is not None]
        have = f"Built here: {', '.join(built)}." if built else "No program was built here yet."
        if name not in names():
            return f"{have} Names are: {', '.join(names())}."
        return f"{have} Build {name} with build/build.py on such a machine and put it into {self._folders[0]}."


def _sha1(path: Path) -> str:
    with path.open("rb") as file:
        # The tag's form is upstream's; it protects nothing.
        return hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()
