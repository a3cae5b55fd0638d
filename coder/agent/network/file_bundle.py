"""`POST /api/v0/bundle-files`: files of a workspace as one archive, for whoever helps from afar.

A tar with the files below `files/`, each under its whole path, and `manifest.json`: what was asked for, what is there,
what could not be read, whether something was left out, and the limits. Devices, sockets and pipes are errors that are
never opened, links to files are archived as what they point to, and links to folders are errors unless they were asked
for by name. The first thing that goes beyond a limit ends the search.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coder.agent.disk import Threads, on_disk
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, message_reply
from coder.agent.state import AgentState
from coder.agent.workspace.files import read_regular, workdir

if TYPE_CHECKING:
    import tarfile

MAX_PATHS = 256
MAX_FILES = 2000
MAX_ENTRIES = 20_000
MAX_FILE = 8 << 20
MAX_TOTAL = 32 << 20
"""Ours: an archive is made in memory, of an agent on somebody else's machine. Entries: of folders, over the whole
request; folders full of folders have no files that could be counted."""
_LIMITER = Threads(2)
"""Bundles that are made at once. A disk that does not answer holds these threads, never those that all others share."""


@dataclass(slots=True)
class _Bundle:
    """The archive while it is being filled."""

    requested: list[str]
    data: io.BytesIO = field(default_factory=io.BytesIO)
    files: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    "Nobody waits for it any more."
    size: int = 0
    entries: int = 0
    truncated: bool = False
    full: bool = False
    "A limit of the whole was met: nothing more is looked at."

    def has_ended(self) -> bool:
        return self.full or self.stopped.is_set()

    def overflow(self) -> None:
        self.full = self.truncated = True

    def manifest(self) -> bytes:
        return json.dumps(
            {
                "requested": self.requested,
                "files": self.files,
                "errors": self.errors,
                "truncated": self.truncated,
                "limits": {
                    "paths": MAX_PATHS,
                    "files": MAX_FILES,
                    "entries": MAX_ENTRIES,
                    "file_bytes": MAX_FILE,
                    "total_bytes": MAX_TOTAL,
                },
            },
            indent=1,
        ).encode()


async def _bundle_files(state: AgentState, request: HttpRequest) -> HttpReply:
    paths = json.loads(request.body or b"{}").get("paths") or []
    if not paths or not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        return message_reply(400, "paths must be a list of paths that is not empty")
    if len(paths) > MAX_PATHS:
        return message_reply(400, f"at most {MAX_PATHS} paths can be asked for at once")
    base = await workdir(state)
    places = [(path, _place(state, base, path)) for path in paths]
    bundle = _Bundle(paths)
    try:
        body = await on_disk(_archive, bundle, places, limiter=_LIMITER)
    finally:
        bundle.stopped.set()
    return HttpReply(200, body, "application/x-tar")


def _place(state: AgentState, base: Path, path: str) -> Path:
    if path == "~" or path.startswith("~/"):
        return state.identity.home / path[2:]
    return base / path


def _archive(bundle: _Bundle, places: list[tuple[str, Path]]) -> bytes:
    import tarfile  # with its compressions it is a megabyte that waiting agents need not have

    with tarfile.open(fileobj=bundle.data, mode="w") as archive:
        for given, place in places:
            if bundle.has_ended():
                break
            if os.path.isdir(place):  # noqa: PTH112 - pathlib's raises where one may not look
                for path in _files_below(bundle, place):
                    _take(bundle, archive, str(path), path)
            else:
                _take(bundle, archive, given, place)
        _add(archive, "manifest.json", bundle.manifest())
    return bundle.data.getvalue()


def _files_below(bundle: _Bundle, top: Path) -> Iterator[Path]:
    """All that is no folder, in a stable order, until the bundle has ended. Links to folders are not followed."""
    waiting = [top]
    while waiting and not bundle.has_ended():
        if bundle.entries >= MAX_ENTRIES:
            bundle.overflow()
            return
        folder = waiting.pop()
        try:
            entries = _entries(bundle, folder)
        except OSError as error:
            bundle.errors.append({"path": str(folder), "error": error.strerror or str(error)})
            continue
        for path, is_folder in entries:
            if bundle.has_ended():
                return
            if not is_folder:
                yield path
        waiting += [path for path, is_folder in reversed(entries) if is_folder]


def _entries(bundle: _Bundle, folder: Path) -> list[tuple[Path, bool]]:
    """By name, and which are folders; no more than may still be looked at. Raises OSError."""
    left = MAX_ENTRIES - bundle.entries
    with os.scandir(folder) as listing:
        found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in islice(listing, left + 1)]
    bundle.truncated |= len(found) > left
    found = sorted(found[:left])
    bundle.entries += len(found)
    return found


def _take(bundle: _Bundle, archive: tarfile.TarFile, given: str, path: Path) -> None:
    left = MAX_TOTAL - bundle.size
    if len(bundle.files) + len(bundle.errors) >= MAX_FILES or left <= 0:
        bundle.overflow()
        return
    try:
        content = read_regular(path, min(MAX_FILE, left) + 1)
    except OSError as error:
        bundle.errors.append({"path": given, "error": error.strerror or str(error)})
        return
    cut = len(content) > MAX_FILE
    content = content[:MAX_FILE]
    if len(content) > left:
        bundle.overflow()
        bundle.errors.append({"path": given, "error": "larger than what is left of the archive"})
        return
    bundle.truncated |= cut
    bundle.size += len(content)
    bundle.files.append({"path": given, "archive_path": f"files{path.absolute()}", "size": len(content), "cut": cut})
    _add(archive, f"files{path.absolute()}", content)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    import tarfile

    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o600
    archive.addfile(info, io.BytesIO(content))


BUNDLE_ROUTES: Routes = {("POST", "/api/v0/bundle-files"): _bundle_files}
