"""Flows of scripts written for the original's pages: users, members, groups, organizations, logs, proxies, accounts.

Each step is a role, label, placeholder or test id that such scripts use: docs/guides/dashboard-names.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.dashboard.browser import expect_message, missing, visitor
from tests.kit.dashboard.name_rows import walks
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL = "ana@example.com"
PASSWORD = "Browser-Password-7-very-long"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:
    with open_loopback() as found:
        found.request("POST", "/api/v2/users/first", {"email": EMAIL, "username": "ana", "password": PASSWORD})
        found.sign_in(EMAIL, PASSWORD)
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser, server: Loopback) -> Iterator[Page]:
    context = visitor(browser, server.url, server.token)
    yield context.new_page()
    context.close()


def call(server: Loopback, method: str, path: str, body: object = None) -> Any:
    return server.request(method, f"/api/v2{path}", body, server.token)


@walks("users", "changes")
def test_user_is_created_with_role_and_deleted(page: Page) -> None:
    page.goto("/deployment/users")
    page.get_by_role("link", name="Create user").click()
    expect(page).to_have_title(re.compile("^Create User - "))
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Full name").fill("Bob Builder")
    page.get_by_label("Email").fill("bob@example.com")
    page.get_by_test_id("login-type-input").click()
    page.get_by_role("option", name="Password", exact=False).click()
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name=re.compile("save", re.IGNORECASE)).click()
    expect_message(page, "created successfully")
    expect(page).to_have_title(re.compile("^Users - "))
    row = page.locator("tr", has_text="bob@example.com")
    row.get_by_label("Edit user roles").click()
    page.get_by_role("group").get_by_text("Auditor", exact=True).click()
    page.mouse.click(10, 10)
    expect(row.get_by_text("Auditor")).to_be_visible()
    row.get_by_role("button", name="Open menu").click()
    page.get_by_role("menu").get_by_text("Delete").click()
    dialog = page.get_by_test_id("dialog")
    dialog.get_by_label("Name of the user to delete").fill("bob")
    dialog.get_by_role("button", name="Delete").click()
    expect_message(page, "deleted successfully")


@walks("members and groups", "changes")
def test_organization_member_and_group(page: Page, server: Loopback) -> None:
    organization = call(server, "GET", "/organizations")[0]["id"]
    body = {"username": "eve", "email": "eve@example.com", "password": PASSWORD, "organization_ids": [organization]}
    call(server, "POST", "/users", body)
    page.goto("/organizations/new")
    page.get_by_label("Slug").fill("crew")
    page.get_by_label("Display name").fill("Org crew")
    page.get_by_label("Description").fill("Described")
    page.get_by_label("Icon", exact=True).fill("/emojis/1f957.png")
    page.get_by_role("button", name=re.compile("save", re.IGNORECASE)).click()
    expect_message(page, "created successfully")
    page.goto("/organizations/crew")
    expect(page).to_have_title(re.compile("^Members - Org crew - "))
    page.get_by_placeholder("User email or username").fill("eve@example.com")
    page.get_by_role("option", name="eve@example.com").click()
    page.get_by_role("button", name="Add user").click()
    row = page.locator("tr", has_text="eve@example.com")
    row.get_by_label("Edit user roles").click()
    page.get_by_text("Organization User Admin").click()
    page.get_by_text("Organization Template Admin").click()
    page.mouse.click(10, 10)
    expect(row.get_by_text("+1 more")).to_be_visible()

    page.get_by_role("link", name="Groups").click()
    page.get_by_text("Create group").first.click()
    expect(page).to_have_title(re.compile("^Create Group - "))
    page.get_by_label("Name", exact=True).fill("staff")
    page.get_by_label("Display Name").fill("The Staff")
    page.get_by_label("Avatar URL").fill("/emojis/1f60d.png")
    page.get_by_role("button", name=re.compile("save", re.IGNORECASE)).click()
    expect(page).to_have_title(re.compile("^The Staff - "))
    expect(page.get_by_text("No members yet")).to_be_visible()
    page.get_by_placeholder("User email or username").fill("unknown-user")
    expect(page.get_by_text("No users found")).to_be_visible()
    page.get_by_placeholder("User email or username").fill("eve@example.com")
    page.get_by_text("eve@example.com").click()
    page.get_by_role("button", name="Add user").click()
    member = page.locator("tr", has_text="eve@example.com")
    member.get_by_role("button", name="Open menu").click()
    page.get_by_role("menu").get_by_text("Remove").click()
    expect(member).to_have_count(0)
    page.get_by_role("link", name="Settings", exact=True).last.click()
    page.get_by_label("Quota Allowance").fill("100")
    page.get_by_role("button", name=re.compile("save", re.IGNORECASE)).click()
    expect(page).to_have_url(re.compile("/organizations/crew/groups/staff$"))
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_test_id("dialog")
    dialog.get_by_label("Name of the group to delete").fill("staff")
    dialog.get_by_role("button", name="Delete").click()
    expect_message(page, "Group deleted successfully.")
    page.get_by_role("row", name="Everyone").click()
    expect(page).to_have_title(re.compile("^Everyone - "))

    page.goto("/organizations/crew")
    row.get_by_role("button", name="Open menu").click()
    page.get_by_text("Remove").last.click()
    page.get_by_role("button", name="Remove").last.click()
    expect_message(page, "removed from organization successfully")
    expect(row).to_have_count(0)
    page.goto("/organizations/crew/settings")
    page.get_by_role("button", name="Delete this organization").click()
    dialog.get_by_label("Name").fill("crew")
    dialog.get_by_role("button", name="Delete").click()
    expect_message(page, "Organization deleted")


@walks("audit log")
def test_audit_filters_by_menu(page: Page) -> None:
    page.goto("/audit")
    page.get_by_placeholder("Search...").fill("username:ana")
    expect(page.get_by_text("All users")).to_have_count(0)
    created = page.get_by_text("ana created user eve")
    expect(created).to_be_visible()
    page.get_by_text("All resource types").click()
    page.get_by_text("Organization", exact=True).last.click()
    expect(created).to_have_count(0)
    page.get_by_label("Clear search").click()
    expect(page.get_by_text("All users")).to_be_visible()
    page.get_by_text("All actions").click()
    page.get_by_text("Login", exact=True).click()
    expect(page.get_by_text("ana logged in").first).to_be_visible()


@walks("proxies")
def test_primary_proxy_row(page: Page, server: Loopback) -> None:
    page.goto("/deployment/workspace-proxies")
    row = page.get_by_test_id("primary")
    expect(row.locator("td.name span")).to_have_text("Default")
    expect(row.locator("td.url")).to_have_text(server.url)
    expect(row.locator("td.status span")).to_have_text("Healthy")


@pytest.mark.parametrize(
    ("path", "row", "value"),
    [
        ("network", "access-url", ".option-value-string"),
        ("network", "derp-server-region-id", ".option-value-number"),
        ("network", "derp-server-stun-addresses", ".option-array"),
        ("security", "disable-owner-workspace-access", ".option-disabled"),
        ("observability", "health-check-refresh", ".option-value-string"),
        ("userauth", "disable-password-auth", ".option-disabled"),
    ],
)
@walks("option tables")
def test_option_row_by_flag(page: Page, path: str, row: str, value: str) -> None:
    page.goto(f"/deployment/{path}")
    expect(page.locator(f"div.options-table .option-{row} {value}")).to_be_visible()


@walks("tokens", "changes")
def test_token_lifecycle(page: Page) -> None:
    page.goto("/settings/tokens")
    page.get_by_role("link", name="Add token").first.click()
    page.get_by_label("Name").fill("robot")
    page.get_by_role("button", name="Create token").click()
    expect_message(page, "created successfully")
    page.goto("/settings/tokens")
    expect(page.get_by_text("robot")).to_be_visible()


def test_home_offers_first_workspace(page: Page) -> None:
    page.goto("/home")
    expect(page).to_have_title(re.compile("^Home - "))
    expect(page.get_by_role("heading", name="From a template")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Attach a machine").click()
    expect(page).to_have_url(re.compile("/workspaces/attach$"))
