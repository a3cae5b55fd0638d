"""The documentation as a site: every page is in its navigation, every link and heading named by one exists.

Looked at without building; `tests/system/test_docs_site.py` builds it.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_SPEC = importlib.util.spec_from_file_location("docs_hooks", ROOT / "scripts/docs_hooks.py")
assert _SPEC and _SPEC.loader
hooks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hooks)
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"```.*?```", re.DOTALL)
ANCHORED = re.compile(r"\]\(([^)#\s:]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))


def anchors(page: Path) -> set[str]:
    """As both the site and a code host make them: words in lower case, joined by hyphens."""
    text = FENCE.sub("", page.read_text())
    plain = [
        re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", found).lower())
        for found in HEADING.findall(text)
    ]
    return {re.sub(r"\s+", "-", heading.strip()) for heading in plain}


def test_navigation_has_every_page_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = sorted(hooks.named(hooks.navigation(settings["nav"], DOCS)))
    assert listed == sorted(path.relative_to(DOCS).as_posix() for path in PAGES)
    assert "search" in settings["plugins"]


@each_page
def test_linked_headings_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    missing = [
        f"{target}#{anchor}"
        for target, anchor in ANCHORED.findall(text)
        if anchor not in anchors((page.parent / target).resolve() if target else page)
    ]
    assert not missing


@each_page
def test_pages_begin_with_one_title(page: Path) -> None:
    lines = FENCE.sub("", page.read_text()).splitlines()
    assert lines[0].startswith("# ") and sum(line.startswith("# ") for line in lines) == 1
