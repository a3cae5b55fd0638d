"""What the dashboard's pages are called and what stands on them: the names by which browser suites and other programs
find it. `tests/data/dashboard_pages/contract.tsv` says which; each page is visited as the person it is for.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as Missed

from tests.kit.browser import PAGE_LISTS, PHONE, SOON, TOO_WIDE, WIDE, excess, launched, missing, settled, visitor
from tests.kit.dashboard_routes import DASHBOARD, route_of, routes
from tests.kit.loopback import Loopback, open_loopback
from tests.kit.showcase import PASSWORD, Showcase, fill

TABLE = PAGE_LISTS / "contract.tsv"
MORE = PAGE_LISTS / "everything.tf"
MISSED_MS = 3_000
"""For what else is looked for on a page where something is missing already."""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@dataclass(frozen=True)
class Visit:
    """One page as one person sees it, after something was opened on it."""

    who: str
    page: str
    opened: str

    def __str__(self) -> str:
        return f"{self.who} {self.page}" + ("" if self.opened == "-" else f" {self.opened}")


def contract() -> dict[Visit, list[tuple[str, str]]]:
    """What stands where: (kind, name) of each visit."""
    found: dict[Visit, list[tuple[str, str]]] = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            who, page, opened, kind, name = line.split("\t")
            found.setdefault(Visit(who, page, opened), []).append((kind, name))
    return found


CONTRACT = contract()


def of(*who: str) -> list[Visit]:
    return [visit for visit in CONTRACT if visit.who in who]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:  # the browser first: it may skip everything
    usual = ("--wireguard-address", "127.0.0.1:0", "--agent-stats-refresh-interval", "5s", "--experiments=oauth2")
    with open_loopback(*usual, before=with_provider) as found:
        yield found


def with_provider(server: Loopback) -> None:
    """An account elsewhere that people could link: nothing answers there, and nothing is asked before somebody does.

    Nor does anything take the mail; that some is set up is enough for the form of those who forgot their password.
    """
    link, forge = "CODER_EXTERNAL_AUTH_0_", "https://forge.example.com"
    server.variables = {
        "CODER_EMAIL_SMARTHOST": "127.0.0.1:9",
        f"{link}ID": "forge", f"{link}TYPE": "custom", f"{link}DISPLAY_NAME": "Forge", f"{link}CLIENT_ID": "coder",
        f"{link}CLIENT_SECRET": "a secret of ours", f"{link}AUTH_URL": f"{forge}/auth",
        f"{link}TOKEN_URL": f"{forge}/token", f"{link}VALIDATE_URL": f"{forge}/me",
    }  # fmt: skip


@pytest.fixture(scope="module")
def shown(server: Loopback) -> Showcase:
    """Lived in, with one workspace of a template that has everything."""
    made = fill(server)
    made.api("PUT", "/users/chloe/roles", {"roles": ["auditor"]})
    template = server.folder / "everything"
    shutil.copytree(server.folder / "local-process", template)
    (template / "everything.tf").write_text(MORE.read_text())
    given = (f"coder_binary={server.folder / 'coder'}", f"data_dir={server.folder / 'workspaces'}")
    push = (
        "templates",
        "push",
        "everything",
        "-d",
        str(template),
        "-y",
        "--variable",
        given[0],
        "--variable",
        given[1],
    )
    server.coder(*push)
    server.coder("create", "whole", "--template=everything", "-y", "--use-parameter-defaults")
    server.coder(*push)  # a second version: there is something to update to, and to promote
    made.api("POST", "/oauth2-provider/apps", {"name": "wiki", "callback_url": "https://wiki.example.com/callback"})
    made.api("POST", "/organizations/coder/provisionerkeys", {"name": "builders", "tags": {"os": "linux"}})
    server.coder("ssh", "whole", "--", "true")
    task = {"name": "mend-it", "display_name": "Mend it", "input": "Mend the build."}
    made.api("POST", "/tasks/me", {"template_version_id": active(made)["id"], **task})
    server.coder("ssh", workspace_of(made, task["name"]), "--", "true")
    return made


def active(made: Showcase) -> dict[str, Any]:
    """The version workspaces are made with."""
    version = made.api("GET", "/organizations/default/templates/everything")["active_version_id"]
    found: dict[str, Any] = made.api("GET", f"/templateversions/{version}")
    return found


def workspace_of(made: Showcase, task: str) -> str:
    return str(made.api("GET", f"/tasks/me/{task}")["workspace_name"])


@pytest.fixture(scope="module")
def people(browser: Browser, server: Loopback) -> Iterator[dict[str, Page]]:
    """A tab for each person, opened when somebody first needs it."""
    tabs: dict[str, Page] = {}
    yield tabs
    for tab in tabs.values():
        tab.context.close()


def tab_of(who: str, browser: Browser, server: Loopback, people: dict[str, Page]) -> Page:
    if who not in people:
        token = ""
        if who not in {"nobody", "first"}:
            login: dict[str, Any] = {"email": f"{who}@example.com", "password": PASSWORD}
            token = server.request("POST", "/api/v2/users/login", login)["session_token"]
        people[who] = visitor(browser, server.url, token, reduced_motion="reduce").new_page()
    return people[who]


def element(page: Page, kind: str, name: str) -> Locator:
    match kind:
        case "testid":
            return page.get_by_test_id(name)
        case "label":
            return page.get_by_label(name)
        case "placeholder":
            return page.get_by_placeholder(name)
        case "text":
            return page.get_by_text(name)
        case _:
            return page.get_by_role(kind, name=name)  # type: ignore[arg-type]


def misses(page: Page, address: str, opened: str, wanted: list[tuple[str, str]]) -> list[str]:
    """What is not there, of a page that is."""
    page.goto(address)
    if opened != "-":
        settled(page)  # what opens beside something that is replaced closes again
    for step in opened.split(" > ") if opened != "-" else ():
        kind, _, name = step.partition(":")
        element(page, kind, name).first.click()
    found, patience = [], SOON
    for kind, name in wanted:
        try:
            if kind == "title":
                expect(page).to_have_title(name, timeout=patience)
            else:
                element(page, kind, name).first.wait_for(state="attached", timeout=patience)
        except (AssertionError, Missed):
            found.append(f"{kind} {name!r}" + (f", it is {page.title()!r}" if kind == "title" else ""))
            patience = MISSED_MS
    return found


@pytest.mark.parametrize("visit", of("first"), ids=str)
def test_before_there_is_an_account(browser: Browser, server: Loopback, people: dict[str, Page], visit: Visit) -> None:
    page = tab_of("first", browser, server, people)
    assert misses(page, visit.page, visit.opened, CONTRACT[visit]) == []


@pytest.mark.parametrize("visit", of("nobody", "ana", "chloe", "dmitri"), ids=str)
def test_what_stands_on_a_page(browser: Browser, shown: Showcase, people: dict[str, Page], visit: Visit) -> None:
    page = tab_of(visit.who, browser, shown.server, people)
    said = {"{version}": active(shown)["name"], "{app}": shown.api("GET", "/oauth2-provider/apps")[0]["id"]}
    filled = functools.partial(re.sub, r"\{\w+\}", lambda found: said[found[0]])
    wanted = [(kind, filled(text)) for kind, text in CONTRACT[visit]]
    assert misses(page, filled(visit.page), visit.opened, wanted) == []


def test_every_page_has_a_row() -> None:
    table = routes()
    met = {route_of(table, visit.page) for visit in CONTRACT}
    named = {route.pattern for route in met if route is not None}
    # A template's pages, and groups of the default organization, have two addresses each.
    named |= {pattern.replace("/:template", "/:organization/:template", 1) for pattern in named}
    open_ = {route.pattern for route in table if route.redirect is None} - named
    assert open_ == NO_ROW.keys()


PHONE_PAGES = (
    "/workspaces?filter=", "/templates", "/settings/tokens", "/settings/secrets", "/deployment/users",
    "/deployment/workspace-proxies", "/deployment/oauth2-provider/apps", "/deployment/groups",
    "/organizations/coder", "/organizations/coder/groups/backend", "/organizations/coder/provisioners",
    "/organizations/coder/provisioner-keys", "/health/workspace-proxy", "/health/provisioner-daemons", "/connectionlog",
    "/deployment/external-auth", "/tasks",
)  # fmt: skip
NO_ROW = {
    "/templates/:template": "leads on to its docs",
    "/templates/:organization/:template": "leads on to its docs",
    "/deployment": "leads on to the first page of it that the person may see",
    "/external-auth/:provider/callback": "leads back to where the person was",
    "*": "every address that is none; /no-such-page has a row",
}
NOT_VISITED = {
    "Things": "of the page that shows the parts of the design",
}
# What each table says: names of its columns, and the words of each row (a second line belongs to the row before it).
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
    """Those the tests have come by."""
    return set()


@pytest.mark.parametrize("path", PHONE_PAGES)
def test_a_phone_loses_nothing_of_a_table(
    browser: Browser, shown: Showcase, people: dict[str, Page], tables: set[str], path: str
) -> None:
    page = tab_of("ana", browser, shown.server, people)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.goto(path)
    page.locator("main table[aria-label] tbody tr").first.wait_for()
    settled(page)
    page.route("**/api/**", lambda _: None)  # no news from now on: both looks are at the same
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
        assert [sorted(map(_steady, row)) for row in before["rows"]] == [
            sorted(map(_steady, row)) for row in after["rows"]
        ]


def test_every_table_was_looked_at(tables: set[str]) -> None:
    assert tables, "run the whole file: the tests before are what this looks at"
    sources = [path.read_text() for path in (DASHBOARD / "src/pages").rglob("*.tsx")]
    written = {label for text in sources for label in re.findall(r'<DataTable label="([^"]+)"', text)}
    assert sorted(written - tables - set(NOT_VISITED)) == []
    assert sorted(set(NOT_VISITED) - written) == [], "reasons for tables that are gone"


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
    "/workspaces?filter=", "/@ana/whole", "/templates", "/templates/everything/docs", "/deployment/users",
    "/organizations/coder", "/organizations/coder/groups", "/organizations/coder/groups/backend", "/settings/secrets",
    "/settings/tokens", "/inbox", "/audit",
)  # fmt: skip


def test_hostile_and_endless_words_harm_no_page(browser: Browser, shown: Showcase, people: dict[str, Page]) -> None:
    """The last test of the file: what it writes stands everywhere."""
    bad, endless = '<img src=x onerror="window.harmed=1">', "W" * 10_000

    def words(most: int) -> str:
        return (bad + "\u202e" + endless)[:most]

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
    page = tab_of("ana", browser, shown.server, people)
    found = []
    for path in HOSTILE_PAGES:
        page.goto(path)
        settled(page)
        if path == "/audit":
            for entry in page.get_by_role("button", name=re.compile("^Details of")).all()[:6]:
                entry.click()
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            over = excess(page, TOO_WIDE)
            found += [f"{path}: {over} px wider than {size}"] if over > 0 else []
        found += [f"{path}: {one}" for one in page.evaluate(HARMED)]
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert found == []
    assert "<img src=x" in page.inner_text("main"), "the words are not there at all"


def _steady(text: str) -> str:
    """Without what passes meanwhile."""
    return re.sub(r"just now|(?:in )?\d+ (?:year|month|day|hour|minute)s?(?: ago)?|\d+ ms|Measuring…", "…", text)
