"""`POST /api/v0/bundle-files`: files of a workspace as one archive, for remote support.

The reply is a tar with the files below `files/`, each under its full path, and `manifest.json`: the requested paths,
the archived files, read errors, whether files were left out, and the limits. Devices, sockets and pipes are reported as
errors and never opened. A link to a file is archived as its target; a link to a folder is an error unless it was
requested by name. The search stops at the first exceeded limit.
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
from typing import TYPE_CHECKING

from coder.agent.disk import Threads, on_disk
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, message_reply
from coder.agent.state import AgentState
from coder.agent.workspace.files import read_regular, workdir
from coder.base.json_types import JsonObject

if TYPE_CHECKING:
    import tarfile

MAX_PATHS = 256
MAX_FILES = 2000
MAX_ENTRIES = 20_000
MAX_FILE = 8 << 20
MAX_TOTAL = 32 << 20
"""Limits (ours): the archive is built in memory on the user's machine. Entries count directory entries of the whole
request, because folders full of folders contain no files to count."""
_LIMITER = Threads(2)
"""Bundles built at a time. A disk that does not answer holds these threads, never the shared ones."""


@dataclass(slots=True)
class _Bundle:
    """Archive while it is being filled."""

    requested: list[str]
    data: io.BytesIO = field(default_factory=io.BytesIO)
    files: list[JsonObject] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    "Set when the request was cancelled."
    size: int = 0
    entries: int = 0
    truncated: bool = False
    full: bool = False
    "Whether a limit of the whole archive was reached; nothing more is read then."

    def is_done(self) -> bool:
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
        return message_reply(400, "paths must be a non-empty list of paths")
    if len(paths) > MAX_PATHS:
        return message_reply(400, f"a request can have at most {MAX_PATHS} paths")
    base = await workdir(state)
    locations = [(path, _location(state, base, path)) for path in paths]
    bundle = _Bundle(paths)
    try:
        body = await on_disk(_archive, bundle, locations, limiter=_LIMITER)
    finally:
        bundle.stopped.set()
    return HttpReply(200, body, "application/x-tar")


def _location(state: AgentState, base: Path, path: str) -> Path:
    if path == "~" or path.startswith("~/"):
        return state.identity.home / path[2:]
    return base / path


def _archive(bundle: _Bundle, locations: list[tuple[str, Path]]) -> bytes:
    import tarfile  # with its compressions it is a megabyte that idle agents need not load

    with tarfile.open(fileobj=bundle.data, mode="w") as archive:
        for requested_path, location in locations:
            if bundle.is_done():
                break
            if os.path.isdir(location):  # noqa: PTH112 - pathlib's raises where access is denied
                for path in _files_below(bundle, location):
                    _add_file(bundle, archive, str(path), path)
            else:
                _add_file(bundle, archive, requested_path, location)
        _add(archive, "manifest.json", bundle.manifest())
    return bundle.data.getvalue()


def _files_below(bundle: _Bundle, top: Path) -> Iterator[Path]:
    """Iterate over everything except folders, in a stable order, until the bundle is full. Links to folders are not
    followed."""
    queue = [top]
    while queue and not bundle.is_done():
        if bundle.entries >= MAX_ENTRIES:
            bundle.overflow()
            return
        folder = queue.pop()
        try:
            entries = _entries(bundle, folder)
        except OSError as error:
            bundle.errors.append({"path": str(folder), "error": error.strerror or str(error)})
            continue
        for path, is_folder in entries:
            if bundle.is_done():
                return
            if not is_folder:
                yield path
        queue += [path for path, is_folder in reversed(entries) if is_folder]


def _entries(bundle: _Bundle, folder: Path) -> list[tuple[Path, bool]]:
    """Return the folder's entries by name and whether each is a folder, within the entry limit. Raises OSError."""
    remaining = MAX_ENTRIES - bundle.entries
    with os.scandir(folder) as listing:
        children = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in islice(listing, remaining + 1)]
    bundle.truncated |= len(children) > remaining
    children = sorted(children[:remaining])
    bundle.entries += len(children)
    return children


def _add_file(bundle: _Bundle, archive: tarfile.TarFile, requested_path: str, path: Path) -> None:
    remaining = MAX_TOTAL - bundle.size
    if len(bundle.files) + len(bundle.errors) >= MAX_FILES or remaining <= 0:
        bundle.overflow()
        return
    try:
        content = read_regular(path, min(MAX_FILE, remaining) + 1)
    except OSError as error:
        bundle.errors.append({"path": requested_path, "error": error.strerror or str(error)})
        return
    cut = len(content) > MAX_FILE
    content = content[:MAX_FILE]
    if len(content) > remaining:
        bundle.overflow()
        bundle.errors.append({"path": requested_path, "error": "larger than the rest of the archive"})
        return
    bundle.truncated |= cut
    bundle.size += len(content)
    bundle.files.append(
        {"path": requested_path, "archive_path": f"files{path.absolute()}", "size": len(content), "cut": cut}
    )
    _add(archive, f"files{path.absolute()}", content)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    import tarfile

    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o600
    archive.addfile(info, io.BytesIO(content))


BUNDLE_ROUTES: Routes = {("POST", "/api/v0/bundle-files"): _bundle_files}
