"""Makes the pictures of `scripts/screenshots`."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.kit.browser import CHROMIUM, FLAGS, PHONE, WIDE, listed_pages
from tests.kit.loopback import ROOT
from tests.kit.showcase import BUILT, MACHINES, Showcase, open_showcase

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


def every_page() -> list[str]:
    own = f"/@ana/{MACHINES[0]}"
    of_workspace = [own, f"/@ana/{BUILT[0]}", f"/@ana/{BUILT[1]}", f"/@ana/{MACHINES[1]}", f"{own}/builds/1"]
    settings = [f"{own}/settings{part}" for part in ("", "/parameters", "/schedule", "/sharing")]
    tabs = ("docs", "files", "resources", "versions", "embed", "insights", "prebuilds", "settings", "workspace")
    of_template = [f"{TEMPLATE}/{tab}" for tab in tabs]
    return ["/workspaces", "/templates", "/templates/new", *of_workspace, *settings, *of_template, *listed_pages()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--out", type=Path, default=cache / "coder/pictures")
    parser.add_argument("--only", default="", help="pages whose address has this in it")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    with open_showcase() as shown, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        if args.docs:
            wanted = iter(TEN)
        else:
            wanted = all_of([path for path in every_page() if args.only in path])
        folder = DOCS if args.docs else args.out
        folder.mkdir(parents=True, exist_ok=True)
        for name, path, theme, size in wanted:
            picture(browser, shown, folder / f"{name}.jpg", path, theme, size, whole=not args.docs)
            print(folder / f"{name}.jpg", flush=True)
        browser.close()
    return 0


def all_of(paths: list[str]) -> Iterator[tuple[str, str, str, dict[str, int]]]:
    for path in paths:
        name = re.sub(r"\W+", "-", path).strip("-") or "start"
        for kind, size in (("desktop", WIDE), ("phone", PHONE)):
            for theme in ("light", "dark"):
                yield f"{name}.{kind}.{theme}", path, theme, size


def picture(
    browser: Browser, shown: Showcase, file: Path, path: str, theme: str, size: dict[str, int], *, whole: bool
) -> None:
    context = browser.new_context(base_url=shown.url, viewport=size, color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    context.add_cookies([{"name": "coder_session_token", "value": shown.server.token, "url": shown.url}])
    page = context.new_page()
    if not whole:
        as_deployed(page, shown)
    if "ACTIVE" in path:
        path = path.replace("ACTIVE", active_version(shown))
    page.goto(path)
    settled(page)
    if whole:
        as_tall(page, size)
    page.screenshot(path=file, type="jpeg", quality=QUALITY, full_page=whole)
    context.close()


def as_tall(page: Page, size: dict[str, int]) -> None:
    """The window becomes as tall as the page: what keeps to its foot stands there, what is loaded in sight is. A log is
    as tall as a part of the window, and grows with it."""
    for _ in range(4):
        height = min(int(page.evaluate("document.documentElement.scrollHeight")), TALLEST)
        if height <= (page.viewport_size or size)["height"]:
            return
        page.set_viewport_size({"width": size["width"], "height": height})
        settled(page)


def as_deployed(page: Page, shown: Showcase) -> None:
    """For the documentation: with what the server of the pictures lacks, an address of its own and built programs."""

    def programs(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=[{**one, "available": True, "remedy": ""} for one in answer.json()])

    def command(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace(shown.url, ADDRESS))

    page.route("**/api/v2/programs", programs)
    page.route("**/external-agent/*/credentials", command)


def active_version(shown: Showcase) -> str:
    template = shown.api("GET", "/organizations/default/templates/local-process")
    return str(shown.api("GET", f"/templateversions/{template['active_version_id']}")["name"])


def settled(page: Page) -> None:
    """The page has its heading, nothing loads any more, letters and pictures are there."""
    page.get_by_role("heading", level=1).first.wait_for()
    expect(page.locator("[aria-label^=Loading]")).to_have_count(0)
    page.evaluate("document.fonts.ready.then(() => undefined)")
    page.wait_for_timeout(400)  # what is asked for after the page itself: the bell, charts, the editor


if __name__ == "__main__":
    raise SystemExit(main())
