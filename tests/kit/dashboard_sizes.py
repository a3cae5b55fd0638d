"""What a browser must have of the built dashboard before a page shows: what index.html names, and the page's own part
with all it imports before it runs. What is loaded after the page (menus of the frame, charts, editors) is not counted.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from tests.kit.loopback import ROOT

DIST = ROOT / "coder/dashboard/dist"
LIMIT_KB = 220
"""JavaScript and CSS before the first list is there, in thousands of bytes after gzip."""
_NAMED = re.compile(r"""(?:src|href)="/(assets/[^"]+\.(?:js|css))\"""")
# `import"./a.js"`, `import{b}from"./a.js"`; `import("./a.js")` waits until somebody needs it.
_IMPORTED = re.compile(r"""(?:\bfrom|\bimport)\s*["']\./([^"']+\.js)["']""")


def shared_files(dist: Path = DIST) -> set[str]:
    """What every page loads: paths below `dist`."""
    return _with_imports(dist, set(_NAMED.findall((dist / "index.html").read_text())))


def page_files(page: str, dist: Path = DIST) -> set[str]:
    """What one page adds. `page` is the name of its module."""
    [part] = dist.glob(f"assets/{page}-*.js")
    return _with_imports(dist, {f"assets/{part.name}"}) - shared_files(dist)


def kilobytes(files: set[str], dist: Path = DIST) -> float:
    """Thousands of bytes, each file on its own as a server sends it."""
    return sum(len(gzip.compress((dist / name).read_bytes(), 6)) for name in files) / 1000


def _with_imports(dist: Path, files: set[str]) -> set[str]:
    found, waiting = set[str](), set(files)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name.endswith(".js"):
            waiting |= {f"assets/{other}" for other in _IMPORTED.findall((dist / name).read_text())} - found
    return found
