"""Programs that this server can serve, and their locations.

Searched in this order: the `bin` folder of the configured site, the `bin` folder of the cache directory (where
`build/build.py` writes), and, when the server runs from the single binary, that file for its own platform.

`coder-<os>-<arch>` is the slim program where there is one: a full program's file contains it (`packed_program`).
`coder-full-<os>-<arch>` is the complete file, `coder-linux-<arch>.deb` a Debian package. A signature (`.asc`) and
compressed forms (`.zst`, `.gz`) of the same name may be in the same folder; a checksum (`.sha256`) is computed. A
program that `build/build.py` did not pack, without compressed forms, is compressed on request (`compressed_programs`).
A file's hashes are computed once and cached until its size or time changes.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from coder.api.site.programs import Program
from coder.base.own_binary import own_binary, own_name
from coder.coderd.services.site.compressed_programs import CompressedPrograms
from coder.coderd.services.site.packed_program import PackedLayout, ProgramSlice, read_packed
from coder.domain.agents.init_scripts import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coder.coderd.services.foundation.context import Context

_FOLDER = "the `bin` folder of the server's --cache-dir or --site-dir"

ENCODINGS = {"zstd": ".zst", "gzip": ".gz"}
"""Content encodings, best first, and the suffix of a file with that encoding."""


@dataclass(frozen=True, slots=True)
class ServedBinary:
    """Bytes to serve: the first `cut.size` of a file, then `cut.tail`."""

    path: Path
    cut: ProgramSlice
    sha1: str
    sha256: str
    encoding: str = ""
    original_size: int = 0
    "Size of the decoded program; the hashes are also those of the decoded program."

    @property
    def size(self) -> int:
        return self.cut.size + len(self.cut.tail)

    @property
    def etag(self) -> str:
        """Quoted SHA-1 of the program, with a suffix for each encoding."""
        return f'"{self.sha1}{"-" if self.encoding else ""}{self.encoding}"'

    def matches_etag(self, tags: str) -> bool:
        """Whether an `If-None-Match` matches. The program's SHA-1 matches for every encoding: a client with that file
        needs no other form.
        """
        named = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return not named.isdisjoint({self.etag, f'"{self.sha1}"', "*"})


_RUNS_TOO = {"coder-windows-arm64.exe": "coder-windows-amd64.exe"}
"""Programs that stand in for a missing one: Windows 11 on arm64 runs amd64 programs."""


def name_of(system: str, arch: str) -> str:
    """Return the name of a platform's program."""
    return f"coder-{system}-{arch}{'.exe' if system == 'windows' else ''}"


def names() -> tuple[str, ...]:
    """Return every name of a platform's program."""
    return tuple(name_of(system, arch) for system, arch in PLATFORMS)


def packages() -> tuple[str, ...]:
    """Return the names of Debian packages."""
    return tuple(f"coder-linux-{arch}.deb" for system, arch in PLATFORMS if system == "linux")


class Binaries:
    """Programs of one server process."""

    def __init__(self, ctx: Context) -> None:
        site = ctx.config.site_dir
        folders = [Path(site).expanduser() / "bin"] if site else []
        folders.append(ctx.config.cache_dir.expanduser() / "bin")
        self._folders = folders
        self._compressed = CompressedPrograms(ctx.config.cache_dir.expanduser() / "compressed")
        self._hashes: dict[tuple[Path, int, int, int], tuple[str, str]] = {}
        self._hashing = trio.Lock()

    async def find(self, name: str, encodings: tuple[str, ...] = ()) -> ServedBinary | None:
        """Return the program of that name, in the first available of the encodings, or None."""
        full, file_name = name.startswith("coder-full-"), name.replace("coder-full-", "coder-", 1)
        if file_name not in (*names(), *packages()):
            return None
        for path, packed, stat in self._existing_files(file_name):
            if full and packed.is_slim:
                continue
            if packed.slim is not None and not full:
                return await self._hashed(path, packed.slim, stat)
            whole = await self._hashed(path, ProgramSlice(stat.st_size, b""), stat)
            is_plain = not packed.is_slim and packed.slim is None and file_name in names()
            return await self._encoded(whole, encodings, is_plain=is_plain)
        return None

    def list_programs(self) -> list[Program]:
        """Return every platform's program, with None for a missing one. Reads only the end of each file."""
        programs = []
        for system, arch in PLATFORMS:
            name = name_of(system, arch)
            is_available = any(True for _ in self._existing_files(name))
            remedy = "" if is_available else _remedy(name)
            programs.append(Program(name=name, os=system, architecture=arch, available=is_available, remedy=remedy))
        return programs

    async def signature(self, name: str) -> bytes | None:
        """Return a detached signature of exactly the bytes of that name, made by the program's builder.

        The slim program inside a full one has its own signature (`coder-slim-…`), never the full one's.
        """
        binary = await self.find(name)
        if binary is None:
            return None
        file = name.replace("coder-full-", "coder-", 1)
        signed = file.replace("coder-", "coder-slim-", 1) if binary.cut.tail else file
        beside = binary.path.parent
        for path in [folder / f"{signed}.asc" for folder in ([beside] if beside in self._folders else self._folders)]:
            if path.is_file() and path.stat().st_size < 1 << 16:
                return path.read_bytes()
        return None

    def _existing_files(self, name: str) -> Iterator[tuple[Path, PackedLayout, os.stat_result]]:
        """Return the readable files of that name, in order of precedence."""
        paths = [folder / each for each in dict.fromkeys((name, _RUNS_TOO.get(name, name))) for folder in self._folders]
        own = own_binary()
        if own is not None and name == own_name():
            paths.append(own)
        for path in paths:
            try:
                stat = path.stat()
                packed = read_packed(path, stat.st_size)
            except OSError:
                continue
            if path.is_file():
                yield path, packed, stat

    async def _encoded(self, binary: ServedBinary, encodings: tuple[str, ...], *, is_plain: bool) -> ServedBinary:
        for encoding in encodings:
            path = binary.path.with_name(binary.path.name + ENCODINGS[encoding])
            try:
                stat = path.stat()
            except OSError:
                continue
            if stat.st_mtime >= binary.path.stat().st_mtime:  # an older one belongs to an older program
                return replace(binary, path=path, cut=ProgramSlice(stat.st_size, b""), encoding=encoding)
        encoded = None
        if is_plain and "gzip" in encodings:
            encoded = await self._compressed.gzipped(binary.path, binary.size, binary.sha1)
        if encoded is None:
            return binary
        return replace(binary, path=encoded.path, cut=ProgramSlice(encoded.size, b""), encoding="gzip")

    async def _hashed(self, path: Path, cut: ProgramSlice, stat: os.stat_result) -> ServedBinary:
        key = (path, stat.st_size, stat.st_mtime_ns, cut.size)
        if key not in self._hashes:  # known hashes need no wait
            async with self._hashing:  # fifty machines that ask concurrently cause one hash of the file
                if key not in self._hashes:
                    self._hashes[key] = await trio.to_thread.run_sync(_digests, path, cut)
        sha1, sha256 = self._hashes[key]
        return ServedBinary(path, cut, sha1, sha256, original_size=cut.size + len(cut.tail))

    async def explain_missing(self, name: str, companion: str = "") -> str:
        """Return a message with the available programs and how to build the missing one.

        `companion` is the suffix of a missing companion file (`asc`); only its absence is explained if the program
        itself exists.
        """
        if companion == "asc" and await self.find(name) is not None:
            return f"The program is available, but no signature is stored next to it as {name}.asc."
        built = [program.name for program in self.list_programs() if program.available]
        have = f"Built here: {', '.join(built)}." if built else "No program has been built here yet."
        if name.replace("coder-full-", "coder-", 1) not in names():
            return f"{have} Names are: {', '.join(names())}."
        how = _remedy(name)
        if "-darwin-" in name:
            how += " With Python 3.11 you can install the wheel instead: `pipx install FILE.whl`."
        return f"{have} {how}"


def _remedy(name: str) -> str:
    # Anonymous callers read this, so it names the setting, never the path.
    built = _RUNS_TOO.get(name, name)
    platform = built.removeprefix("coder-full-").removeprefix("coder-").removesuffix(".exe")
    return f"Build {built} with `build/build.py --platform {platform}` and put it into {_FOLDER}."


def _digests(path: Path, cut: ProgramSlice) -> tuple[str, str]:
    # The tag's form is upstream's; it protects nothing.
    sha1, sha256 = hashlib.sha1(usedforsecurity=False), hashlib.sha256()
    remaining = cut.size
    with path.open("rb") as file:
        while remaining and (chunk := file.read(min(remaining, 1 << 20))):
            remaining -= len(chunk)
            sha1.update(chunk)
            sha256.update(chunk)
    sha1.update(cut.tail)
    sha256.update(cut.tail)
    return sha1.hexdigest(), sha256.hexdigest()
