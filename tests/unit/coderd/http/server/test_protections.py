"""Settings of protection: the prefixed cookie, and a deployment for browsers only."""

from __future__ import annotations

from typing import Any

import pytest

from coder.base.secret import Secret
from coder.domain.access.session_cookies import (
    PATH_SESSION_COOKIE,
    SESSION_COOKIE,
    SUBDOMAIN_SESSION_COOKIE,
    renamed,
)
from coder.domain.apps.app_headers import from_app, to_app
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd

NOBODYS = "00000000-0000-4000-8000-000000000007"

PREFIXED = f"__Host-{SESSION_COOKIE}"


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("", ""),
        (f"{SESSION_COOKIE}=planted", ""),
        (f"{PREFIXED}=mine", f"{SESSION_COOKIE}=mine"),
        (f"a=b; {SESSION_COOKIE}=planted;{PREFIXED}=mine; c=d", f"a=b; {SESSION_COOKIE}=mine; c=d"),
        (f"{PREFIXED}2=x", f"{PREFIXED}2=x"),
        (f" {SESSION_COOKIE} =planted", ""),
        (f"x={PREFIXED}=mine", f"x={PREFIXED}=mine"),
        (f"{PATH_SESSION_COOKIE}=planted; {SUBDOMAIN_SESSION_COOKIE}_0a=planted", ""),
        (f"__Host-{SUBDOMAIN_SESSION_COOKIE}_0a=mine", f"{SUBDOMAIN_SESSION_COOKIE}_0a=mine"),
    ],
)
def test_only_the_prefixed_session_counts(sent: str, read: str) -> None:
    assert renamed(sent) == read


async def _me(world: World, cookie: str) -> int:
    answer = await world.get("/api/v2/users/me", token="", headers={"Cookie": cookie})
    return answer.status_code


async def test_only_prefixed_cookie_signs_in() -> None:
    async with running_coderd(first_user=True, host_prefix_cookie=True) as world:
        body = {"email": FIRST_USER["email"], "password": FIRST_USER["password"]}
        answer = await world.post("/api/v2/users/login", body, token="")
        (line,) = [item for item in answer.headers.get_list("set-cookie") if SESSION_COOKIE in item]
        token = answer.json()["session_token"]
        assert line.startswith(f"{PREFIXED}={token}; Path=/; ") and "; Secure" in line and "Domain" not in line
        world.client.cookies.clear()
        assert await _me(world, f"{PREFIXED}={token}") == 200
        assert await _me(world, f"{SESSION_COOKIE}={token}") == 401, "a neighbouring host could have planted it"
        assert await _me(world, f"{SESSION_COOKIE}={token}; {PREFIXED}={token}") == 200
        world.client.cookies.clear()
        assert (await world.get("/api/v2/users/me", token=token)).status_code == 200, "programs send a header"
        out = await world.post("/api/v2/users/logout", token=token)
        assert any(item.startswith(f"{PREFIXED}=;") and "Secure" in item for item in out.headers.get_list("set-cookie"))


async def test_plain_cookie_without_setting() -> None:
    async with running_coderd(first_user=True) as world:
        assert await _me(world, f"{SESSION_COOKIE}={world.token}") == 200
        assert await _me(world, f"{PREFIXED}={world.token}") == 401


def test_applications_cannot_use_prefixed_cookie() -> None:
    heads: Any = [(b"host", b"x"), (b"cookie", f"{PREFIXED}=mine; a=b".encode())]
    sent = to_app(heads, remote_ip="1.2.3.4", scheme="https", dashboard_origin=True, credential="")
    assert dict(sent)[b"cookie"] == b"a=b"
    answered = from_app(
        [(b"set-cookie", f"{PREFIXED}=planted; Secure; Path=/".encode())], base_path="/@a/b/apps/c/", cors=None
    )
    assert answered == []


@pytest.mark.parametrize("path", ["/api/v2/tailnet?version=2.0", f"/api/v2/workspaceagents/{NOBODYS}/coordinate"])
async def test_browser_only_refuses_overlay_clients(path: str) -> None:
    async with running_coderd(first_user=True, browser_only=True) as world:
        with pytest.raises(Exception, match="Non-browser connections are disabled"):
            await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), path)
        assert (await world.get("/api/v2/users/me")).status_code == 200


async def test_public_change_with_session_needs_token() -> None:
    """A login replaces the session of the cookie, so another site must not cause it; upstream refuses it, too."""
    async with running_coderd(first_user=True) as world:
        login = {"email": FIRST_USER["email"], "password": FIRST_USER["password"]}
        session, path = f"coder_session_token={world.token}", "/api/v2/users/login"

        async def status(path: str = path, **headers: str) -> int:
            world.client.cookies.clear()
            return (await world.client.post(path, json=login, headers=headers)).status_code

        assert await status() == 201
        assert await status(Cookie=session) == 400
        assert await status(Cookie=f"{session}; csrf_token=a", **{"X-CSRF-TOKEN": "b"}) == 400
        assert await status(Cookie=f"{session}; csrf_token=a", **{"X-CSRF-TOKEN": "a"}) == 201
        assert await status(Cookie=session, **{"Coder-Session-Token": world.token}) == 201
        assert await status("/api/v2/csp/reports", Cookie=session) == 200
