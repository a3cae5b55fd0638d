"""Logging in against an OpenID Connect provider that nobody here wrote: `oidc-provider`, a certified one.

The browser is an HTTP client that follows redirects and fills in the provider's forms. Everything a person sees happen
is checked: the account made, groups kept in step, the tokens the provider refuses.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from coder.base.secret import Secret
from tests.kit.server.server_in_process import World, running_coderd

HERE = Path(__file__).resolve().parent / "openid"
ACCESS_URL = "http://coder.test"
"Where the provider sends people back; the browser below knows that this is our server."
SECRET = "a secret of ours"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH"),
    pytest.mark.skipif(
        not (HERE / "node_modules/oidc-provider").is_dir(), reason="run scripts/test, which installs it"
    ),
]


@asynccontextmanager
async def deployment(secret: str = SECRET, **settings: Any) -> AsyncIterator[tuple[World, str]]:
    """A server that trusts a fresh provider: (world, issuer)."""
    command = ["node", str(HERE / "provider.mjs"), f"{ACCESS_URL}/api/v2/users/oidc/callback"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        issuer = process.stdout.readline().decode().strip()
        try:
            async with running_coderd(
                first_user=True,
                access_url=ACCESS_URL,
                oidc_issuer_url=issuer,
                oidc_client_id="coder",
                oidc_client_secret=Secret(secret),
                oidc_scopes=("openid", "email", "profile", "groups", "offline_access"),
                **settings,
            ) as world:
                yield world, issuer
        finally:
            process.kill()


def form_of(page: str) -> tuple[str, dict[str, str]]:
    """Where a page's form goes and the hidden fields it carries."""
    target = re.search(r'<form[^>]* action="([^"]+)"', page)
    assert target, page
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page)
    return html.unescape(target[1]), dict(hidden)


async def sign_in(world: World, person: str) -> httpx.Response:
    """A person's whole way: our button, the provider's two forms, and back. Returns our last answer."""
    async with httpx.AsyncClient(timeout=60) as browser:
        answer = await browser.get(f"{world.url}/api/v2/users/oidc/callback?redirect=/workspaces")
        for _ in range(12):
            if answer.is_redirect:
                there = urljoin(str(answer.url), answer.headers["location"])
                ours = there.startswith(ACCESS_URL)
                answer = await browser.get(there.replace(ACCESS_URL, world.url) if ours else there)
                if ours:
                    return answer
            elif "<form" in answer.text:
                target, fields = form_of(answer.text)
                answer = await browser.post(target, data={**fields, "login": person, "password": "any"})
            else:
                return answer
    raise AssertionError("the provider sent us round and round")


async def test_provider_account_becomes_user() -> None:
    settings: dict[str, Any] = {"oidc_group_field": "groups", "oidc_group_auto_create": True}
    async with deployment(**settings) as (world, issuer):
        first = await sign_in(world, "subject-1")
        assert first.status_code == 307 and first.headers["location"] == "/workspaces", first.text
        token = first.cookies["coder_session_token"]
        me = (await world.get("/api/v2/users/me", token=token)).json()
        assert (me["username"], me["email"], me["name"]) == ("ada", "ada@example.com", "Ada L.")
        assert me["login_type"] == "oidc"
        claims = (await world.get("/api/v2/users/oidc-claims", token=token)).json()["claims"]
        assert claims["iss"] == issuer and claims["aud"] == "coder" and claims["groups"] == ["makers"]
        groups = (await world.get(f"/api/v2/groups?has_member={me['id']}")).json()
        assert {group["name"] for group in groups} >= {"makers"}
        again = await sign_in(world, "subject-1")
        assert (await world.get("/api/v2/users/me", token=again.cookies["coder_session_token"])).json()["id"] == me[
            "id"
        ]


async def test_provider_refusals_are_reported() -> None:
    async with deployment() as (world, _issuer):
        unverified = await sign_in(world, "subject-2")
        assert unverified.status_code == 403 and "verif" in unverified.text
        stranger = await sign_in(world, "subject-3")
        assert "coder_session_token" not in stranger.cookies
        assert (await world.get("/api/v2/users")).json()["count"] == 1
    async with deployment(secret="not the secret") as (world, _issuer):
        refused = await sign_in(world, "subject-1")
        assert refused.status_code == 500 and "invalid_client" in refused.text and "not the secret" not in refused.text
        assert urlsplit(str(refused.url)).path == "/api/v2/users/oidc/callback"
