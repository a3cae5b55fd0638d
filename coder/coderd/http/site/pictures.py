"""Pictures of templates, apps and organizations: /icon/… and /emojis/…, from one archive built with the dashboard.

An archive instead of four thousand files: a self-extracting program would write each of them at its first start.
`scripts/dashboard_pictures.py` defines its content. Not here: pictures of a custom site folder (`dashboard_files.py`).
"""

from __future__ import annotations

import hashlib
import zipfile
from functools import lru_cache
from pathlib import Path

FOLDERS = ("icon/", "emojis/")
_SVG, _JSON = "image/svg+xml; charset=utf-8", "application/json; charset=utf-8"
# The selector for colour belongs to some emojis' names and not to others'; users do not remember which.
_COLOUR = "-fe0f"


def find(archive: Path, path: str) -> tuple[bytes, str, str] | None:
    """Return (bytes, type, quoted hash) of a picture; None if it does not exist.

    Every drawing is an SVG under any suffix: templates refer to `docker.svg` and `docker.png` alike, and a browser uses
    the type.
    """
    if not path.startswith(FOLDERS) or not archive.is_file():
        return None
    return _read(str(archive), archive.stat().st_mtime_ns, path)


@lru_cache(maxsize=512)
def _read(archive: str, changed: int, path: str) -> tuple[bytes, str, str] | None:
    opened, names = _open(archive, changed)
    name = names.get(_key(path))
    if name is None:
        return None
    data = opened.read(name)
    kind = _JSON if name.endswith(".json") else _SVG
    return data, kind, f'"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}"'


@lru_cache(maxsize=1)
def _open(archive: str, _changed: int) -> tuple[zipfile.ZipFile, dict[str, str]]:
    opened = zipfile.ZipFile(archive)
    return opened, {_key(name): name for name in opened.namelist()}


def _key(path: str) -> str:
    stem, _, ending = path.rpartition(".")
    drawing = ending in {"svg", "png"}
    return f"{stem.replace(_COLOUR, '')}.*" if drawing else path
