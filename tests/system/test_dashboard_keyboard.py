"""Where the keyboard's focus is on pages that open, and after dialogs whose button disappears; without a pointer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.dashboard.browser import WIDE, missing, settled, visitor
from tests.kit.dashboard.keyboard import press_tab_to
from tests.kit.dashboard.pages import Showcase, session

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]
CREATION = (
    ("/settings/tokens/new", "Name"),
    ("/deployment/users/create", "Username"),
    ("/organizations/coder/groups/create", "Name"),
    ("/organizations/coder/roles/create", "Name"),
    ("/organizations/new", "Slug"),
    ("/deployment/oauth2-provider/apps/add", "Application name"),
    ("/templates/everything/workspace", "Workspace name"),
)


@pytest.fixture(scope="module")
def page(browser: Browser, shown: Showcase) -> Iterator[Page]:
    context = visitor(browser, shown.url, session(shown.server, "ana"), viewport=WIDE)
    yield context.new_page()
    context.close()


def test_creation_pages_focus_first_field(page: Page) -> None:
    for path, label in CREATION:
        page.goto(path)
        expect(page.get_by_label(label, exact=True)).to_be_focused()


def test_public_page_gets_focus(page: Page) -> None:
    page.goto("/workspaces")
    settled(page)
    press_tab_to(page, page.get_by_role("link", name="Install the CLI"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Install")).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    press_tab_to(page, page.get_by_role("link", name="Coder, home"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/workspaces"))
    expect(page.locator("main")).to_be_focused()


def test_ended_session_leaves_focus_in_page(page: Page, shown: Showcase) -> None:
    session(shown.server, "ana")
    page.goto("/settings/security")
    settled(page)
    end = page.get_by_role("button", name=re.compile("^End the session of")).first
    press_tab_to(page, end)
    page.keyboard.press("Enter")
    press_tab_to(page, page.get_by_role("dialog").get_by_role("button", name="End session", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("main *:focus")).to_have_count(1)


def test_down_arrow_leads_from_search_to_rows(page: Page) -> None:
    page.goto("/templates")
    settled(page)
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    expect(page.locator("main tbody tr").first.get_by_role("link").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("main tbody tr").nth(1).get_by_role("link").first).to_be_focused()
