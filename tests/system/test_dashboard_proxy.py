"""A workspace proxy selected in the dashboard: its latency, that the choice is kept, and that terminals and
applications use it. The proxy is the real program, as is everything behind it.
"""

from __future__ import annotations

import http.server
import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.dashboard.browser import SOON, missing, visitor
from tests.kit.free_ports import free_port
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL, PASSWORD = "ana@example.com", "Browser-Password-7-very-long"
HELLO = "hello from the workspace"
APPS = """
resource "coder_app" "page" {
  agent_id     = coder_agent.main.id
  slug         = "page"
  display_name = "Page by path"
  url          = "http://localhost:PORT"
}

resource "coder_app" "own" {
  agent_id     = coder_agent.main.id
  slug         = "own"
  display_name = "Page by host"
  url          = "http://localhost:PORT"
  subdomain    = true
}
"""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


class Hello(http.server.BaseHTTPRequestHandler):
    """Application that listens in the workspace."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(HELLO)))
        self.end_headers()
        self.wfile.write(HELLO.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass
class Scene:
    server: Loopback
    proxy: str
    "Address of the proxy."


@pytest.fixture(scope="module")
def scene(browser: Browser) -> Iterator[Scene]:  # the browser comes first because it may skip the test
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    port = free_port()
    with open_loopback() as server:
        first = {"email": EMAIL, "username": "ana", "password": PASSWORD, "name": "", "trial": False}
        server.request("POST", "/api/v2/users/first", first)
        server.sign_in(EMAIL, PASSWORD)
        a_workspace(server, listening.server_port)
        body = {"name": "sydney", "display_name": "Sydney", "icon": ""}
        made = server.request("POST", "/api/v2/workspaceproxies", body, server.token)
        address = f"http://127.0.0.1:{port}"
        process = server.spawn(
            "proxy",
            "workspace-proxy",
            "server",
            "--primary-access-url",
            server.url,
            "--http-address",
            address.removeprefix("http://"),
            "--access-url",
            address,
            "--wildcard-access-url",
            f"*.sydney.localhost:{port}",
            env={"CODER_PROXY_SESSION_TOKEN": made["proxy_token"]},
        )
        server.agents.append(process)  # ended with everything else
        until_well(server)
        yield Scene(server, address)
    listening.shutdown()
    listening.server_close()


def until_well(server: Loopback) -> None:
    """Wait until the proxy is healthy: a page's policy lists the proxies that are healthy when it loads."""
    limit = time.monotonic() + SOON / 1000
    while not all(one["healthy"] for one in server.request("GET", "/api/v2/regions", None, server.token)["regions"]):
        assert time.monotonic() < limit, server.log_ends()
        time.sleep(0.2)


def a_workspace(server: Loopback, port: int) -> None:
    server.push_local_template()
    template = server.folder / "with-pages"
    shutil.copytree(server.folder / "local-process", template)
    (template / "apps.tf").write_text(APPS.replace("PORT", str(port)))
    server.coder(
        "templates",
        "push",
        "with-pages",
        "-d",
        str(template),
        "-y",
        "--variable",
        f"coder_binary={server.folder / 'coder'}",
        "--variable",
        f"data_dir={server.folder / 'workspaces'}",
    )
    server.coder("create", "box", "--template=with-pages", "-y")


@pytest.fixture(scope="module")
def context(browser: Browser, scene: Scene) -> Iterator[BrowserContext]:
    """One browser for the whole file: a choice of one test is visible to the next."""
    found = visitor(browser, scene.server.url, scene.server.token)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; a script error or a policy violation fails the test."""
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    found = context.new_page()
    found.on("console", lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None)
    yield found
    found.close()
    assert problems == []


def test_proxy_latency_and_choice(page: Page, scene: Scene) -> None:
    page.goto("/deployment/workspace-proxies")
    row = page.get_by_test_id("sydney")
    expect(row).to_contain_text("Healthy")
    expect(row).to_contain_text(re.compile(r"\d+ ms"))
    menu = page.get_by_test_id("proxy-menu")
    expect(menu).to_have_accessible_name(re.compile(r"through .*, \d+ milliseconds away"))
    menu.click()
    entry = page.get_by_role("menuitem", name="Sydney")
    expect(entry).to_contain_text(re.compile(r"\d+ ms"))
    entry.click()
    expect(menu).to_have_accessible_name(re.compile(r"through Sydney"))
    page.reload()
    expect(menu).to_have_accessible_name(re.compile(r"through Sydney"))


@pytest.mark.parametrize("name", ["Page by path", "Page by host"])
def test_application_opens_through_proxy(page: Page, scene: Scene, context: BrowserContext, name: str) -> None:
    page.goto("/@ana/box")
    expect(page.get_by_test_id("agent-status")).to_have_attribute("data-status", "connected")
    link = page.get_by_role("link", name=name)
    # The proxies are fetched after the page has loaded; until then the link uses this server.
    expect(link).to_have_attribute("href", re.compile(rf"^http://[^/]*:{urlsplit(scene.proxy).port}/"))
    with context.expect_page() as opened:
        link.click()
    expect(opened.value.get_by_text(HELLO)).to_be_visible()
    assert urlsplit(opened.value.url).port == urlsplit(scene.proxy).port
    opened.value.close()


def test_terminal_reconnects_through_proxy(page: Page, scene: Scene) -> None:
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.goto("/@ana/box.main/terminal")
    status = page.get_by_test_id("terminal-status")
    expect(status).to_have_attribute("data-status", "connected")
    page.keyboard.type("echo $((6*7))-from-here\n")
    screen = page.get_by_test_id("terminal")
    expect(screen).to_contain_text("42-from-here")
    page.reload()  # a ticket is valid for one connection: the next one has its own
    expect(screen).to_contain_text("42-from-here")
    streams = [url for url in sockets if "/pty?" in url]
    assert len(streams) == 2
    assert {f"http://{urlsplit(url).netloc}" for url in streams} == {scene.proxy}


def test_primary_can_be_chosen_again(page: Page, scene: Scene, context: BrowserContext) -> None:
    page.goto("/@ana/box")
    page.get_by_test_id("proxy-menu").click()
    page.get_by_role("menuitem").first.click()
    link = page.get_by_role("link", name="Page by path")
    expect(link).to_have_attribute("href", re.compile("^/@ana/box"))
    with context.expect_page() as opened:
        link.click()
    expect(opened.value.get_by_text(HELLO)).to_be_visible()
    assert opened.value.url.startswith(scene.server.url)
    opened.value.close()
