"""The life of a template and its workspace in a real browser: archive upload, required variables, dependent
parameters, an external account, path and subdomain applications, the editor, an update, deletion.

One flow in a user's order; each test continues where the previous one ended.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.dashboard.browser import SOON, expect_message, missing, visitor
from tests.kit.dashboard.pages import FOLDER
from tests.kit.free_ports import free_port
from tests.kit.server.server_process import Loopback, end, open_loopback
from tests.kit.stand_ins.oidc_provider import DeviceProvider
from tests.kit.stand_ins.scripted_http_servers import WebApp, app_in_a_thread

EMAIL, PASSWORD = "ana@example.com", "Browser-Password-7-very-long"
NAME, TEMPLATE = "box", "from-an-archive"
ADDED = """resource "coder_env" "added" {
  agent_id = coder_agent.main.id
  name     = "ADDED"
  value    = "by the editor"
}
"""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@dataclass
class Scene:
    server: Loopback
    desk: DeviceProvider
    app: WebApp
    "Application that listens in the workspace."
    lab: int
    "Port for notebooks."

    @property
    def near(self) -> str:
        """The server under a name that is same-site with its applications: browsers send cookies between them."""
        return self.server.url.replace("127.0.0.1", "coder.localhost")

    def api(self, method: str, path: str, body: object = None) -> Any:
        return self.server.request(method, f"/api/v2{path}", body, self.server.token)


@pytest.fixture(scope="module")
def scene(browser: Browser) -> Iterator[Scene]:  # the browser comes first because it may skip the test
    desk = DeviceProvider()

    def with_names(server: Loopback) -> None:
        server.options = ("--wildcard-access-url", f"*.apps.coder.localhost:{server.url.rpartition(':')[2]}")
        server.variables = desk.variables(0)

    try:
        with app_in_a_thread() as app, open_loopback(before=with_names) as server:
            server.request("POST", "/api/v2/users/first", {"email": EMAIL, "username": "ana", "password": PASSWORD})
            server.sign_in(EMAIL, PASSWORD)
            yield Scene(server, desk, app, free_port())
    finally:
        desk.shutdown()
        desk.server_close()


@pytest.fixture(scope="module")
def context(browser: Browser, scene: Scene) -> Iterator[BrowserContext]:
    """A browser signed in through the form, at both host names, so that its session cookie is the server's own."""
    found = visitor(browser, scene.server.url)
    for address in (scene.near, scene.server.url):
        page = found.new_page()
        page.goto(f"{address}/login?redirect=%2Ficons")
        page.get_by_label("Email").fill(EMAIL)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page).to_have_url(f"{address}/icons")
        page.close()
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(context: BrowserContext) -> Iterator[Page]:
    """One tab for the whole flow. A script error fails the last test."""
    found = context.new_page()
    problems: list[str] = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    yield found
    assert problems == []


def archive(scene: Scene) -> bytes:
    """Return a template archive with everything this flow needs."""
    folder, made = scene.server.folder / "packed", io.BytesIO()
    scene.server.coder("templates", "init", "--id", "local-process", str(folder))
    more = (FOLDER / "chosen.tf").read_text()
    for word, port in (("APP_PORT", scene.app.port), ("LAB_PORT", scene.lab)):
        more = more.replace(word, str(port))
    (folder / "chosen.tf").write_text(more)
    with tarfile.open(fileobj=made, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return made.getvalue()


def test_template_from_archive(page: Page, scene: Scene) -> None:
    packed = archive(scene)
    page.goto("/templates")
    page.get_by_role("link", name="New template").first.click()
    box = page.get_by_test_id("file-upload")
    box.set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no archive"})
    expect_message(page, "Choose a .tar or .zip archive")
    box.set_input_files({"name": "From an archive.tar", "mimeType": "application/x-tar", "buffer": packed})
    expect(page.get_by_label("Name *")).to_have_value(TEMPLATE)
    page.get_by_label("Display name").fill("From an archive")
    page.get_by_test_id("create").click()
    # The form asks for missing values and keeps the input.
    expect(page.get_by_text("Some variables need a value")).to_be_visible()
    page.get_by_label("greeting").fill("hello")
    page.get_by_label("coder_binary").fill(str(scene.server.program_file()))
    page.get_by_label("data_dir").fill(str(scene.server.folder / "workspaces"))
    page.get_by_test_id("create").click()
    expect_message(page, "created successfully.")
    expect(page).to_have_url(re.compile(rf"/templates/{TEMPLATE}/files$"))
    expect(page.get_by_text("chosen.tf").first).to_be_visible()
    assert scene.api("GET", f"/organizations/default/templates/{TEMPLATE}")["display_name"] == "From an archive"


def test_workspace_with_dependent_parameters(page: Page, scene: Scene, context: BrowserContext) -> None:
    page.get_by_role("link", name="Create workspace").first.click()
    page.get_by_label("Workspace name").fill(NAME)
    cores = page.get_by_test_id("parameter-field-cores")
    expect(page.get_by_test_id("parameter-field-size")).to_be_visible()
    expect(cores).to_have_count(0)
    # One parameter exists only for a certain value of another; its value is validated while typing.
    page.get_by_test_id("parameter-field-size").get_by_role("radio", name="Custom").check()
    cores.get_by_role("spinbutton").fill("99")
    expect(cores.get_by_role("alert")).to_contain_text("maximum 8")
    page.get_by_test_id("parameter-field-size").get_by_role("radio", name="Small").check()
    expect(cores).to_have_count(0)
    page.get_by_role("radio", name="Roomy").check()
    expect(cores.get_by_role("spinbutton")).to_have_value("6")
    # The external account is linked in a new window; this page notices it.
    expect(page.get_by_test_id("create")).to_be_disabled()
    expect(page.get_by_text("Log in with Desk first.")).to_be_visible()
    with context.expect_page() as opened:
        page.get_by_role("button", name="Login with Desk").click()
    expect(opened.value.get_by_test_id("user-code")).to_have_text("WDJB-MJHT")
    scene.desk.confirmed = True
    expect(opened.value.get_by_role("heading", name="You've authenticated with Desk!")).to_be_visible()
    opened.value.close()
    expect(page.get_by_text("Authenticated", exact=True)).to_be_visible()
    page.get_by_test_id("create").click()
    expect(page).to_have_url(re.compile(rf"/@ana/{NAME}$"))
    expect(page.get_by_test_id("agent-status")).to_have_attribute("data-status", "connected")
    build = scene.api("GET", f"/users/me/workspace/{NAME}")["latest_build"]
    given = scene.api("GET", f"/workspacebuilds/{build['id']}/parameters")
    assert {one["name"]: one["value"] for one in given} == {"size": "custom", "cores": "6"}
    assert build["template_version_preset_id"] is not None


# A WebSocket from an application's page to the application; then requests of its script to the dashboard.
_ECHO = """() => new Promise((done, failed) => {
    setTimeout(() => failed(new Error(`no answer at ${location.href}`)), 20_000);
    const socket = new WebSocket(location.href.replace(/^http/, "ws").replace(/echo.*$/, "") + "ws");
    socket.onopen = () => socket.send("there and back");
    socket.onmessage = said => { socket.close(); done(said.data); };
    socket.onerror = () => failed(new Error("refused"));
})"""
_BODY = json.dumps({"token_name": "stolen", "lifetime": 86_400 * 10**9, "scopes": ["all"]})
_TRY = """async api => {
    const credentials = "include";
    const patience = () => new Promise(done => setTimeout(() => done({ status: "no answer" }), 20_000));
    const end = asked => Promise.race([asked, patience()])
        .then(answer => answer.status ? String(answer.status) : answer.type, () => "refused");
    const body = `BODY`;
    return {
        cookies: document.cookie,
        read: await end(fetch(`${api}/users/me`, { credentials })),
        write: await end(fetch(`${api}/users/me/keys/tokens`, { method: "POST", mode: "no-cors", body, credentials })),
        watch: await new Promise(done => {
            const socket = new WebSocket(`${api.replace(/^http/, "ws")}/notifications/inbox/watch`);
            socket.onopen = () => { socket.close(); done("open"); };
            socket.onerror = () => done("refused");
            setTimeout(() => done("no answer"), 20_000);
        }),
    };
}""".replace("BODY", _BODY)
_CHANGE = """async api => {
    const headers = { "X-CSRF-TOKEN": document.querySelector("meta[property=csrf-token]").content };
    return (await fetch(`${api}/users/me/keys/tokens`, { method: "POST", headers, body: `BODY` })).status;
}""".replace("BODY", _BODY)


def opened_app(page: Page, context: BrowserContext, name: str) -> Page:
    with context.expect_page() as opened:
        page.get_by_role("link", name=name).click()
    opened.value.wait_for_function("() => document.body?.innerText.includes('headers')")
    return opened.value


def sessions(context: BrowserContext) -> set[str]:
    """Return the values of this browser's session cookies."""
    found = {one["value"] for one in context.cookies() if one["name"] == "coder_session_token"}
    assert len(found) == 2  # one per host name of the server
    return found


def sent_to(app: Page) -> dict[str, list[str]]:
    """Return the header fields that the application received."""
    found: dict[str, list[str]] = {}
    for name, value in app.evaluate("fetch(location.href).then(answer => answer.json())")["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def test_path_application(page: Page, scene: Scene, context: BrowserContext) -> None:
    app = opened_app(page, context, "Page by path")
    assert app.url.startswith(f"{scene.server.url}/@ana/{NAME}")
    assert app.evaluate(_ECHO) == "there and back"
    assert "coder_session_token" not in app.evaluate("document.cookie")
    assert not sessions(context) & set(re.findall(r"[\w-]+", str(sent_to(app))))
    app.close()


def test_subdomain_application_is_isolated(page: Page, scene: Scene, context: BrowserContext) -> None:
    """Its script is same-site with the dashboard, as on a company domain, and still must not act on it."""
    app = opened_app(page, context, "Page by host")
    assert re.match(r"http://own--\S*ana\.apps\.coder\.localhost:\d+/", app.url), app.url
    assert app.evaluate(_ECHO) == "there and back"
    assert not sessions(context) & set(re.findall(r"[\w-]+", str(sent_to(app))))
    for address in (scene.near, scene.server.url):
        tried = app.evaluate(_TRY, f"{address}/api/v2")
        assert "coder_" not in tried.pop("cookies")
        assert tried.pop("write") in {"opaque", "refused"}
        assert tried == {"read": "refused", "watch": "refused"}, address
    assert not scene.api("GET", "/users/me/keys/tokens")
    app.close()
    # The same request from a dashboard page, which has the CSRF token that a change requires, succeeds.
    home = context.new_page()
    home.goto(f"{scene.near}/icons")
    may = home.evaluate(_TRY, f"{scene.near}/api/v2")
    assert (may["read"], may["write"], may["watch"]) == ("200", "400", "open")
    assert home.evaluate(_CHANGE, f"{scene.near}/api/v2") == 201
    home.close()
    assert [one["token_name"] for one in scene.api("GET", "/users/me/keys/tokens")] == ["stolen"]


@pytest.fixture(scope="module")
def lab(scene: Scene) -> Iterator[str]:
    """Install JupyterLab with pip in a temporary environment, and return its base path."""
    place, base = scene.server.folder / "lab", f"/@ana/{NAME}.main/apps/lab/"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([str(place / "bin/pip"), "install", "-q", "jupyterlab>=4,<5"], check=True)
    listens = (f"--ServerApp.port={scene.lab}", f"--ServerApp.base_url={base}", "--IdentityProvider.token=")
    hosts = "--ServerApp.allow_remote_access=True"  # by default it rejects the host name of another machine
    with (scene.server.folder / "lab.log").open("ab") as log:
        process = subprocess.Popen(
            [str(place / "bin/jupyter"), "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", hosts, *listens],
            env=scene.server.env("lab-home"),
            cwd=place,
            start_new_session=True,
            stdout=log,
            stderr=log,
        )
    yield base
    end(process)


@pytest.mark.soak  # a hundred megabytes of packages. code-server has none without a compiler: docs/conformance.md
@pytest.mark.parametrize("way", ["path", "host"])
def test_jupyter_application(scene: Scene, context: BrowserContext, lab: str, way: str) -> None:
    server = scene.server.url
    host = server.replace("127.0.0.1", f"{scene.lab}--main--{NAME}--ana.apps.coder.localhost")
    address = f"{server if way == 'path' else host}{lab}lab?reset"  # without what the other way left open
    notebooks, sockets = context.new_page(), list[str]()
    notebooks.on("websocket", lambda socket: sockets.append(socket.url))
    limit = time.monotonic() + SOON / 1000
    while (answer := notebooks.goto(address)) is None or not answer.ok:
        assert time.monotonic() < limit, scene.server.log_ends()
        time.sleep(0.5)
    notebooks.locator(".jp-LauncherCard[title^='Python 3']").first.click()
    expect(notebooks.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
    cell = notebooks.locator(".jp-Notebook .cm-content").first
    cell.click()
    notebooks.keyboard.type("6 * 7")
    expect(cell).to_have_text("6 * 7")
    notebooks.keyboard.press("Shift+Enter")
    expect(notebooks.locator(".jp-OutputArea-output").first).to_have_text("42")
    assert any("/channels" in opened for opened in sockets)
    notebooks.close()


def test_template_from_builder(page: Page, scene: Scene) -> None:
    page.goto("/templates/new")
    page.get_by_role("link", name="Open template builder").click()
    page.get_by_role("radio", name="Scratch").check()
    page.get_by_role("button", name="Choose modules").click()
    page.get_by_label("Startup script", exact=True).check()
    page.get_by_role("button", name="Set parameters").click()
    page.get_by_label("script", exact=True).fill("echo ${HOME}\necho 'done'")
    page.get_by_role("button", name="Review Terraform").click()
    code = page.get_by_role("textbox", name="main.tf")
    code.click()
    page.keyboard.press("Control+End")
    expect(code).to_contain_text("echo $${HOME}")
    page.keyboard.insert_text("\n# by hand\n")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Name *").fill("composed")
    page.get_by_test_id("create").click()
    expect(page).to_have_url(re.compile("/templates/composed/files$"))
    template = scene.api("GET", "/organizations/default/templates/composed")
    version = scene.api("GET", f"/templateversions/{template['active_version_id']}")
    assert version["job"]["status"] == "succeeded"
    files = page.request.get(f"/api/v2/files/{version['job']['file_id']}").body()
    assert b"\n# by hand\n" in files and b"echo $${HOME}\necho 'done'\n" in files
    scene.api("DELETE", f"/templates/{template['id']}")


def test_template_editor_publish(page: Page, scene: Scene) -> None:
    before = scene.api("GET", f"/organizations/default/templates/{TEMPLATE}")["active_version_id"]
    page.goto(f"/templates/{TEMPLATE}/docs")
    page.get_by_role("button", name="Open template menu").click()
    page.get_by_role("menuitem", name="Edit files").click()
    page.get_by_role("button", name="Create file").click()
    page.get_by_label("File path").fill("more.tf")
    page.get_by_role("dialog").get_by_role("button", name="Create file").click()
    code = page.get_by_role("textbox", name="more.tf")
    code.click()
    page.keyboard.insert_text('resource "coder_nonsense" "x" {}\n')
    page.get_by_role("button", name="Build", exact=True).click()
    expect(page.get_by_text("The build failed")).to_be_visible()
    expect(page.get_by_role("button", name="Publish")).to_be_disabled()
    code.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(
        'resource "coder_env" "added" {\n  agent_id = coder_agent.main.id\n  name     = "ADDED"\n'
    )
    page.keyboard.insert_text('  value    = "by the editor"\n}\n')
    page.get_by_role("button", name="Build", exact=True).click()
    expect(page.get_by_role("tab", name="Resources")).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog", name="Publish new version")
    dialog.get_by_label("Version name").fill("second")
    dialog.get_by_label("Message").fill("A variable more")
    dialog.get_by_role("button", name="Publish").click()
    expect_message(page, 'Version "second" published successfully.')
    active = scene.api("GET", f"/organizations/default/templates/{TEMPLATE}")["active_version_id"]
    assert active != before
    assert scene.api("GET", f"/templateversions/{active}")["name"] == "second"


def test_workspace_update_stop_delete(page: Page, scene: Scene) -> None:
    page.goto(f"/@ana/{NAME}")
    status = page.get_by_test_id("workspace-status")
    agent = page.get_by_role("article").get_attribute("data-agent")
    page.get_by_test_id("workspace-update-button").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_role("article")).not_to_have_attribute("data-agent", agent or "")
    expect(status).to_contain_text("Workspace status: Running")
    expect(page.get_by_test_id("workspace-update-button")).to_have_count(0)
    build = scene.api("GET", f"/users/me/workspace/{NAME}")["latest_build"]
    assert build["template_version_name"] == "second"
    assert "by the editor" in scene.server.coder("ssh", NAME, "--", "echo $ADDED")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(status).to_contain_text("Workspace status: Stopped")
    page.get_by_test_id("workspace-options-button").click()
    page.get_by_test_id("delete-button").click()
    page.get_by_test_id("delete-dialog-name-confirmation").fill(NAME)
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_text("This workspace was deleted")).to_be_visible()
    assert scene.api("GET", "/workspaces")["count"] == 0


def test_template_delete(page: Page, scene: Scene) -> None:
    page.goto(f"/templates/{TEMPLATE}/docs")
    page.get_by_role("button", name="Open template menu").click()
    page.get_by_role("menuitem", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete template")).to_be_disabled()
    dialog.get_by_role("textbox").fill(TEMPLATE)
    dialog.get_by_role("button", name="Delete template").click()
    expect(page.get_by_role("heading", name="No templates yet")).to_be_visible()
    assert scene.api("GET", "/organizations/default/templates") == []
