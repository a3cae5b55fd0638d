"""List of the releases in a folder, from the files that scripts/release wrote."""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path

from coder.api.site.release_list import LIST_NAME, Release, newest_release, parse_release_list
from coder.base.atomic_file import write_atomically
from coder.domain.agents.version_order import canonical

NOTES, SIGNATURE = "RELEASE_NOTES.md", "SHA256SUMS.minisig"
_REVISION = re.compile(r"coder/coderd/store/migrations/versions/(\d{4})_\w+\.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/release-list", description=__doc__)
    parser.add_argument("folder", type=Path, help="has one folder for each release")
    folder = parser.parse_args().folder
    places = sorted(path.parent for path in folder.glob(f"*/{SIGNATURE}"))
    if not places:
        print(f"error: no folder in {folder} has {SIGNATURE}", file=sys.stderr)
        return 1
    entries = [entry(place) for place in places]
    text = json.dumps({"releases": entries}, indent=1, ensure_ascii=False) + "\n"
    listed = parse_release_list(text.encode()).releases
    write_atomically(folder / LIST_NAME, text, mode=0o644)
    newest = newest_release(listed, "v0.0.0")
    print(
        f"{folder / LIST_NAME}: {len(listed)} releases, newest {newest.version if newest else 'none'}", file=sys.stderr
    )
    return 0


def entry(place: Path) -> dict[str, str]:
    """Return the list's entry of one release."""
    text = (place / NOTES).read_text(encoding="utf-8") if (place / NOTES).is_file() else ""
    title = re.match(r"# (\S+)\n", text)
    version = title[1] if title else place.name
    notes = re.split(r"(?m)^## (?:Files|Verify)$", text[title.end() if title else 0 :])[0].strip()
    found = {
        "version": canonical(version),
        "folder": place.name,
        "notes": notes,
        "schema_revision": schema_revision(place),
    }
    return {name: found[name] for name in Release.__struct_fields__ if found.get(name)}


def schema_revision(place: Path) -> str:
    """Return the newest revision of the schema in a release's wheel; "" without a wheel."""
    revisions = [
        match[1]
        for wheel in place.glob("*.whl")
        for name in zipfile.ZipFile(wheel).namelist()
        if (match := _REVISION.fullmatch(name))
    ]
    return max(revisions, default="")


if __name__ == "__main__":
    raise SystemExit(main())
