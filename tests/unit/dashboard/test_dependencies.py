"""The dashboard's dependencies are used, and the lock file matches the package."""

from __future__ import annotations

import json
import re

from tests.kit.paths import ROOT

DASHBOARD = ROOT / "coder" / "dashboard"
BUILDERS = {"vite", "typescript", "tailwindcss"}
"""Packages that are run, or imported by a stylesheet only."""


def _package() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((DASHBOARD / "package.json").read_text())
    return found


def test_every_dependency_is_imported() -> None:
    files = [
        *(path for path in (DASHBOARD / "src").rglob("*.*") if path.suffix in {".ts", ".tsx", ".css"}),
        *DASHBOARD.glob("*.config.ts"),
        *(path for path in (ROOT / "scripts").rglob("*.py")),
        *(path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix == ""),
    ]
    text = "\n".join(path.read_text(errors="replace") for path in files)
    unused = {
        name
        for name in _package()["dependencies"]
        if not name.startswith("@types/") and name not in BUILDERS and not _is_named(name, text)
    }
    assert unused == set()


def _is_named(name: str, text: str) -> bool:
    icons = name.removeprefix("@iconify-json/")
    if icons != name:  # icons are copied by their table
        return re.search(rf"\b{re.escape(icons)}\b", text + (DASHBOARD / "icons.tsv").read_text()) is not None
    return re.search(rf"[\"']{re.escape(name)}(?:/[^\"']*)?[\"']", text) is not None


def test_lock_file_matches_package() -> None:
    lock = json.loads((DASHBOARD / "package-lock.json").read_text())["packages"]
    for kind in ("dependencies", "devDependencies"):
        assert lock[""][kind] == _package()[kind]
        assert {f"node_modules/{name}" for name in _package()[kind]} <= lock.keys()
