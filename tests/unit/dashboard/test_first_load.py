"""Size of the files a browser loads before the first list, in the last build of the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.dashboard.pages import DIST, LIMIT_KB, kilobytes, page_files, shared_files

PAGES = ("WorkspacesPage", "TemplatesPage", "CreateWorkspacePage", "UsersPage", "AuditPage")


def test_static_imports_counted_dynamic_not(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    files = {
        "index-1.js": 'import{a}from"./vendor-1.js";const p=()=>import("./Page-1.js");',
        "vendor-1.js": "export const a=1",
        "Page-1.js": 'import"./vendor-1.js";import{t}from"./table-1.js";import("./chart-1.js")',
        "table-1.js": "export const t=1",
        "chart-1.js": "1",
        "index-1.css": "a{}",
    }
    for name, text in files.items():
        (tmp_path / "assets" / name).write_text(text)
    page = '<script type="module" src="/assets/index-1.js"></script><link rel="stylesheet" href="/assets/index-1.css">'
    (tmp_path / "index.html").write_text(page)
    assert shared_files(tmp_path) == {"assets/index-1.js", "assets/vendor-1.js", "assets/index-1.css"}
    assert page_files("Page", tmp_path) == {"assets/Page-1.js", "assets/table-1.js"}


@pytest.mark.skipif(not (DIST / "index.html").is_file(), reason="the dashboard is not built")
@pytest.mark.parametrize("page", PAGES)
def test_page_size_limit(page: str) -> None:
    assert kilobytes(shared_files() | page_files(page)) <= LIMIT_KB
