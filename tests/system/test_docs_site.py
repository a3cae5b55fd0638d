"""The documentation, built as a site: no link leads nowhere, and its search finds a page by a word in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.system


def test_the_site(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.html")}
    assert {page.replace("README", "index") for page in pages} <= built
    index = json.loads((tmp_path / "search/search_index.json").read_text())["docs"]
    assert {"guides/reverse-proxies.html"} <= {
        entry["location"].partition("#")[0] for entry in index if "proxy_read_timeout" in entry["text"]
    }
    # Whoever reads it may have no way out.
    text = (tmp_path / "index.html").read_text()
    assert 'src="http' not in text and "fonts.googleapis" not in text
