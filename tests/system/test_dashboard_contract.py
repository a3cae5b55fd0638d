"""Titles and elements of the dashboard's pages: the names that browser suites and other programs look for.

`tests/data/dashboard_pages/contract.tsv` lists them. Each page is visited as the user it is for, and has to be
accessible: in both themes, on a phone, and without an error in the browser's console.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from playwright.sync_api import TimeoutError as Missed

from tests.kit.dashboard.browser import (
    AXE,
    PHONE,
    SOON,
    TOO_WIDE,
    WIDE,
    element,
    excess,
    faults,
    is_error,
    missing,
    settled,
    visitor,
)
from tests.kit.dashboard.keyboard import walk
from tests.kit.dashboard.link_crawler import DASHBOARD, route_of, routes
from tests.kit.dashboard.pages import CONTRACT, NO_ACCOUNT, PAGES, Names, Showcase, Visit, names, session
from tests.kit.server.server_process import Loopback

MISSED_MS = 3_000
"""Timeout for the remaining elements of a page on which one is already missing."""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: scripts/dashboard --check"),
]


def visits(*, before: bool) -> list[Visit]:
    """Return the visits before the first account exists, or those after."""
    return [visit for visit in CONTRACT if (visit.who == "first") is before]


@dataclass
class Tab:
    """A user's browser tab. Errors of its pages are recorded."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.errors.append(_with_path(message)) if is_error(message) else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))


def _with_path(message: ConsoleMessage) -> str:
    return f"{message.text} {urlsplit(message.location['url']).path}"


@dataclass
class Tabs:
    """One tab per user, opened on first use."""

    browser: Browser
    server: Loopback
    opened: dict[str, Tab] = field(default_factory=dict)

    def of(self, who: str) -> Tab:
        if who not in self.opened:
            token = session(self.server, who)
            context = visitor(self.browser, self.server.url, token, reduced_motion="reduce", viewport=WIDE)
            self.opened[who] = Tab(context.new_page())
        tab = self.opened[who]
        tab.page.goto("about:blank")  # pending errors of the previous page must be attributed to it
        tab.errors.clear()
        return tab


@pytest.fixture(scope="module")
def tabs(browser: Browser, empty: Loopback) -> Iterator[Tabs]:  # the browser comes first because it may skip the test
    opened = Tabs(browser, empty)
    yield opened
    for tab in opened.opened.values():
        tab.page.context.close()


@pytest.fixture(scope="module")
def page_names(shown: Showcase) -> Names:
    return names(shown)


def missing_elements(page: Page, visit: Visit, address: str, expected: list[tuple[str, str]]) -> list[str]:
    """Return the expected elements that a page lacks."""
    page.goto(address)
    if visit.steps:
        settled(page)  # a popup closes when its trigger is replaced
    for kind, name in visit.steps:
        element(page, kind, name).first.click()
    missed, patience = [], SOON
    for kind, name in expected:
        try:
            if kind == "title":
                expect(page).to_have_title(name, timeout=patience)
            else:
                element(page, kind, name).first.wait_for(state="attached", timeout=patience)
        except (AssertionError, Missed):
            missed.append(f"{kind} {name!r}" + (f", it is {page.title()!r}" if kind == "title" else ""))
            patience = MISSED_MS
    return missed


def problems_of(tab: Tab, visit: Visit) -> str:
    """Return the accessibility problems and console errors of the current page, one per line."""
    settled(tab.page)
    expected = SIGNED_OUT if visit.who in NO_ACCOUNT else EXPECTED.get(visit.page, "^$")
    errors = [text for text in tab.errors if not re.search(expected, text)]
    heading = tab.page.locator("h1").count() > 0 or visit.page.startswith(WITHOUT_HEADING)
    return "\n".join([*errors, *["no heading"][: not heading and not visit.steps], *faults(tab.page)])


@pytest.mark.parametrize("visit", visits(before=True), ids=str)
def test_contract_before_first_account(tabs: Tabs, visit: Visit) -> None:
    tab = tabs.of(visit.who)
    assert missing_elements(tab.page, visit, visit.page, CONTRACT[visit]) == []
    assert problems_of(tab, visit) == ""


@pytest.mark.parametrize("visit", visits(before=False), ids=str)
def test_contract_of_each_page(tabs: Tabs, page_names: Names, visit: Visit) -> None:
    tab = tabs.of(visit.who)
    expected = [(kind, page_names.filled(text)) for kind, text in CONTRACT[visit]]
    assert missing_elements(tab.page, visit, page_names.filled(visit.page), expected) == []
    assert problems_of(tab, visit) == ""


def test_contract_covers_every_page() -> None:
    table = routes()
    met = {route_of(table, visit.page) for visit in CONTRACT}
    named = {route.pattern for route in met if route is not None}
    # A template's pages, and the groups of the default organization, have two addresses each.
    named |= {pattern.replace("/:template", "/:organization/:template", 1) for pattern in named}
    open_ = {route.pattern for route in table if route.redirect is None} - named
    assert open_ == NO_ROW.keys()


SIGNED_OUT = r"status of 401 .*/api/v2/|status of 404 .*/api/v2/users/first"
"""Errors that browsers log for the requests by which a page finds out whether the visitor is signed in."""
EXPECTED = {
    "/templates/everything/workspace?mode=auto&match=nonsense:yes": "status of 400 .*/api/v2/workspaces",
    "/tasks/ana/mend-it": "status of 502 .*/logs",
}
"""Pages that show an error of their address, or that the task's program does not respond."""
WITHOUT_HEADING = ("/@ana/whole.main/terminal",)
PHONE_PAGES = (
    "/workspaces?filter=",
    "/workspaces/fleet",
    "/workspaces/idle",
    "/templates",
    "/templates/everything/builds",
    "/settings/tokens",
    "/settings/secrets",
    "/deployment/users",
    "/deployment/workspace-proxies",
    "/deployment/oauth2-provider/apps",
    "/deployment/groups",
    "/organizations/coder",
    "/organizations/coder/groups/backend",
    "/organizations/coder/provisioners",
    "/organizations/coder/provisioner-keys",
    "/health/workspace-proxy",
    "/health/provisioner-daemons",
    "/connectionlog",
    "/deployment/external-auth",
    "/tasks",
)
NO_ROW = {
    "/templates/:template": "redirects to its docs",
    "/templates/:organization/:template": "redirects to its docs",
    "/deployment": "redirects to its first page that the user may see",
    "/external-auth/:provider/callback": "redirects to the previous page",
    "*": "unknown addresses; /no-such-page has a row",
}
NOT_VISITED = {
    "Things": "on the page that shows the UI components",
}
# The content of each table: column names, and the cells of each row (a second line belongs to the row before it).
_TABLES = """() => [...document.querySelectorAll("main table[aria-label]")].map(table => ({
    label: table.getAttribute("aria-label"),
    over: table.parentElement.scrollWidth - table.parentElement.clientWidth,
    names: [...table.querySelectorAll("th, dt")].map(one => one.textContent.trim()).filter(Boolean),
    rows: [...table.querySelectorAll("tbody tr")].reduce((rows, tr) => {
        const second = tr.querySelector(":scope > td[colspan] > dl") !== null;
        const values = [...tr.querySelectorAll(second ? "dd" : ":scope > td")].map(one => one.textContent.trim());
        second ? rows.at(-1).push(...values) : rows.push(values);
        return rows;
    }, []),
}))"""


@pytest.fixture(scope="module")
def tables() -> set[str]:
    """Labels of the tables that the tests have checked."""
    return set()


@pytest.mark.parametrize("path", PHONE_PAGES)
def test_phone_tables_lose_no_content(tabs: Tabs, shown: Showcase, tables: set[str], path: str) -> None:
    page = tabs.of("ana").page
    page.goto(path)
    page.locator("main table[aria-label] tbody tr").first.wait_for()
    settled(page)
    page.route("**/api/**", lambda _: None)  # no updates from now on, so that both readings see the same data
    wide = page.evaluate(_TABLES)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    excess(page, f"() => Math.max(0, ...({_TABLES})().map(one => one.over))")
    narrow = page.evaluate(_TABLES)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.unroute("**/api/**")
    assert [one["label"] for one in narrow] == [one["label"] for one in wide] != []
    tables.update(one["label"] for one in narrow)
    assert [one["label"] for one in narrow if one["over"] > 0] == [], "columns beyond the edge"
    for before, after in zip(wide, narrow, strict=True):
        assert set(before["names"]) == set(after["names"])
        assert [sorted(map(_without_times, row)) for row in before["rows"]] == [
            sorted(map(_without_times, row)) for row in after["rows"]
        ]


def test_phone_check_covers_every_table(tables: set[str]) -> None:
    assert tables, "run the whole file: this test checks the earlier ones"
    sources = [path.read_text() for path in (DASHBOARD / "src/pages").rglob("*.tsx")]
    written = {label for text in sources for label in re.findall(r'<DataTable\s+label="([^"]+)"', text)}
    assert sorted(written - tables - set(NOT_VISITED)) == []
    assert sorted(set(NOT_VISITED) - written) == [], "reasons for tables that no longer exist"


BY_KEYBOARD = (
    "ana /@ana/whole.main/terminal",
    "ana /templates/everything/versions/{version}/edit",
    "ana /deployment/users",
)
"""Pages of each run: the two whose text fields keep Tab, and one with a side navigation and a table."""


@pytest.mark.parametrize(
    "visit",
    [
        pytest.param(visit, marks=[] if str(visit) in BY_KEYBOARD else [pytest.mark.soak])
        for visit in PAGES
        if visit.who != "first"
    ],
    ids=str,
)
def test_tab_reaches_every_control(tabs: Tabs, page_names: Names, visit: Visit) -> None:
    page = tabs.of(visit.who).page
    page.goto(page_names.filled(visit.page))
    settled(page)
    way = walk(page)
    assert way.stops != ()
    assert way.faults == ()


HARMED = """() => [
    ..."harmed" in window ? ["a script ran"] : [],
    ...[...document.querySelectorAll("#root *, body > div *")].flatMap(one => [...one.attributes]
        .filter(({name, value}) => name.startsWith("on") || /^\\s*(javascript|vbscript|data:text)/i.test(value))
        .map(({name}) => `${one.tagName} ${name}`)),
    ...[...document.querySelectorAll("#root iframe, #root script, #root b")].map(one => one.outerHTML),
    // Letters that turn the direction of what follows turn nothing outside of their own words.
    ...[...document.querySelectorAll("#root *")].filter(one =>
        [...one.childNodes].some(text => text.nodeType === 3 && text.data.includes("\\u202e"))
        && getComputedStyle(one).display === "inline" && getComputedStyle(one).unicodeBidi !== "isolate",
    ).map(one => `turns: ${one.outerHTML}`),
]"""
HOSTILE_PAGES = (
    "/workspaces?filter=",
    "/@ana/whole",
    "/templates",
    "/templates/everything/docs",
    "/deployment/users",
    "/organizations/coder",
    "/organizations/coder/groups",
    "/organizations/coder/groups/backend",
    "/settings/secrets",
    "/settings/tokens",
    "/inbox",
    "/audit",
)


def test_hostile_and_long_texts_are_harmless(tabs: Tabs, shown: Showcase) -> None:
    """Runs last in the file: its texts appear on every page."""
    hostile, endless = '<img src=x onerror="window.harmed=1">', "W" * 10_000

    def words(most: int) -> str:
        return (hostile + "\u202e" + endless)[:most]

    organization = shown.api("GET", "/organizations/coder")["id"]
    template = shown.api("GET", "/organizations/default/templates/everything")["id"]
    group = shown.api("GET", "/organizations/coder/groups/backend")["id"]
    shown.api("PUT", "/users/ben/profile", {"username": "b" * 32, "name": words(128)})
    shown.api("PATCH", f"/templates/{template}", {"display_name": words(64), "description": words(127)})
    shown.api("PATCH", f"/groups/{group}", {"add_users": [], "remove_users": [], "display_name": words(64)})
    shown.api("PATCH", f"/organizations/{organization}", {"display_name": words(64), "description": words(4_000)})
    secret = {"name": "n" * 64, "value": "x", "env_name": "E" * 64, "description": words(500)}
    shown.api("POST", "/users/me/secrets", secret)
    shown.api("POST", "/notifications/custom", {"content": {"title": words(100), "message": words(1_000)}})
    page = tabs.of("ana").page
    found = []
    for path in HOSTILE_PAGES:
        page.goto(path)
        settled(page)
        if path == "/audit":
            for entry in page.get_by_role("button", name=re.compile("^Details of")).all()[:6]:
                entry.click()
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            excess_px = excess(page, TOO_WIDE)
            found += [f"{path}: {excess_px} px wider than {size}"] if excess_px > 0 else []
        found += [f"{path}: {one}" for one in page.evaluate(HARMED)]
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert found == []
    assert "<img src=x" in page.inner_text("main"), "the hostile text is missing"


def _without_times(text: str) -> str:
    """Return the text without values that change over time."""
    return re.sub(r"just now|(?:in )?\d+ (?:year|month|day|hour|minute)s?(?: ago)?|\d+ ms|Measuring…", "…", text)
