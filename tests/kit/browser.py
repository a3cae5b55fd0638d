"""Chromium by Playwright for tests of the dashboard: what they need, how it is started, which pages there are."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, sync_playwright

from tests.kit.loopback import ROOT

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SOON = 30_000  # milliseconds; a limit for slow machines, not a wait
PAGE_LISTS = ROOT / "tests/data/dashboard_pages"


def missing() -> str:
    """What this machine lacks for tests in a browser; "" for nothing."""
    if not CHROMIUM.exists():
        return "chromium is not installed"
    if shutil.which("terraform") is None:
        return "terraform is not on PATH"
    return "" if (ROOT / "coder/dashboard/dist/index.html").is_file() else "the dashboard is not built"


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    if "trio_asyncio" in sys.modules:
        pytest.skip("Playwright's event loop cannot share a process with trio-asyncio; run this file on its own")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield found
        found.close()


def listed_pages() -> list[str]:
    """The addresses of every area's list."""
    lines = [line.strip() for path in sorted(PAGE_LISTS.glob("*.txt")) for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def is_error(said: ConsoleMessage) -> bool:
    """What a page says went wrong; not that a template names a picture this deployment does not have."""
    picture = any(part in said.location.get("url", "") for part in ("/icon/", "/emojis/"))
    return said.type == "error" and not picture
