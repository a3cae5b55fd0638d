"""A user's own pages in a real browser: account, tokens, devices, messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.dashboard.browser import expect_message, missing, visitor
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL = "ana@example.com"
PASSWORD = "Browser-Password-7-very-long"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:  # the browser comes first because it may skip the test
    with open_loopback("--wireguard-address", "127.0.0.1:0") as found:
        found.request("POST", "/api/v2/users/first", {"email": EMAIL, "username": "ana", "password": PASSWORD})
        found.sign_in(EMAIL, PASSWORD)
        yield found


def signed_in(browser: Browser, server: Loopback) -> Page:
    return visitor(browser, server.url, server.token, permissions=["clipboard-read", "clipboard-write"]).new_page()


@pytest.fixture
def page(browser: Browser, server: Loopback) -> Iterator[Page]:
    """A new tab; a script error or a policy violation fails the test."""
    found = signed_in(browser, server)
    problems: list[str] = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None)
    yield found
    found.context.close()
    assert problems == []


def api(server: Loopback, method: str, path: str, body: object = None) -> Any:
    return server.request(method, f"/api/v2{path}", body, server.token)


def test_account_edit_warns_second_tab(page: Page, browser: Browser, server: Loopback) -> None:
    page.goto("/settings/account")
    expect(page).to_have_title(re.compile("^Settings - "))
    name = page.get_by_label("Name", exact=True)
    name.fill("Ana Santos")
    # Meanwhile another tab saves the same object.
    other = signed_in(browser, server)
    other.goto("/settings/account")
    other.get_by_label("Name", exact=True).fill("Ana of the other tab")
    other.get_by_role("button", name="Update account").click()
    expect_message(other, "Account updated successfully.")
    other.context.close()
    page.get_by_role("button", name="Update account").click()
    notice = page.get_by_role("status").filter(has_text="This was changed elsewhere")
    expect(notice).to_contain_text("name is now Ana of the other tab")
    expect(name).to_have_value("Ana Santos")  # the input is kept
    assert api(server, "GET", "/users/me")["name"] == "Ana of the other tab"
    notice.get_by_role("button", name="Save anyway").click()
    expect_message(page, "Account updated successfully.")
    assert api(server, "GET", "/users/me")["name"] == "Ana Santos"


def test_theme_applies_at_once(page: Page) -> None:
    page.goto("/settings/appearance")
    page.get_by_label("Theme mode").click()
    page.get_by_role("option", name="Single theme").click()
    page.get_by_label("Dark high contrast", exact=True).check()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark-contrast")
    # The answer to this choice, not to an earlier one: they are sent one after the other.
    with page.expect_response(lambda answer: "fira-code" in (answer.request.post_data or "")):
        page.get_by_label("Fira Code").check()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark-contrast")
    expect(page.get_by_label("Fira Code")).to_be_checked()
    with page.expect_response(lambda answer: answer.url.endswith("/appearance") and answer.request.method == "PUT"):
        page.get_by_label("Theme mode").click()
        page.get_by_role("option", name="Sync with system").click()


def test_token_create_use_delete(page: Page, server: Loopback) -> None:
    page.goto("/settings/tokens")
    expect(page.get_by_role("heading", name="No tokens yet")).to_be_visible()
    page.get_by_role("link", name="Add token").first.click()
    expect(page).to_have_title(re.compile("^Create Token - "))
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Selected permissions").check()
    page.get_by_label("Fine-grained permissions").first.fill("user:read")
    page.get_by_role("checkbox", name="user:read", exact=True).check()
    page.get_by_role("button", name="Create token").click()
    box = page.get_by_test_id("new-token")
    expect(box).not_to_contain_text("-")
    page.get_by_role("button", name="Show value").click()
    expect(box).to_contain_text("-")
    token = box.inner_text()
    assert server.request("GET", "/api/v2/users/me", None, token)["username"] == "ana"
    with pytest.raises(AssertionError, match=r"40[134]"):
        server.request("GET", "/api/v2/users/me/gitsshkey", None, token)
    page.get_by_role("link", name="I have saved it").click()
    page.get_by_role("button", name="Delete token ci").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_role("heading", name="No tokens yet")).to_be_visible()
    with pytest.raises(AssertionError, match="401"):
        server.request("GET", "/api/v2/users/me", None, token)


def test_wireguard_device_add_remove(page: Page, server: Loopback) -> None:
    page.goto("/settings/devices")
    page.get_by_role("button", name="Add device").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("phone")
    dialog.get_by_role("button", name="Add device").click()
    expect(dialog.get_by_test_id("qr")).to_be_visible()
    dialog.get_by_role("button", name="Show value").click()
    expect(dialog.get_by_test_id("device-config")).to_contain_text("PrivateKey")
    config = dialog.get_by_test_id("device-config").inner_text()
    [made] = api(server, "GET", "/users/me/wireguard-clients")
    found = re.search(r"^PrivateKey = (\S{43}=)$", config, re.MULTILINE)
    assert found is not None
    from wireguard_tools import WireguardKey

    assert str(WireguardKey(found[1]).public_key()) == made["public_key"]
    assert f"Address = {made['address']}/128" in config
    assert made["expires_at"] is not None
    dialog.get_by_role("button", name="Done").click()
    card = page.get_by_test_id("device-phone")
    expect(card).to_contain_text("Never connected")
    card.get_by_role("button", name="Remove phone").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_role("heading", name="No devices yet")).to_be_visible()
    assert api(server, "GET", "/users/me/wireguard-clients") == []


def test_inbox_updates_live(page: Page, server: Loopback) -> None:
    page.goto("/templates")
    bell = page.get_by_test_id("inbox-bell")
    expect(bell).to_have_accessible_name("Inbox, no unread messages")
    content = {"title": "Maintenance", "message": "On <b>Sunday</b> **early**."}
    api(server, "POST", "/notifications/custom", {"content": content})
    expect(bell).to_have_accessible_name("Inbox, 1 unread")
    expect(page.get_by_test_id("unread-count")).to_have_text("1")
    bell.click()
    message = page.get_by_test_id("inbox-notification")
    expect(message).to_contain_text("Maintenance")
    message.get_by_role("button", name="Mark as read").click()
    expect(page.get_by_test_id("unread-count")).to_have_count(0)
    page.get_by_role("link", name="See all messages").click()
    expect(page).to_have_url(re.compile("/inbox$"))
    page.get_by_label("Unread only").click()
    expect(page.get_by_role("heading", name="No unread messages")).to_be_visible()


def test_notification_kind_turned_off(page: Page, server: Loopback) -> None:
    page.goto("/settings/notifications")
    switch = page.get_by_role("switch", name="Workspace Deleted")
    expect(switch).to_be_checked()
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "preferences" in answer.url):
        switch.click()  # shown before it is answered: a page loaded meanwhile may be served the old state
        expect(switch).not_to_be_checked()
    page.reload()
    expect(page.get_by_role("switch", name="Workspace Deleted")).not_to_be_checked()
    assert [item["disabled"] for item in api(server, "GET", "/users/me/notifications/preferences")] == [True]


def test_secret_create_delete(page: Page, server: Loopback) -> None:
    page.goto("/settings/secrets")
    page.get_by_role("button", name="Add secret").first.click()
    page.get_by_label("Name").fill("npm")
    page.get_by_label("Value").fill("very-secret")
    page.get_by_label("Environment variable").fill("NPM_TOKEN")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_test_id("secret-npm")
    expect(row).to_contain_text("$NPM_TOKEN")
    expect(page.get_by_text("very-secret")).to_have_count(0)
    page.get_by_role("button", name="Delete secret npm").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_role("heading", name="No secrets yet")).to_be_visible()
    assert api(server, "GET", "/users/me/secrets") == []


def test_password_change(page: Page, server: Loopback) -> None:
    """Runs last: it ends every session, including that of the other tests in this file."""
    page.goto("/settings/security")
    page.get_by_label("Old Password").fill(PASSWORD)
    page.get_by_label("New Password").fill(f"{PASSWORD}-new")
    page.get_by_label("Confirm Password").fill(f"{PASSWORD}-other")
    page.get_by_role("button", name="Update password").click()
    expect(page.get_by_text("The passwords do not match.")).to_be_visible()
    page.get_by_label("Confirm Password").fill(f"{PASSWORD}-new")
    page.get_by_role("button", name="Update password").click()
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_text("Your password was changed.")).to_be_visible()
    with pytest.raises(AssertionError, match="401"):
        api(server, "GET", "/users/me")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(f"{PASSWORD}-new")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page).to_have_url(re.compile("/workspaces$"))
