"""Attacks that are the same for every route: cross-site reads, search terms as patterns, path traversal, forged log
lines, repeated cookies, foreign device codes.

Each test has a control: a legitimate request of the same kind succeeds.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
import trio

from coder.base import log
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply
from coder.coderd.services.login import external_auth, oauth_exchange
from tests.kit.api.api_description import application
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.server.two_organizations import foreign_world
from tests.unit.coderd.services.login.test_external_auth import ME, authenticated, deployment

UNKNOWN_ID = "00000000-0000-4000-8000-00000000dead"
EVERYBODYS = re.compile(r"^/(latency-check|\.well-known/|derp)")
"Public data, which pages of other hosts of the deployment read."


async def test_cross_site_reads_are_refused() -> None:
    """Every route, requested as a browser does for a foreign page: the preflight, and the request."""
    wrong, asked = [], 0
    async with running_coderd(first_user=True, experiments=("oauth2",)) as world:
        cookie = f"coder_session_token={world.token}"
        own_page = await world.client.get("/api/v2/users/me", headers={"Cookie": cookie, "Origin": world.url})
        assert own_page.status_code == 200, "the own page may read"
        for rule in application().url_map.iter_rules():
            if rule.websocket or EVERYBODYS.match(rule.rule) or "logout" in rule.rule or "profile" in rule.rule:
                continue
            path = re.sub(r"<(?:[^:<>]*:)?[^<>]*>", UNKNOWN_ID, rule.rule)
            before = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "coder-session-token"}
            for origin in ("https://evil.test", "null", f"{world.url}.evil.test"):
                for method, more in (("OPTIONS", before), ("HEAD", {"Cookie": cookie})):
                    asked += 1
                    with trio.move_on_after(60) as late:
                        response = await world.client.request(method, path, headers={"Origin": origin, **more})
                    world.client.cookies.clear()
                    if late.cancelled_caught:
                        wrong.append(f"{method} {path}: no answer")
                    elif any(name.startswith("access-control-allow") for name in response.headers):
                        wrong.append(f"{method} {path} from {origin}: {response.status_code} {dict(response.headers)}")
    assert asked > 1000
    assert not wrong, "\n".join(wrong[:40])


PATTERNS = ("%", "_", "%%", "a_min", "adm%", "\\", "\\%", ".*", "^admin$", "a(d|x)min", "[a-z]*", "*", "adm?n")
LISTS = (
    # (path, search by a part of a name, search that matches, key of the list)
    ("/api/v2/users", "{}", "admin", "users"),
    ("/api/v2/users", "name:{}", "", "users"),
    ("/api/v2/templates", "name:{}", "victims", ""),
    ("/api/v2/templates", "exact_name:{}", "victims", ""),
    ("/api/v2/templates", "organization:{}", "coder", ""),
    ("/api/v2/workspaces", "name:{}", "victim-box", "workspaces"),
    ("/api/v2/workspaces", "owner:{}", "victim", "workspaces"),
    ("/api/v2/workspaces", "template:{}", "victims", "workspaces"),
    ("/api/v2/audit", "username:{}", "admin", "audit_logs"),
    ("/api/v2/audit", "resource_target:{}", "victims", "audit_logs"),
    ("/api/v2/audit", "organization:{}", "elsewhere", "audit_logs"),
    ("/api/v2/connectionlog", "workspace_owner:{}", "", "connection_logs"),
)


WITH_WILDCARDS = {
    ("/api/v2/users", "{}"),
    ("/api/v2/users", "name:{}"),
    ("/api/v2/templates", "name:{}"),
    ("/api/v2/workspaces", "name:{}"),
}
"""Searches in which the original keeps the wildcards of LIKE (`store/engine/test_search_patterns.py`)."""


async def test_search_terms_are_literal() -> None:
    """Wildcards of LIKE, but for some searches by name, and of regular expressions are plain characters; an object is
    found by its name."""
    wrong = []
    async with foreign_world() as scene:
        world = scene.world
        for path, search, real, key in LISTS:

            async def ask(text: str, path: str = path, search: str = search) -> httpx.Response:
                return await world.get(path, params={"q": search.format(f'"{text}"')})

            if real:
                control = await ask(real)
                rows = control.json() if not key else control.json()[key]
                assert control.status_code == 200 and rows, f"{path} {search.format(real)}: {control.text[:200]}"
            for pattern in PATTERNS:
                if (path, search) in WITH_WILDCARDS and set(pattern) & {"%", "_"}:
                    continue
                response = await ask(pattern)
                body: Any = response.json() if response.status_code == 200 else []
                rows = body[key] if key and body else body
                if response.status_code not in {200, 400} or rows:
                    wrong.append(f"{path} {search.format(pattern)}: {response.status_code} {len(rows)} rows")
    assert not wrong, "\n".join(wrong)


FOLDERS = ("", "assets/", "icon/", "emojis/", "static/", "bin/", "swagger/")
UP = (
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%252f",
    "..\\",
    "..%5c",
    "%252e%252e%252f",
    "..%c0%af",
    "....//",
    "..;/",
    "%00../",
    "/",
    "//",
    "%2f",
    "C:%5c",
)
TARGETS = ("etc/passwd", "pyproject.toml", "coder/__init__.py", "server.py", "proc/self/environ")
_BETRAYED = re.compile(r"root:x:0|\[project\]|__future__|PATH=")


async def test_file_names_stay_in_folder() -> None:
    wrong, asked = [], 0
    async with running_coderd(first_user=True, swagger_enable=True) as world:
        parts = urlsplit(world.url)
        reply = await _bytes(world, "/swagger/page.js")
        assert b" 200 " in reply.splitlines()[0], "a file in the folder is served"
        for folder in FOLDERS:
            for up in UP:
                for target in TARGETS:
                    asked += 1
                    reply = await _bytes(world, f"/{folder}{up * 8}{target}")
                    if _BETRAYED.search(reply.decode("latin-1")) or reply.split()[1].startswith(b"5"):
                        wrong.append(f"/{folder}{up}…{target}: {reply[:60]!r}")
        assert parts.port
    assert asked > 500
    assert not wrong, "\n".join(wrong)


async def _bytes(world: World, target: str, more: str = "") -> bytes:
    """Return the whole response to a path that no normal client sends unchanged."""
    parts = urlsplit(world.url)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        await stream.send_all(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n".encode("latin-1"))
        received = b""
        with trio.fail_after(60):
            while piece := await stream.receive_some():
                received += piece
    return received


FORGED = (
    "x\nlevel=error forged",
    "x\r\nforged: 1",
    "\x1b[31mforged\x1b]0;forged\x07",
    "x\u2028forged",
    "\u202eforged",
    "x\x85forged",
    "x\x00forged",
    "x\x0bforged",
    "x\x9bforged",
)


async def test_log_lines_cannot_be_forged() -> None:
    """Texts about users and programs that the server may log: a line stays a line."""
    out = io.StringIO()
    async with running_coderd(first_user=True) as world:
        with log.also(log.human_sink(out)):
            log.get_logger("control").info("a line")
            for text in FORGED:
                await world.client.get(f"/api/v2/{quote(text)}", headers={"User-Agent": quote(text)})
                for path, body in (
                    ("/api/v2/users/login", {"email": text, "password": text}),
                    ("/api/v2/users/otp/request", {"email": text}),
                    (
                        "/api/v2/users/otp/change-password",
                        {"email": text, "password": FIRST_USER["password"], "one_time_passcode": text},
                    ),
                    ("/api/v2/csp/reports", {"csp-report": {text: text}}),
                    ("/api/v2/users/me/keys/tokens", {"token_name": text}),
                    ("/api/v2/organizations", {"name": "fine", "display_name": text}),
                ):
                    response = await world.post(path, body)
                    assert response.status_code < 500, (path, text, response.text)
                    world.client.cookies.clear()
                await _bytes(world, "/api/v2/buildinfo", f"User-Agent: {text.encode('utf-8').hex()}\x1b[31m\r\n")
    lines = out.getvalue().splitlines()
    assert any("control: a line" in line for line in lines)
    forged = [line for line in lines if not re.match(r"\d{4}-\d\d-\d\d .* \[", line) or not line.isprintable()]
    assert not forged, forged


async def test_repeated_cookies_grant_nothing() -> None:
    """Cookies with similar names, and a valid one among invalid ones: only the holder of a key is authenticated."""
    async with running_coderd(first_user=True) as world:
        me, token = await world.member("mary")
        bad = f"{token.partition('-')[0]}-{'x' * 22}"
        control = await world.client.get("/api/v2/users/me", headers={"Cookie": f"coder_session_token={token}"})
        assert control.json()["id"] == me
        for cookie in (
            f"__Host-coder_session_token={token}",
            f"__Secure-coder_session_token={token}",
            f"Coder_Session_Token={token}",
            f"coder_session_token ={token}x",
            f"coder_session_token={token};x={bad}".replace(token, bad),
            f"x=coder_session_token={token}",
            f'x="; coder_session_token={bad}; y="',
            f"coder_session_token={bad}; $Path=/",
            f"coder_session_token={token},{token}",
        ):
            response = await world.client.get("/api/v2/users/me", headers={"Cookie": cookie})
            world.client.cookies.clear()
            assert response.status_code == 401, f"{cookie}: {response.text[:100]}"
        for first, second in ((token, world.token), (world.token, token), (bad, token), (token, bad)):
            both = f"coder_session_token={first}; coder_session_token={second}"
            response = await world.client.get("/api/v2/users/me", headers={"Cookie": both})
            world.client.cookies.clear()
            assert response.status_code in {200, 401}


DEVICE_CODES = (
    "",
    " ",
    "x" * 100_000,
    "a&client_id=other",
    "a\r\nX: y",
    "a\x00b",
    "\u202e",
    "../../token",
    "%26scope=x",
)


async def test_device_code_links_its_user() -> None:
    """An invalid code, a caller without permission, and a second use of the other user's account."""
    async with deployment() as (world, _idp):
        _, other = await world.member("other")
        begun = (await world.get(f"{ME}/dev/device")).json()
        for code in DEVICE_CODES:
            response = await world.post(f"{ME}/dev/device", {"device_code": code}, token="")
            assert response.status_code == 401
        for provider in ("fake", "none", "dev%2f..", "DEV"):
            response = await world.post(f"{ME}/{provider}/device", {"device_code": begun["device_code"]})
            assert response.status_code in {400, 404}, f"{provider}: {response.text}"
        assert (await world.post(f"{ME}/dev/device", {"device_code": ""})).status_code == 400
        assert (await world.post(f"{ME}/dev/device", {"device_code": begun["device_code"]})).status_code == 204
        assert await authenticated(world, "dev")
        theirs = await world.get(f"{ME}/dev", token=other)
        assert theirs.json()["authenticated"] is False


@pytest.mark.parametrize("number", ["1e999", "-1", '"x"', "null", "[]", "{}", "true", "1e18", "1" + "0" * 400])
async def test_strange_provider_reply_is_reported(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers cause no errors of the server."""
    body = f'{{"device_code":"c","user_code":"u","verification_uri":"https://p.test","expires_in":{number}}}'

    async def fake_fetch(*_: object, **__: object) -> OutgoingReply:
        return OutgoingReply(200, body.encode())

    async with deployment() as (world, _):
        assert (await world.get(f"{ME}/dev/device")).status_code == 200, "a normal reply"
        monkeypatch.setattr(external_auth, "fetch", fake_fetch)
        response = await world.get(f"{ME}/dev/device")
        assert response.status_code == 200 and 0 < response.json()["expires_in"] < 10**9, response.text
        granted = oauth_exchange._expiry(world.ctx.clock.now(), json.loads(number))
        assert granted is None or granted > world.ctx.clock.now()
        who = OutgoingReply(200, f'{{"id":{number},"login":"x"}}'.encode())
        user = external_auth._parsed(who, external_auth._github_user)
        assert user is None or abs(user.id) < 2**63


@pytest.mark.parametrize(
    "path", ["/@%00/w/apps/a/", "/@admin/w%00/apps/a/", "/@admin/w.%00/apps/a%00/", "/@%ED%A0%80/w/apps/a/"]
)
async def test_applications_of_impossible_names_are_missing(path: str) -> None:
    """A NUL reached PostgreSQL: 500 for anybody, and the statement in the log."""
    async with running_coderd(first_user=True) as world, http_client(world.url) as client:
        for headers in ({}, {"Coder-Session-Token": world.token}):
            assert (await client.get(path, headers=headers)).status_code in {303, 307, 404}
