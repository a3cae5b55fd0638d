"""Sign-in and account linking in a real browser, at a third-party OpenID provider (`oidc-provider`); by device code, at
a provider of the test suite; and this deployment as the provider of an application.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.dashboard.browser import PHONE, TOO_WIDE, excess, expect_message, missing, visitor
from tests.kit.server.server_process import ROOT, Loopback, open_loopback
from tests.kit.stand_ins.oidc_provider import DeviceProvider

PROVIDER = ROOT / "tests/interop/openid"
SECRET = "a secret of ours"
EMAIL, PASSWORD = "ana@example.com", "Browser-Password-7-very-long"
LINK = "CODER_EXTERNAL_AUTH_0_"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH"),
    pytest.mark.skipif(not (PROVIDER / "node_modules/oidc-provider").is_dir(), reason="run scripts/test"),
]


@pytest.fixture(scope="module")
def desk() -> Iterator[DeviceProvider]:
    found = DeviceProvider()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture(scope="module")
def server(
    browser: Browser, desk: DeviceProvider
) -> Iterator[Loopback]:  # the browser comes first because it may skip the test
    started: list[subprocess.Popen[bytes]] = []

    def with_provider(found: Loopback) -> None:
        """Start a provider with this server's addresses, and configure the server with the provider."""
        back = [f"{found.url}/api/v2/users/oidc/callback", f"{found.url}/external-auth/forge/callback"]
        process = subprocess.Popen(
            ["node", str(PROVIDER / "provider.mjs"), *back],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        assert process.stdout is not None
        issuer = process.stdout.readline().decode().strip()
        found.variables = {
            "CODER_OIDC_ISSUER_URL": issuer,
            "CODER_OIDC_CLIENT_ID": "coder",
            "CODER_OIDC_CLIENT_SECRET": SECRET,
            "CODER_OIDC_SIGN_IN_TEXT": "Sign in with the Forge",
            f"{LINK}ID": "forge",
            f"{LINK}TYPE": "custom",
            f"{LINK}DISPLAY_NAME": "Forge",
            f"{LINK}CLIENT_ID": "coder",
            f"{LINK}CLIENT_SECRET": SECRET,
            f"{LINK}SCOPES": "openid profile",
            f"{LINK}AUTH_URL": f"{issuer}/auth",
            f"{LINK}TOKEN_URL": f"{issuer}/token",
            f"{LINK}VALIDATE_URL": f"{issuer}/me",
            **desk.variables(1),
        }

    try:
        with open_loopback("--experiments=oauth2", before=with_provider) as found:
            first = {"email": EMAIL, "username": "ana", "password": PASSWORD, "name": "", "trial": False}
            found.request("POST", "/api/v2/users/first", first)
            found.sign_in(EMAIL, PASSWORD)
            yield found
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.fixture
def page(browser: Browser, server: Loopback) -> Iterator[Page]:
    context = visitor(browser, server.url)
    yield context.new_page()
    context.close()


def signed_in(page: Page, server: Loopback) -> None:
    page.context.add_cookies([{"name": "coder_session_token", "value": server.token, "url": server.url}])


def at_the_provider(page: Page, person: str) -> None:
    """Fill in the provider's two forms: the login, and the consent."""
    page.locator("input[name=login]").fill(person)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def api(server: Loopback, path: str) -> Any:
    return server.request("GET", f"/api/v2{path}", None, server.token)


def test_external_account_link_unlink(page: Page, server: Loopback) -> None:
    signed_in(page, server)
    page.goto("/external-auth/forge")  # redirects to the provider
    at_the_provider(page, "subject-1")
    expect(page.get_by_role("heading", name="You've authenticated with Forge!")).to_be_visible()
    expect(page).to_have_title(re.compile("^Authenticate with Forge"))
    assert page.url.startswith(f"{server.url}/external-auth/forge")
    assert api(server, "/external-auth/forge")["authenticated"] is True
    page.goto("/settings/external-auth")
    expect(page.get_by_text("Forge", exact=True)).to_be_visible()
    page.get_by_role("button", name=re.compile("^Unlink")).click()
    page.get_by_test_id("confirm-button").click()
    expect_message(page, "Forge unlinked")
    assert api(server, "/external-auth/forge")["authenticated"] is False


def test_declined_link_is_not_redirected_again(page: Page, server: Loopback) -> None:
    signed_in(page, server)
    page.goto("/external-auth/forge?redirected=true")
    expect(page.get_by_role("heading", name="Link Forge")).to_be_visible()
    page.get_by_role("link", name="Continue with Forge").click()
    expect(page.locator("input[name=login]").or_(page.get_by_role("button", name="Continue"))).to_be_visible()


def test_unknown_provider_page_not_found(page: Page, server: Loopback) -> None:
    signed_in(page, server)
    page.goto("/external-auth/nowhere")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()


def test_oidc_sign_in_returns_to_target(page: Page, server: Loopback) -> None:
    page.goto("/templates")
    expect(page).to_have_url(re.compile(r"/login\?redirect=%2Ftemplates$"))
    page.get_by_role("link", name="Sign in with the Forge").click()
    at_the_provider(page, "subject-1")
    expect(page).to_have_url(f"{server.url}/templates")
    expect(page.get_by_text("ada", exact=True)).to_be_visible()
    [made] = [user for user in api(server, "/users")["users"] if user["username"] == "ada"]
    assert (made["email"], made["login_type"]) == ("ada@example.com", "oidc")


def test_external_account_link_by_device_code(page: Page, server: Loopback, desk: DeviceProvider) -> None:
    signed_in(page, server)
    page.goto("/external-auth/desk")
    expect(page.get_by_test_id("user-code")).to_have_text("WDJB-MJHT")
    expect(page.get_by_role("link", name="Open and paste")).to_have_attribute("href", f"{desk.url}/confirm")
    with page.expect_response(
        lambda answer: answer.request.method == "POST" and answer.url.endswith("/device")
    ) as said:
        expect(page.get_by_text("Waiting for your confirmation there")).to_be_visible()
    assert said.value.status == 400  # not yet
    desk.confirmed = True
    expect(page.get_by_role("heading", name="You've authenticated with Desk!")).to_be_visible()
    assert api(server, "/external-auth/desk")["authenticated"] is True


def test_oauth2_application_allow_and_deny(page: Page, server: Loopback, desk: DeviceProvider) -> None:
    body = {"name": "Wiki", "callback_url": f"{desk.url}/back", "icon": ""}
    app = server.request("POST", "/api/v2/oauth2-provider/apps", body, server.token)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(b"v" * 43).digest()).rstrip(b"=").decode()
    question = "/oauth2/authorize?" + urlencode(
        {
            "client_id": app["id"],
            "response_type": "code",
            "state": "mine",
            "redirect_uri": f"{desk.url}/back",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "scope": "workspace:read",
        }
    )
    page.goto(question)
    expect(page).to_have_url(re.compile(r"/login\?"))  # sign-in comes before consent
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Authorize Wiki")).to_be_visible()
    expect(page.get_by_text("workspace:read")).to_be_visible()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert excess(page, TOO_WIDE) <= 0
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile(r"/back\?"))
    assert parse_qs(urlsplit(page.url).query) | {"error_description": []} == {
        "error": ["access_denied"],
        "state": ["mine"],
        "error_description": [],
    }
    page.goto(question)
    page.get_by_role("button", name="Allow").click()
    expect(page).to_have_url(re.compile(r"/back\?"))
    came = parse_qs(urlsplit(page.url).query)
    assert came["state"] == ["mine"] and came["code"][0]
