"""The documentation that is built into the server (`scripts/docs --pack`), and the addresses of its pages.

Members of the archive are deflated: they are sent as gzip without compressing them again.
"""

from __future__ import annotations

import hashlib
import mimetypes
import struct
import zipfile
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from coder.coderd.config.networking import DEFAULT_DOCS_URL
from coder.coderd.config.workspaces import DEFAULT_TROUBLESHOOTING_URL

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

ARCHIVE = Path(__file__).resolve().parents[3] / "dashboard/documentation.zip"
_HASHES = "scripts.txt"
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
"""Head of a gzip member: deflate, no name and no time, best compression, unknown system."""
_LOCAL_HEADER = 30
"""Bytes of a local file header before name and extra field (APPNOTE 4.3.7)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the documentation."""

    data: bytes
    zipped: bytes
    "The same as gzip."
    kind: str
    tag: str
    "Quoted hash, for ETag."


def is_built() -> bool:
    return _is_file(ARCHIVE)


@cache
def _is_file(path: Path) -> bool:
    """Return whether a file of the program exists, which does not change while it runs."""
    return path.is_file()


def documentation_url(ctx: Context) -> str:
    """Return the address that pages link to: the configured one, or the built-in documentation."""
    chosen = ctx.config.docs_url
    return f"{ctx.access_url}/docs" if chosen == DEFAULT_DOCS_URL and is_built() else chosen


def troubleshooting_url(ctx: Context) -> str:
    """Return the address of help for agents whose template names none."""
    chosen = ctx.config.agent_fallback_troubleshooting_url or DEFAULT_TROUBLESHOOTING_URL
    if chosen == DEFAULT_TROUBLESHOOTING_URL and is_built():
        return f"{ctx.access_url}/docs/guides/troubleshooting.html#agents"
    return chosen


def find(path: str) -> Member | None:
    """Return the file of a path below /docs; None if it does not exist."""
    if not is_built():
        return None
    name = path if path and not path.endswith("/") else f"{path}index.html"
    return None if name == _HASHES else _read(str(ARCHIVE), ARCHIVE.stat().st_mtime_ns, name)


def script_sources() -> str:
    """Return the sources of a Content-Security-Policy for the pages' inline scripts."""
    member = _read(str(ARCHIVE), ARCHIVE.stat().st_mtime_ns, _HASHES)
    return " ".join(member.data.decode().split()) if member else ""


@lru_cache(maxsize=256)
def _read(archive: str, changed: int, name: str) -> Member | None:
    opened = _open(archive, changed)
    try:
        info = opened.getinfo(name)
    except KeyError:
        return None
    data = opened.read(info)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind in {"application/javascript", "application/json"}:
        kind += "; charset=utf-8"
    tag = f'"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}"'
    return Member(data, _as_gzip(archive, info), kind, tag)


def _as_gzip(archive: str, info: zipfile.ZipInfo) -> bytes:
    with Path(archive).open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER)
        file.seek(sum(struct.unpack("<HH", header[-4:])), 1)
        deflated = file.read(info.compress_size)
    return _GZIP_HEAD + deflated + struct.pack("<II", info.CRC, info.file_size & 0xFFFFFFFF)


@lru_cache(maxsize=1)
def _open(archive: str, _changed: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(archive)
