"""Follow every link of the dashboard as one user: each has to lead to a page without an error.

Also reads the dashboard's own table of routes from its source, and finds the route of an address.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page

from tests.kit.dashboard.browser import is_error, settled
from tests.kit.server.server_process import ROOT

AT_MOST = {"/:owner/:workspace": 2}
"""Number of pages to visit per route, if one is not enough because their states differ."""
_STILL = (
    "api/",
    "bin/",
    "icon/",
    "emojis/",
    "assets/",
    "install.",
    "swagger",
    "open-in-coder.svg",
    "favicon.svg",
    "external-auth/",  # redirects to a provider
)
_APP = re.compile(r"/@[^/]+/[^/]+/apps/")
# Within the same document, as the router does on a click.
_GO = """address => {
    document.querySelectorAll("[data-walk]").forEach(one => delete one.dataset.walk);
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate", { state: null }));
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
_LINKS = """() => [...document.querySelectorAll("a[href]")].filter(one => one.origin === location.origin)
    .map(one => one.pathname + one.search)"""
# It appears a moment before it accepts keys: the key that closes it must not come too early.
_OPEN = """() => document.querySelector("[role=menu][data-state=open], [role=dialog][data-state=open]")
    ?.contains(document.activeElement)"""
# A closed popup returns the focus to its button some time later; a popup opened before that would lose the focus and
# close. So the next one must not be opened earlier.
_CLOSED = """button => document.querySelector("[role=menu][data-state], [role=dialog][data-state]") === null
    && (document.activeElement === button || !button.isConnected)"""
# Buttons that open a popup: a number to find it again, its name, and whether it belongs to the frame of every page.
_NAMED_POPUPS = """() => [...document.querySelectorAll("button[aria-haspopup=menu], button[aria-haspopup=dialog]")]
    .filter(one => one.checkVisibility() && !one.disabled)
    .map((one, number) => {
        one.dataset.walk = number;
        return [number, one.getAttribute("aria-label") ?? one.innerText, one.closest("main") === null];
    })"""
_ERRORS = ("Page not found", "This page has crashed", "A new version is available")


@dataclass
class Walk:
    page: Page
    table: tuple[Route, ...]
    faults: list[str] = field(default_factory=list)
    reached: dict[str, str] = field(default_factory=dict)
    "Route -> the address it was reached by."
    visited: Counter[str] = field(default_factory=Counter)
    _from: dict[str, str] = field(default_factory=dict)
    _opened: set[tuple[str, str]] = field(default_factory=set)

    def run(self, start: str = "/") -> None:
        page = self.page
        page.on("console", lambda message: self._fault(message.text) if is_error(message) else None)
        page.on("pageerror", lambda error: self._fault(str(error)))
        page.goto(start)
        settled(page)
        self._arrived(start)
        waiting = deque(self._links(start))
        while waiting:
            address = waiting.popleft()
            if self._is_new(address):
                waiting.extend(self._visit(address))

    def _is_new(self, address: str) -> bool:
        route = self._route(address)
        # A template's pages have two addresses each.
        key = route.pattern.replace("/:organization/:template", "/:template") if route else shape(address)
        limit = AT_MOST.get(key, 1)
        if self.visited[address] or self.visited[key] >= limit:
            return False
        self.visited.update({address: 1, key: 1} if address != key else {key: 1})
        return True

    def _route(self, address: str) -> Route | None:
        """Return the route at an address; None for a file, even if the router would match it."""
        return None if address.lstrip("/").startswith(_STILL) else route_of(self.table, address)

    def _visit(self, address: str) -> list[str]:
        route = self._route(address)
        if route is None:
            self._fetch(address)
            return []
        self.reached.setdefault(route.pattern, address)
        self.page.evaluate(_GO, address)
        settled(self.page)
        self._arrived(address)
        return self._links(route.pattern)

    def _arrived(self, address: str) -> None:
        landed = route_of(self.table, self.page.url)
        if landed:
            self.reached.setdefault(landed.pattern, address)
        heading = self.page.locator("h1").first.inner_text() if self.page.locator("h1").count() else ""
        if heading in _ERRORS:
            self._fault(heading)
        for alert in self.page.get_by_role("alert").all_inner_texts():
            self._fault(f"an error is shown: {alert}")
        if "/login" in self.page.url:
            self._fault("signed out")

    def _links(self, location: str) -> list[str]:
        """Return the links on the page and in its menus, each menu once per route."""
        links = self._seen()
        for number, name, framed in self.page.evaluate(_NAMED_POPUPS):
            key = ("" if framed else location, name.split(" of ")[0])
            if key in self._opened:
                continue
            self._opened.add(key)
            # By keyboard, so that an element over the button does not matter.
            button = self.page.locator(f"[data-walk='{number}']").element_handle()
            button.press("Enter")
            self.page.wait_for_function(_OPEN)
            settled(self.page)
            links += self._seen()
            self.page.keyboard.press("Escape")
            self.page.wait_for_function(_CLOSED, arg=button)
        return links

    def _seen(self) -> list[str]:
        links: list[str] = self.page.evaluate(_LINKS)
        for address in links:
            self._from.setdefault(address, self.page.url)
        return links

    def _fetch(self, address: str) -> None:
        """Request an address that is no page: a download, a file, the API. Any other address is a broken link."""
        if address.startswith("/bin/") or _APP.match(address):
            return  # programs of a release, which a checkout lacks; applications that may not be running
        if not address.lstrip("/").startswith(_STILL):
            self._fault(f"no page at {address}", at=address)
            return
        answer = self.page.request.get(address)
        if answer.status >= 400:
            self._fault(f"answers {answer.status}", at=address)

    def _fault(self, problem: str, at: str = "") -> None:
        at = at or self.page.url
        path = at.split("/", 3)[-1] if "://" in at else at
        self.faults.append(
            f"/{path.lstrip('/')}: {problem} (linked from {self._from.get('/' + path.lstrip('/'), '-')})"
        )


DASHBOARD = ROOT / "coder/dashboard"
_READER = Path(__file__).with_name("dashboard_routes.mjs")
_STATIC, _DYNAMIC = 10, 3  # the router's ranking: a static segment before a parameter


@dataclass(frozen=True)
class Route:
    pattern: str
    redirect: str | None
    "Target of the redirect, if the route is only a redirect."

    @property
    def parts(self) -> list[str]:
        return [part for part in self.pattern.split("/") if part]

    def matches(self, path: str) -> bool:
        there = [part for part in path.split("/") if part]
        if self.pattern == "*" or len(there) != len(self.parts):
            return False
        return all(own.startswith(":") or own == part for own, part in zip(self.parts, there, strict=True))

    @property
    def rank(self) -> int:
        return sum(_DYNAMIC if part.startswith(":") else _STATIC for part in self.parts)


def routes() -> tuple[Route, ...]:
    """Return all routes of `src/app/routes`."""
    command = ["node", str(_READER), str(DASHBOARD)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return tuple(Route(**fields) for fields in json.loads(done.stdout))


def route_of(table: tuple[Route, ...], address: str) -> Route | None:
    """Return the route of an address; None if it is no page (a file, the API, an app of a workspace)."""
    path = urlsplit(address).path
    matches = [route for route in table if route.matches(path)]
    return max(matches, key=lambda route: route.rank, default=None)


def shape(address: str) -> str:
    """Return an address without ids and names, to group links that are no pages."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "…", urlsplit(address).path)
