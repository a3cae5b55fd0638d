"""The OAuth2 consent page in a real browser: the browser, not a test, decides what its form sends.

At a host name that the browser trusts (a loopback address) and at one that it does not, where it sends less about the
origin of a request.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.dashboard.browser import CHROMIUM, launched, visitor
from tests.kit.server.server_process import Loopback, open_loopback

EMAIL, PASSWORD = "ana@example.com", "Browser-Password-7-very-long"
VERIFIER = "v" * 60
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
UNTRUSTED = "coder.test"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed"),
]


@dataclass
class Application:
    """The authorized application, which listens at its redirect address."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    client_id: str = ""
    secret: str = ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched(f"--host-resolver-rules=MAP {UNTRUSTED} 127.0.0.1")


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:  # the browser comes first because it may skip the test
    with open_loopback("--experiments", "oauth2") as found:
        found.request("POST", "/api/v2/users/first", {"email": EMAIL, "username": "ana", "password": PASSWORD})
        found.sign_in(EMAIL, PASSWORD)
        yield found


@pytest.fixture
def application(server: Loopback) -> Iterator[Application]:
    app = Application()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            app.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<h1>welcome back</h1>")

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as listener:
        app.url = f"http://127.0.0.1:{listener.server_address[1]}/back"
        serving = threading.Thread(target=listener.serve_forever)
        serving.start()
        body = {"name": f"app-{listener.server_address[1]}", "callback_url": app.url}
        path = "/api/v2/oauth2-provider/apps"
        app.client_id = server.request("POST", path, body, server.token)["id"]
        made = server.request("POST", f"{path}/{app.client_id}/secrets", None, server.token)
        app.secret = made["client_secret_full"]
        yield app
        listener.shutdown()
        serving.join()


def consent_page(browser: Browser, server: Loopback, app: Application, host: str) -> Page:
    base = server.url.replace("127.0.0.1", host)
    context = visitor(browser, base, server.token)
    asked = {"client_id": app.client_id, "response_type": "code", "redirect_uri": app.url, "state": "s t"}
    page = context.new_page()
    page.goto("/oauth2/authorize?" + urlencode(asked | {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}))
    expect(page.get_by_role("heading")).to_contain_text("Authorize app-")
    return page


@pytest.mark.parametrize("host", ["127.0.0.1", UNTRUSTED])
def test_allow_redirects_with_code(browser: Browser, server: Loopback, application: Application, host: str) -> None:
    page = consent_page(browser, server, application, host)
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading")).to_have_text("welcome back")
    page.context.close()
    found = parse_qs(urlsplit(next(path for path in application.asked if path.startswith("/back"))).query)
    assert found["state"] == ["s t"]
    form = {"grant_type": "authorization_code", "code": found["code"][0], "redirect_uri": application.url}
    form |= {"client_id": application.client_id, "client_secret": application.secret, "code_verifier": VERIFIER}
    given = httpx.post(f"{server.url}/oauth2/tokens", data=form, timeout=60)
    assert given.status_code == 200, given.text
    headers = {"Coder-Session-Token": given.json()["access_token"]}
    me = httpx.get(f"{server.url}/api/v2/users/me", headers=headers, timeout=60)
    assert me.json()["username"] == "ana"


def test_cancel_redirects_without_code(browser: Browser, server: Loopback, application: Application) -> None:
    page = consent_page(browser, server, application, "127.0.0.1")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("heading")).to_have_text("welcome back")
    page.context.close()
    assert parse_qs(urlsplit(application.asked[0]).query)["error"] == ["access_denied"]
