"""Every page of the dashboard is linked from the start page, directly or indirectly, and every link works.

Four users follow the links: the owner, an organization's administrator, an auditor, a member. The routes come from the
dashboard's own source, so that a page without a link fails here.
"""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import Browser

from tests.kit.dashboard.browser import missing, visitor
from tests.kit.dashboard.link_crawler import DASHBOARD, Route, Walk, routes
from tests.kit.dashboard.pages import Showcase, session

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH"),
    pytest.mark.skipif(not (DASHBOARD / "node_modules").is_dir(), reason="run scripts/dashboard"),
]

GROUPS = "an address of the original; /deployment/groups leads to the groups of the default organization"
ONLY_BY_ADDRESS = {
    "/setup": "before there is an account",
    "/login": "for signed-out visitors",
    "/login/device": "GitHub's device login, on the sign-in page",
    "/reset-password": "on the sign-in page, where mail is set up",
    "/reset-password/change": "in a mail",
    "/cli-auth": "opened by `coder login`",
    "/external-auth/:provider": "opened by a form's button in a new window, if a provider is configured",
    "/external-auth/:provider/callback": "where the provider sends people back to",
    "/settings": "leads on to /settings/account",
    "/users/create": "an address of former versions",
    "/groups": "an address of former versions",
    "/deployment/groups/create": GROUPS,
    "/deployment/groups/:group": GROUPS,
    "/deployment/groups/:group/settings": GROUPS,
    "*": "everything else",
}


@pytest.fixture(scope="module")
def walks() -> dict[str, Walk]:
    """Walks by user, filled by the tests."""
    return {}


def walked(browser: Browser, shown: Showcase, name: str, table: tuple[Route, ...]) -> Walk:
    context = visitor(browser, shown.url, session(shown.server, name), reduced_motion="reduce")
    walk = Walk(context.new_page(), table)
    walk.run()
    context.close()
    return walk


@pytest.mark.parametrize("name", ["ana", "ben", "chloe", "dmitri"])
def test_links_lead_to_working_pages(browser: Browser, shown: Showcase, walks: dict[str, Walk], name: str) -> None:
    walks[name] = walked(browser, shown, name, routes())
    # The showcase's task runs no program that could report a conversation.
    found = [fault for fault in walks[name].faults if not fault.startswith("/tasks/ana/")]
    assert found == [], "\n".join(found)


def test_every_page_is_linked(walks: dict[str, Walk]) -> None:
    assert walks, "run the whole file: this test checks the earlier walks"
    reached = {pattern for walk in walks.values() for pattern in walk.reached}
    table = routes()
    missed = [route.pattern for route in table if route.pattern not in reached and not is_twin_reached(route, reached)]
    assert sorted(set(missed) - set(ONLY_BY_ADDRESS)) == []
    known = {route.pattern for route in table}
    assert sorted(set(ONLY_BY_ADDRESS) - known) == [], "reasons for routes that are gone"
    assert sorted(set(ONLY_BY_ADDRESS) & reached) == [], "reached after all: take the reason away"


def is_twin_reached(route: Route, reached: set[str]) -> bool:
    """A template's pages have two addresses, with and without its organization; links use the one that is enough."""
    return route.pattern.replace("/:organization/:template", "/:template") in reached or (
        route.pattern.replace("/:template", "/:organization/:template") in reached
    )
