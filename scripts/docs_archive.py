"""Pack the built documentation for the server: `docs_archive.py SITE ARCHIVE`, or `docs_archive.py --current ARCHIVE`.

The archive has the pages, their assets and the search index, deflated, so that the server sends them as they are.
Left out: source maps, and the search's files for other languages. `scripts.txt` lists the hashes of the pages' inline
scripts for the Content-Security-Policy. The archive's comment is the hash of the sources.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_INLINE = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL)
_LEFT_OUT = re.compile(r".*\.map|assets/javascripts/lunr/.*|sitemap\.xml.*|404\.html")
_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every member, so that the same documentation gives the same archive."""
HASHES = "scripts.txt"


def stamp() -> str:
    """Return the hash of everything that the site is built from."""
    digest = hashlib.sha256()
    sources = [ROOT / "mkdocs.yml", ROOT / "scripts/docs_hooks.py", Path(__file__), ROOT / "scripts/constraints.txt"]
    for path in sorted([*sources, *(path for path in (ROOT / "docs").rglob("*") if path.is_file())]):
        digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def script_hashes(site: Path) -> list[str]:
    """Return the sources of a Content-Security-Policy for the pages' inline scripts."""
    found = {text for path in site.rglob("*.html") for text in _INLINE.findall(path.read_text(encoding="utf-8"))}
    digests = (hashlib.sha256(text.encode()).digest() for text in found)
    return sorted(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def pack(site: Path, archive: Path) -> int:
    """Write the archive and return its size in bytes."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(path for path in site.rglob("*") if path.is_file()):
            name = path.relative_to(site).as_posix()
            if not _LEFT_OUT.fullmatch(name):
                packed.writestr(zipfile.ZipInfo(name, _TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
        hashes = "\n".join(script_hashes(site))
        packed.writestr(zipfile.ZipInfo(HASHES, _TIME), hashes, zipfile.ZIP_DEFLATED)
        packed.comment = stamp().encode()
    partial.replace(archive)
    return archive.stat().st_size


def is_current(archive: Path) -> bool:
    """Return whether the archive was made from the present sources."""
    try:
        with zipfile.ZipFile(archive) as packed:
            return packed.comment == stamp().encode()
    except (OSError, zipfile.BadZipFile):
        return False


if __name__ == "__main__":
    if sys.argv[1] == "--current":
        sys.exit(0 if is_current(Path(sys.argv[2])) else 1)
    print(f"{sys.argv[2]}: {pack(Path(sys.argv[1]), Path(sys.argv[2])) / 1000:.0f} kB")
