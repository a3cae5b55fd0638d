"""Administration in a real browser: users, groups, roles, organizations, a pending job, keys, the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.kit.dashboard.browser import expect_message, missing, visitor
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL = "ana.admin@example.com"
PASSWORD = "Browser-Password-7-very-long"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:  # the browser comes first because it may skip the test
    with open_loopback() as found:
        first = {"email": EMAIL, "username": "ana-admin", "password": PASSWORD, "name": "", "trial": False}
        found.request("POST", "/api/v2/users/first", first)
        found.sign_in(EMAIL, PASSWORD)
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser, server: Loopback) -> Iterator[Page]:
    """One tab of the owner. A script error fails the last test."""
    context = visitor(browser, server.url, server.token)
    found = context.new_page()
    problems: list[str] = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    yield found
    context.close()
    assert problems == []


def call(server: Loopback, method: str, path: str, body: object = None) -> Any:
    return server.request(method, f"/api/v2{path}", body, server.token)


def row_of(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def delete_typed(page: Page, label: str, name: str) -> None:
    """Delete an object in the dialog that requires typing its name."""
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete", exact=True)
    expect(button).to_be_disabled()
    dialog.get_by_label(label).fill(name)
    button.click()
    expect(dialog).to_have_count(0)


def test_user_create_and_role(page: Page, server: Loopback) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="No workspaces yet")).to_be_visible()  # a menu closes when the page changes
    page.get_by_role("button", name="Admin settings").click()
    page.get_by_role("menuitem", name="Deployment").click()
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_role("link", name="Create user").click()
    expect(page).to_have_title(re.compile("^Create User - "))
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Full name").fill("Bob Builder")
    page.get_by_label("Email").fill("bob@example.com")
    page.locator("input[name=password]").fill("short")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Full name")).to_have_value("Bob Builder")  # a rejection keeps the input
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Save").click()
    expect_message(page, "User created successfully.")
    expect(page).to_have_title(re.compile("^Users - "))
    row = row_of(page, "bob@example.com")
    row.get_by_label("Edit user roles").click()
    with page.expect_response(lambda answer: answer.url.endswith("/roles") and answer.request.method == "PUT"):
        page.get_by_role("group").get_by_text("Template Admin", exact=True).click()
    page.keyboard.press("Escape")
    expect(row).to_contain_text("Template Admin")
    assert [role["name"] for role in call(server, "GET", "/users/bob")["roles"]] == ["template-admin"]


def test_user_suspend_activate_reset_password(page: Page, server: Loopback) -> None:
    row = row_of(page, "bob@example.com")
    for action, word in (("Suspend", "Suspended"), ("Activate", "Active")):
        row.get_by_role("button", name="Open menu").click()
        page.get_by_role("menuitem", name=action).click()
        page.get_by_test_id("confirm-button").click()
        expect(row).to_contain_text(word)
    row.get_by_role("button", name="Open menu").click()
    page.get_by_role("menuitem", name="Reset password").click()
    expect(page.get_by_role("dialog").get_by_test_id("command")).not_to_be_empty()
    password = page.get_by_role("dialog").get_by_test_id("command").inner_text()
    page.get_by_test_id("confirm-button").click()
    expect_message(page, "Password updated successfully.")
    kept = page.get_by_role("dialog", name="New password of bob")
    expect(kept.get_by_test_id("command")).to_have_text(password)
    kept.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    login = server.request("POST", "/api/v2/users/login", {"email": "bob@example.com", "password": password})
    assert login["session_token"]


def test_search_kept_in_address(page: Page) -> None:
    page.get_by_role("button", name="Role", exact=True).click()
    page.get_by_role("menuitem", name="Owner").click()
    expect(page).to_have_url(re.compile(r"filter=role%3Aowner"))
    expect(row_of(page, "bob@example.com")).to_have_count(0)
    page.reload()
    expect(row_of(page, EMAIL)).to_be_visible()
    expect(row_of(page, "bob@example.com")).to_have_count(0)
    page.get_by_role("searchbox").fill("nonsense:1")
    expect(page.get_by_role("alert")).to_be_visible()


def test_group_create_edit_delete(page: Page, server: Loopback) -> None:
    page.goto("/organizations/coder/groups")
    page.get_by_role("link", name="Create group").first.click()
    page.get_by_label("Name", exact=True).fill("backend")
    page.get_by_label("Display name").fill("Backend team")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_title(re.compile("^Backend team - "))
    expect(page.get_by_text("No members yet")).to_be_visible()
    page.get_by_role("combobox", name="User").click()
    page.get_by_role("option", name="bob").click()
    page.get_by_role("button", name="Add user").click()
    row = row_of(page, "bob@example.com")
    expect(row).to_be_visible()
    page.locator("a[href$='/groups/backend/settings']").click()
    page.get_by_label("Quota allowance").fill("a lot")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Enter a whole number, or 0 for none.")).to_be_visible()
    page.get_by_label("Quota allowance").fill("25")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("quota allowance 25")).to_be_visible()
    row.get_by_role("button", name="Open menu").click()
    page.get_by_role("menuitem", name="Remove").click()
    expect_message(page, "Member removed successfully.")
    expect(row).to_have_count(0)
    page.get_by_role("button", name="Delete", exact=True).click()
    delete_typed(page, "Name of the group to delete", "backend")
    expect_message(page, "Group deleted successfully.")
    names = [group["name"] for group in call(server, "GET", "/organizations/coder/groups")]
    assert names == ["Everyone"]


def test_custom_role_create_assign_delete(page: Page, server: Loopback) -> None:
    page.goto("/organizations/coder/roles")
    page.get_by_role("link", name="Create custom role").first.click()
    page.get_by_label("Name", exact=True).fill("looker")
    page.get_by_label("Display name").fill("Looker")
    page.get_by_test_id("template-read").check()
    page.get_by_test_id("audit_log").check()  # all of its actions
    page.get_by_test_id("audit_log-create").uncheck()
    page.get_by_role("button", name="Create Role").click()
    expect(page.get_by_test_id("role-looker")).to_contain_text("Templates (template): read")
    roles = call(server, "GET", "/organizations/coder/members/roles")
    made = next(role for role in roles if role["name"] == "looker")
    given = {(one["resource_type"], one["action"]) for one in made["organization_permissions"]}
    assert given == {("template", "read"), ("audit_log", "read")}
    page.get_by_role("link", name="Members").click()
    row = row_of(page, "bob@example.com")
    row.get_by_label("Edit user roles").click()
    with page.expect_response(lambda answer: answer.url.endswith("/roles") and answer.request.method == "PUT"):
        page.get_by_role("group").get_by_text("Looker", exact=True).click()
    page.keyboard.press("Escape")
    expect(row).to_contain_text("Looker")
    page.get_by_role("link", name="Roles", exact=True).click()
    page.get_by_test_id("role-looker").get_by_role("button", name="Open menu").click()
    page.get_by_role("menuitem", name="Delete").click()
    delete_typed(page, "Name of the role to delete", "looker")
    expect(page.get_by_test_id("role-looker")).to_have_count(0)


def test_organization_create_rename_delete(page: Page) -> None:
    page.goto("/organizations/new")
    page.get_by_label("Slug").fill("research")
    page.get_by_label("Display name").fill("Research")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/organizations/research$"))
    expect_message(page, "created successfully.")
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_label("Slug").fill("science")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/organizations/science/settings$"))
    expect_message(page, "Organization settings updated successfully.")
    page.get_by_role("button", name="Delete this organization").click()
    delete_typed(page, "Name of the organization to delete", "science")
    expect_message(page, "Organization deleted successfully.")


def test_pending_job_shows_reason(page: Page, server: Loopback) -> None:
    server.push_external_template()
    organization = call(server, "GET", "/organizations/coder")["id"]
    file = call(server, "GET", f"/organizations/{organization}/provisionerjobs")[0]["file_id"]
    wanted = {"name": "on-gpu", "storage_method": "file", "file_id": file, "provisioner": "terraform"}
    call(server, "POST", f"/organizations/{organization}/templateversions", wanted | {"tags": {"gpu": "yes"}})
    page.goto("/organizations/coder/provisioner-jobs")
    waiting = page.get_by_role("listitem").filter(has=page.get_by_test_id("job-why"))
    expect(waiting).to_contain_text("No provisioner may run this job")
    waiting.get_by_role("button", name="Details of").click()
    expect(waiting.get_by_role("region", name="Reasons for waiting")).to_contain_text("gpu=yes")
    expect(waiting.get_by_test_id("command")).to_contain_text("--tag gpu=yes")
    waiting.get_by_role("button", name="Cancel job").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_test_id("job-why")).to_have_count(0)
    page.get_by_label("Status", exact=True).select_option("canceled")
    expect(page).to_have_url(re.compile("status=canceled"))
    expect(page.get_by_role("list", name="Jobs")).to_contain_text("Canceled")


def test_provisioner_key_shown_once(page: Page, server: Loopback) -> None:
    page.goto("/organizations/coder/provisioner-keys")
    page.get_by_role("button", name="Create key").click()
    page.get_by_label("Name", exact=True).fill("farm")
    page.get_by_label("Tags").fill("gpu")
    page.get_by_role("dialog").get_by_role("button", name="Create key").click()
    expect(page.get_by_text("Enter each tag as name=value.")).to_be_visible()
    page.get_by_label("Tags").fill("gpu=yes")
    page.get_by_role("dialog").get_by_role("button", name="Create key").click()
    page.get_by_role("button", name="Show value").click()
    expect(page.get_by_test_id("provisioner-key")).not_to_contain_text("•")
    secret = page.get_by_test_id("provisioner-key").inner_text()
    assert len(secret) > 20
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    row = page.get_by_test_id("key-farm")
    expect(row).to_contain_text("gpu=yes")
    assert secret not in page.content()
    row.get_by_role("button", name="Delete key farm").click()
    delete_typed(page, "Name of the provisioner key to delete", "farm")
    expect(row).to_have_count(0)


def test_audit_log_shows_changes(page: Page) -> None:
    page.goto("/audit")
    page.get_by_role("button", name="All resource types", exact=True).click()
    page.get_by_role("menuitem", name="Custom role").click()
    expect(page).to_have_url(re.compile("resource_type%3Acustom_role"))
    expect(page.get_by_text("created custom role").first).to_be_visible()
    expect(page.get_by_text("created user")).to_have_count(0)
    page.get_by_role("button", name="Details of ana-admin created custom role looker").click()
    expect(page.get_by_test_id("audit-diff")).to_contain_text("looker")
    page.get_by_label("Clear search").click()
    page.get_by_role("searchbox").fill("resource_type:user action:write")
    expect(page.get_by_text("updated user").first).to_be_visible()


def test_user_delete(page: Page, server: Loopback) -> None:
    page.goto("/deployment/users")
    row = row_of(page, "bob@example.com")
    row.get_by_role("button", name="Open menu").click()
    page.get_by_role("menuitem", name="Delete").click()
    delete_typed(page, "Name of the user to delete", "bob")
    expect_message(page, "User deleted successfully.")
    expect(row).to_have_count(0)
    assert [user["username"] for user in call(server, "GET", "/users")["users"]] == ["ana-admin"]


def test_banner_shown_to_all(page: Page) -> None:
    page.goto("/deployment/appearance")
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_label("Message").fill("Work on **Sunday** <img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Update").click()
    note = page.get_by_role("note", name="Announcement")
    expect(note).to_contain_text("Work on Sunday")
    expect(note.locator("img")).to_have_count(0)
    page.get_by_role("button", name="Delete banner").click()
    page.get_by_test_id("confirm-button").click()
    expect(note).to_have_count(0)
