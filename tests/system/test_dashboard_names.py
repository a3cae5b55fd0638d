"""Names, labels, test ids and steps of the original's pages, which other people's scripts look for.

Rows that this dashboard does not take over, with their reasons: docs/guides/dashboard-names.md.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.dashboard.browser import expect_message, missing, visitor
from tests.kit.dashboard.name_rows import walks
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL = "ana@example.com"
PASSWORD = "Browser-Password-7-very-long"
BUILD_ONCE = """
terraform {
  required_providers { coder = { source = "coder/coder" } }
}
data "coder_parameter" "size" {
  name    = "Disk Size"
  type    = "string"
  default = "small"
  mutable = true
}
data "coder_parameter" "clean" {
  name      = "clean"
  type      = "bool"
  default   = "false"
  mutable   = true
  ephemeral = true
  form_type = "switch"
}
data "coder_parameter" "tidy" {
  name    = "tidy"
  type    = "bool"
  default = "false"
  mutable = true
}
resource "terraform_data" "box" {}
"""
NEEDS_VALUE = """
data "coder_parameter" "region" {
  name    = "region"
  type    = "string"
  mutable = true
}
"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:
    with open_loopback() as found:
        yield found


@pytest.fixture(scope="module")
def context(browser: Browser, server: Loopback) -> Iterator[BrowserContext]:
    found = visitor(browser, server.url)
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(context: BrowserContext) -> Page:
    return context.new_page()


def call(server: Loopback, method: str, path: str, body: object = None) -> Any:
    return server.request(method, f"/api/v2{path}", body, server.token)


@walks("set-up")
def test_setup_announces_first_user(page: Page, server: Loopback) -> None:
    page.goto("/setup")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_test_id("create").click()
    expect_message(page, "created successfully")
    expect(page).to_have_url(re.compile("/templates/new/builder$"))
    server.sign_in(EMAIL, PASSWORD)


@walks("sign-in")
def test_signed_out_pages_show_deployment_name(page: Page, server: Loopback, browser: Browser) -> None:
    appearance = {"application_name": "Acme", "logo_url": "/icon/coder.svg", "service_banner": {"enabled": False}}
    call(server, "PUT", "/appearance", {**appearance, "announcement_banners": []})
    stranger = visitor(browser, server.url)
    other, refused = stranger.new_page(), list[str]()
    other.on("response", lambda answer: refused.append(answer.url) if answer.status == 401 else None)
    for path in ("/login", "/reset-password"):
        other.goto(path)
        expect(other.get_by_role("main").locator("img[src='/icon/coder.svg']")).to_be_visible()
    other.goto("/login")
    expect(other.get_by_role("heading", name="Acme")).to_be_visible()
    for name, content in (("application-name", "Acme"), ("logo-url", "/icon/coder.svg")):
        expect(other.locator(f"meta[property='{name}'], meta[name='{name}']").first).to_have_attribute(
            "content", content
        )
    assert refused == []
    stranger.close()


@walks("new template", "changes")
def test_upload_shows_file_until_removed(page: Page) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("main.tf")
        entry.size = len(BUILD_ONCE)
        archive.addfile(entry, io.BytesIO(BUILD_ONCE.encode()))
    file: Any = {"name": "box.tar", "mimeType": "application/x-tar", "buffer": made.getvalue()}
    page.goto("/templates/new")
    page.get_by_test_id("file-upload").set_input_files(file)
    page.get_by_role("button", name="Remove file").click()
    page.get_by_test_id("file-upload").set_input_files(file)
    expect(page.get_by_role("button", name="Remove file")).to_be_visible()
    page.get_by_label("Name *").fill("box")
    page.get_by_role("button", name="Create template").click()
    expect_message(page, "created successfully")


@walks("new workspace", "parameters")
def test_link_locks_parameter_by_lower_case(page: Page) -> None:
    page.goto("/templates/box/workspace?name=mine&disable_params=disk_size")
    field = page.get_by_test_id("parameter-field-Disk Size")
    expect(field.get_by_role("textbox", name="Disk Size")).to_be_disabled()
    expect(page.get_by_test_id("parameter-field-clean").get_by_role("switch", name="clean")).to_be_enabled()
    expect(page.get_by_test_id("parameter-field-tidy").get_by_role("checkbox", name="tidy")).to_be_enabled()
    page.goto("/templates/box/workspace?mode=auto&name=mine&match=nothing%3Aknown")
    page.get_by_role("button", name="Confirm and create").click()
    expect(page.get_by_role("heading", name="Invalid match value")).to_be_visible()


@walks("workspace")
def test_start_asks_for_ephemeral_parameters(page: Page, server: Loopback) -> None:
    server.coder("create", "mine", "--template=box", "-y", "--use-parameter-defaults")
    server.coder("stop", "mine", "-y")
    page.goto("/@ana/mine")
    expect(page.get_by_text("Workspace status: Stopped")).to_be_visible()
    expect(page.get_by_test_id("workspace-parameters")).to_be_visible()
    page.get_by_test_id("workspace-start").click()
    expect(page.get_by_test_id("confirm-button")).to_be_visible()
    expect(page.get_by_role("dialog", name="Ephemeral parameters detected")).to_be_visible()
    page.get_by_test_id("workspace-parameters").click()
    expect(page).to_have_url(re.compile("/@ana/mine/settings/parameters$"))
    page.get_by_test_id("parameter-field-clean").locator("button").click()
    expect(page.get_by_test_id("parameter-field-clean").locator("input")).to_be_checked()
    page.get_by_role("button", name="Update and start").click()
    expect(page.get_by_text("Workspace status: Running")).to_be_visible()


@walks("new workspace")
def test_match_asks_then_opens_workspace(page: Page) -> None:
    page.goto("/templates/box/workspace?mode=auto&name=other&match=name%3Amine")
    page.get_by_role("button", name="Confirm and create").click()
    expect(page).to_have_url(re.compile("/@ana/mine$"))
    expect(page).to_have_title(re.compile("^ana/mine - "))


@walks("workspace")
def test_update_leads_to_new_parameters(page: Page, server: Loopback) -> None:
    folder = server.folder / "box"
    folder.mkdir()
    (folder / "main.tf").write_text(BUILD_ONCE + NEEDS_VALUE)
    server.coder("templates", "push", "box", "-d", str(folder), "-y")
    page.goto("/@ana/mine")
    page.get_by_test_id("workspace-update-button").click()
    page.get_by_test_id("confirm-button").click()
    page.get_by_role("button", name="Go to workspace parameters").click()
    expect(page).to_have_url(re.compile("/@ana/mine/settings/parameters"))


@pytest.mark.parametrize(
    ("path", "noun", "prefix", "saved"),
    [
        ("/organizations/coder/idp-sync?tab=groups", "group", "group", "IdP Group sync settings updated."),
        ("/organizations/coder/idp-sync?tab=roles", "role", "role", "IdP Role sync settings updated."),
        ("/deployment/idp-org-sync", "organization", "idp-org", "Organization sync settings updated."),
    ],
)
@walks("IdP sync")
def test_idp_sync_mappings(page: Page, server: Loopback, path: str, noun: str, prefix: str, saved: str) -> None:
    if noun == "group":
        call(server, "POST", "/organizations/coder/groups", {"name": "developers"})
    page.goto(path)
    expect(page.get_by_role("heading", name=f"No {noun} mappings")).to_be_visible()
    if noun == "group":
        expect(page.get_by_role("switch", name="Auto create missing groups")).to_be_visible()
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    page.get_by_role("textbox", name=f"{noun.capitalize()} sync field").fill("claim")
    save.click()
    expect_message(page, saved)
    add = page.get_by_role("button", name=f"Add IdP {noun}")
    expect(add).to_be_disabled()
    page.get_by_label(f"IdP {noun} name").fill("devs")
    page.get_by_placeholder(f"Select {noun}").click()
    page.get_by_role("option").first.click()
    add.click()
    row = page.get_by_test_id(f"{prefix}-devs")
    expect(row.get_by_role("cell", name="devs")).to_be_visible()
    page.reload()
    row.get_by_role("button", name="delete").click()
    expect(row).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name=f"No {noun} mappings")).to_be_visible()


@walks("organization sync")
def test_organization_sync_confirms_switching_off(page: Page) -> None:
    page.goto("/deployment/idp-org-sync")
    switch = page.get_by_role("switch", name="Assign default organization")
    expect(switch).to_be_checked()
    switch.click()
    page.get_by_role("button", name="Confirm").click()
    expect_message(page, "Organization sync settings updated.")
    expect(switch).not_to_be_checked()
    switch.click()
    expect(switch).to_be_checked()


@walks("admin menu")
def test_admin_menu_words(page: Page) -> None:
    page.goto("/workspaces")
    page.get_by_role("button", name="Admin settings").click()
    for word in ("Deployment", "Organizations", "Audit logs", "Connection logs", "Healthcheck"):
        expect(page.get_by_role("menuitem", name=word, exact=True)).to_be_visible()


@walks("option tables")
def test_option_table_classes(page: Page) -> None:
    page.goto("/deployment/security")
    rows = page.locator("div.options-table tbody tr")
    expect(rows.first).to_be_visible()
    for part in (".option-name", ".option-value"):
        expect(page.locator(f".options-table {part}")).to_have_count(rows.count())


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("/deployment/appearance", ("Application name", "Logo URL")),
        ("/templates/box/settings", ("Name", "Display name")),
        ("/organizations/coder/settings", ("Slug", "Display name")),
    ],
)
@walks("forms")
def test_field_names_are_unique(page: Page, path: str, labels: tuple[str, ...]) -> None:
    page.goto(path)
    for label in labels:
        expect(page.get_by_label(label, exact=True)).to_have_count(1)


@walks("custom roles", "changes")
def test_custom_role_editor_words(page: Page) -> None:
    page.goto("/organizations/coder/roles/create")
    expect(page.get_by_role("heading", name="Create Custom Role")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("looker")
    page.get_by_test_id("group").get_by_role("checkbox").click()
    page.get_by_test_id("template-read").check()
    page.get_by_role("button", name="Create Role").click()
    expect_message(page, "created successfully")
    row = page.get_by_test_id("role-looker")
    expect(row.get_by_text("template")).to_be_visible()
    row.get_by_role("button", name="Open menu").click()
    page.get_by_role("menu").get_by_text("Edit").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page).to_have_url(re.compile("/organizations/coder/roles$"))
    page.goto("/organizations/coder/roles/looker")
    expect(page.get_by_role("heading", name="Edit Custom Role")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect_message(page, "updated successfully")


@walks("`/deployment/groups`")
def test_deployment_groups_lead_to_organization(page: Page) -> None:
    page.goto("/deployment/groups")
    expect(page).to_have_url(re.compile("/organizations/coder/groups$"))
    expect(page).to_have_title(re.compile("^Groups - "))


@walks("appearance of the account")
def test_theme_mode_is_combobox(page: Page) -> None:
    page.goto("/settings/appearance")
    page.get_by_role("combobox", name="theme mode").click()
    page.get_by_role("option", name="Single theme").click()
    expect(page.get_by_role("group", name="Theme", exact=True)).to_be_visible()


@walks("template builder")
def test_template_builder_is_declared(page: Page, server: Loopback) -> None:
    assert "disabled" not in call(server, "GET", "/deployment/config")["config"]["template_builder"]
    page.goto("/templates/new/builder")
    expect(page.get_by_role("radio", name="Docker Containers")).to_be_checked()


def test_focus_returns_from_menu_dialog_and_palette(page: Page) -> None:
    page.goto("/@ana/mine")
    button = page.get_by_test_id("workspace-options-button")
    button.click()
    page.get_by_test_id("delete-button").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    start = page.get_by_test_id("workspace-restart-button")
    start.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(start).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(start).to_be_focused()
