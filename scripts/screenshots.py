"""Take the pictures of `scripts/screenshots`."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.kit.dashboard.browser import CHROMIUM, FLAGS, PHONE, WIDE
from tests.kit.dashboard.pages import (
    BUILT,
    MACHINES,
    PAGES,
    Names,
    Showcase,
    Visit,
    furnish,
    names,
    open_empty,
    open_showcase,
    session,
)
from tests.kit.server.server_process import ROOT, Loopback

TEMPLATE = "/templates/local-process"
DOCS = ROOT / "docs/pictures"
QUALITY = 72
TALLEST = 6000
ADDRESS = "https://coder.example.com"
TEN = (
    ("workspaces", "/workspaces", "light", WIDE),
    ("workspace", f"/@ana/{BUILT[0]}", "dark", WIDE),
    ("external-machine", f"/@ana/{MACHINES[1]}", "light", WIDE),
    ("create-workspace", f"{TEMPLATE}/workspace", "light", WIDE),
    ("template-editor", f"{TEMPLATE}/versions/ACTIVE/edit", "dark", WIDE),
    ("appearance", "/settings/appearance", "light", WIDE),
    ("devices", "/settings/devices", "light", PHONE),
    ("inbox", "/inbox", "dark", PHONE),
    ("health", "/health", "light", WIDE),
    ("users", "/deployment/users", "dark", WIDE),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--out", type=Path, default=cache / "coder/pictures")
    parser.add_argument("--only", default="", help="pages whose address has this in it")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    folder = DOCS if args.docs else args.out
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        for file in (the_ten if args.docs else every_page)(browser, folder, args.only):
            print(file, flush=True)
        browser.close()
    return 0


def the_ten(browser: Browser, folder: Path, only: str) -> Iterator[Path]:
    with open_showcase() as showcase:
        for name, path, theme, size in TEN:
            if only in path:
                address = path.replace("ACTIVE", active_version(showcase)) if "ACTIVE" in path else path
                camera = Camera(browser, showcase.server, showcase.server.token, showcase)
                yield camera.picture(folder / f"{name}.jpg", address, theme, size)


def every_page(browser: Browser, folder: Path, only: str) -> Iterator[Path]:
    """Return the pages of the dashboard's contract with the user of each; another test checks its completeness."""
    visits = [visit for visit in PAGES if only in visit.page]
    with open_empty() as server:
        before = [visit for visit in visits if visit.who == "first"]
        yield from pictures(browser, server, folder, before, None)
        after = [visit for visit in visits if visit.who != "first"]
        yield from pictures(browser, server, folder, after, names(furnish(server)) if after else None)


def pictures(
    browser: Browser, server: Loopback, folder: Path, visits: list[Visit], called: Names | None
) -> Iterator[Path]:
    cameras: dict[str, Camera] = {}
    for visit in visits:
        if visit.who not in cameras:
            cameras[visit.who] = Camera(browser, server, session(server, visit.who))
        path = called.filled(visit.page) if called else visit.page
        name = re.sub(r"\W+", "-", str(visit)).strip("-")
        for kind, size in (("desktop", WIDE), ("phone", PHONE)):
            for theme in ("light", "dark"):
                yield cameras[visit.who].picture(folder / f"{name}.{kind}.{theme}.jpg", path, theme, size)


@dataclass
class Camera:
    browser: Browser
    server: Loopback
    token: str
    'User who opens the page; "" without a login.'
    docs: Showcase | None = None
    "Whether the picture is for the documentation: of a window, with additions to the pictures' server."

    def picture(self, file: Path, path: str, theme: str, size: dict[str, int]) -> Path:
        options: dict[str, Any] = {"viewport": size, "color_scheme": theme, "reduced_motion": "reduce"}
        context = self.browser.new_context(base_url=self.server.url, **options)
        if self.token:
            context.add_cookies([{"name": "coder_session_token", "value": self.token, "url": self.server.url}])
        page = context.new_page()
        if self.docs:
            as_deployed(page, self.docs)
        page.goto(path)
        settled(page)
        if not self.docs:
            as_tall(page, size)
        page.screenshot(path=file, type="jpeg", quality=QUALITY, full_page=not self.docs)
        context.close()
        return file


def as_tall(page: Page, size: dict[str, int]) -> None:
    """Make the window as tall as the page, so that fixed footers are at its end and lazy parts load. A log's height is
    a share of the window and grows with it."""
    for _ in range(4):
        height = min(int(page.evaluate("document.documentElement.scrollHeight")), TALLEST)
        if height <= (page.viewport_size or size)["height"]:
            return
        page.set_viewport_size({"width": size["width"], "height": height})
        settled(page)


def as_deployed(page: Page, showcase: Showcase) -> None:
    """Prepare the deployment for the documentation: with an access URL and built programs, which the pictures' server
    lacks."""

    def programs(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=[{**item, "available": True, "remedy": ""} for item in answer.json()])

    def command(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace(showcase.url, ADDRESS))

    page.route("**/api/v2/programs", programs)
    page.route("**/external-agent/*/credentials", command)


def active_version(showcase: Showcase) -> str:
    template = showcase.api("GET", "/organizations/default/templates/local-process")
    return str(showcase.api("GET", f"/templateversions/{template['active_version_id']}")["name"])


def settled(page: Page) -> None:
    """Wait until the page has its heading, requests have ended, and fonts and pictures are loaded."""
    page.locator("h1, [data-testid=terminal]").first.wait_for()
    expect(page.locator("[aria-label^=Loading]")).to_have_count(0)
    page.evaluate("document.fonts.ready.then(() => undefined)")
    page.wait_for_timeout(400)  # requests after the page itself: the bell, charts, the editor


if __name__ == "__main__":
    raise SystemExit(main())
