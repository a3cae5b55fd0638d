"""Attacks by pages of other sites, by names in headers, and by malformed addresses.

Each row is one request. A browser's Origin header can only reduce rights. Headers of proxies count only from trusted
proxies. Applications are in `test_attacks_on_applications.py`.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx
import pytest
import trio

from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.unit.coderd.services.login.test_oauth2_provider import client
from tests.unit.conformance.test_foreign_ids_in_websockets import streams

ELSEWHERE = (
    "http://[",
    "http://[::1",
    "http://evil.test",
    "null",
    "file://",
    "//",
    "http://{host}@evil.test",
    "http://x@{host}",
    "http://{host}.evil.test",
    "http://{host}:1",
    "chrome-extension://x",
    "http://\xe2\x84\x80",
)
"""Origins other than this server, however similar, and malformed ones."""
_UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
_ANY_ORIGIN = {"/derp", "/derp/streams"}
"Relays know no users and no cookies: the holder of a node's key speaks for the node."


async def _raw(world: World, head: str) -> bytes:
    """Return the first line of the response."""
    parts = urlsplit(world.url)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        await stream.send_all(head.encode("latin-1"))
        with trio.fail_after(60):
            received = b""
            while b"\r\n" not in received:
                received += await stream.receive_some()
    return received.partition(b"\r\n")[0]


async def test_cross_site_websockets_are_refused() -> None:
    """Every WebSocket, with an owner's cookie as a browser would add it."""
    wrong, asked = [], 0
    async with running_coderd(first_user=True) as world:
        host = urlsplit(world.url).netloc
        for stream in streams():
            if stream.rule in _ANY_ORIGIN:
                continue
            path = re.sub(r"\{[^}]*\}", str(uuid4()), stream.rule)
            for origin in ELSEWHERE:
                asked += 1
                head = f"GET {path}?version=2.0 HTTP/1.1\r\nHost: {host}\r\n{_UPGRADE}"
                head += f"Origin: {origin.format(host=host)}\r\nCookie: coder_session_token={world.token}\r\n\r\n"
                reply = await _raw(world, head)
                if reply.split()[1] not in {b"400", b"401", b"403", b"404"}:
                    wrong.append(f"{path} from {origin!r}: {reply!r}")
    assert asked > 200
    assert not wrong, "\n".join(wrong)


CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/v2/users/me/keys", None),
    ("POST", "/api/v2/users/me/keys/tokens", {"token_name": "stolen"}),
    ("PUT", "/api/v2/users/me/password", {"old_password": FIRST_USER["password"], "password": "Another1Secure!"}),
    ("PUT", "/api/v2/users/me/gitsshkey", None),
    ("POST", "/api/v2/users/logout", None),
    ("POST", "/api/v2/organizations", {"name": "mine"}),
    ("DELETE", "/api/v2/users/missing", None),
    ("PUT", "/api/v2/notifications/settings", {"notifier_paused": True}),
    ("PUT", "/api/v2/appearance", {"application_name": "x", "logo_url": "", "announcement_banners": []}),
)


_HIDDEN = ("same-site", "cross-site", "")
"Values of Sec-Fetch-Site for a page with a hidden origin, which may be any page; old browsers send none."


@pytest.mark.parametrize("place", ["header", "form"])
async def test_foreign_cookie_proves_nothing(place: str) -> None:
    """To a browser, an application on a subdomain of the dashboard's domain is the same site: it sends the session's
    cookie, and the page controls the CSRF token.
    """
    wrong = []
    async with client(access_url="https://coder.test") as it:
        world = it.world
        rows = CHANGES if place == "header" else [("POST", it.query(), {"csrf_token": "tossed"})]
        for method, path, body in rows:
            for origin, site in (
                ("https://web--dev--bob.coder.test", "same-site"),
                *[("null", site) for site in _HIDDEN],
                ("http://[", "same-origin"),
                ("https://coder.test:1", "same-site"),
                ("http://127.0.0.1:1", ""),
            ):
                headers = {"Cookie": f"coder_session_token={world.token}; csrf_token=tossed", "Origin": origin}
                headers |= {"Sec-Fetch-Site": site} if site else {}
                sent: dict[str, Any] = {"data": body} if place == "form" else {"json": body}
                if place == "header":
                    headers["X-CSRF-TOKEN"] = "tossed"
                response = await world.client.request(method, path, headers=headers, **sent)
                world.client.cookies.clear()
                if response.status_code != 400 or "CSRF" not in response.text:
                    wrong.append(f"{method} {path} from {origin} {site}: {response.status_code} {response.text[:100]}")
        own = {"Cookie": f"coder_session_token={world.token}; csrf_token=t", "X-CSRF-TOKEN": "t", "Origin": world.url}
        created = await world.client.post("/api/v2/users/me/keys", headers=own)
        assert created.status_code == 201, created.text
        for site in ("same-origin", "none"):
            hidden = {**own, "Origin": "null", "Sec-Fetch-Site": site}
            created = await world.client.post("/api/v2/users/me/keys", headers=hidden)
            assert created.status_code == 201, f"an own page without a referrer: {created.text}"
            wrong_token = await world.client.post("/api/v2/users/me/keys", headers={**hidden, "X-CSRF-TOKEN": "x"})
            assert wrong_token.status_code == 400
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("access_url", "host"),
    [
        ("https://coder.test:443", "coder.test"),
        ("https://Coder.Test", "coder.test:443"),
        ("https://coder.test", "inside:3000"),
        ("http://coder.test:80", "coder.test"),
    ],
)
async def test_own_origin_spellings(access_url: str, host: str) -> None:
    """Browsers omit a scheme's default port, settings and proxies may not; another port is another page."""
    scheme = access_url.partition(":")[0]
    async with running_coderd(first_user=True, access_url=access_url) as world:
        cookie = f"coder_session_token={world.token}; csrf_token=t"
        for origin, fine in ((f"{scheme}://coder.test", True), (f"{scheme}://coder.test:444", False)):
            named = {"Cookie": cookie, "X-CSRF-TOKEN": "t", "Origin": origin, "Host": host}
            created = await world.client.post("/api/v2/users/me/keys", headers=named)
            assert (created.status_code == 201) is fine, f"{origin}: {created.text}"
            path = f"/api/v2/workspaceagents/{uuid4()}/pty"
            head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{_UPGRADE}"
            reply = await _raw(world, f"{head}Origin: {origin}\r\nCookie: {cookie}\r\n\r\n")
            assert reply.split()[1] == (b"404" if fine else b"403"), origin


BROKEN = (
    "http://[",
    "http://[::1",
    "https://[/x",
    "ws://[",
    "http://x:99999/",
    "http://x:y/",
    "http://a\u2100b/",
    "//[",
    "http://",
    "http:///",
    "\x00",
    "http://\x00/",
    "http://x\r\ny/",
    " http://x/",
    "javascript:alert(1)",
    "x" * 5000,
)
_REGISTER = {
    "access_url": "http://proxy.test",
    "wildcard_hostname": "*.proxy.test",
    "derp_enabled": True,
    "replica_relay_address": "http://127.0.0.1:9",
    "replica_hostname": "h",
    "replica_error": "",
    "version": "v2.34.0",
}


async def test_malformed_addresses_are_refused() -> None:
    """Wherever an address comes from outside: no error of the server, and no stored value that breaks other
    requests.
    """
    wrong = []
    async with running_coderd(first_user=True, wildcard_access_url="*.apps.test", experiments=("oauth2",)) as world:
        created = await world.post("/api/v2/workspaceproxies", {"name": "away", "display_name": "", "icon": ""})
        proxy = {"Coder-External-Proxy-Token": created.json()["proxy_token"]}
        for text in BROKEN:
            quoted = quote(text)
            rows: list[tuple[str, str, Any, dict[str, str]]] = [
                ("GET", f"/api/v2/applications/auth-redirect?redirect_uri={quoted}", None, {}),
                (
                    "POST",
                    "/api/v2/applications/reconnecting-pty-signed-token",
                    {"url": text, "agentID": str(uuid4())},
                    {},
                ),
                ("POST", "/api/v2/oauth2-provider/apps", {"name": "app", "callback_url": text}, {}),
                ("GET", f"/login?redirect={quoted}", None, {}),
                ("GET", f"/api/v2/users/oidc/callback?redirect={quoted}", None, {}),
                (
                    "POST",
                    "/api/v2/workspaceproxies/me/issue-signed-app-token",
                    {
                        "app_request": {"access_method": "path", "base_path": "/"},
                        "path_app_base_url": text,
                        "app_hostname": text,
                        "app_path": "",
                        "app_query": "",
                        "session_token": "",
                    },
                    proxy,
                ),
                *[
                    (
                        "POST",
                        "/api/v2/workspaceproxies/me/register",
                        {**_REGISTER, "replica_id": str(uuid4()), field: text},
                        proxy,
                    )
                    for field in ("access_url", "wildcard_hostname", "replica_relay_address")
                ],
            ]
            for method, path, body, headers in rows:
                sent = {"Coder-Session-Token": world.token, **headers}
                response = await world.client.request(method, path, json=body, headers=sent)
                if response.status_code >= 500:
                    wrong.append(f"{method} {path} {body}: {response.status_code} {response.text[:100]}")
            for path in (
                "/api/v2/regions",
                "/api/v2/workspaceproxies",
                "/api/v2/debug/health",
                "/api/v2/applications/auth-redirect?redirect_uri=http://q--a--b--c.apps.test/",
            ):
                if (await world.get(path)).status_code >= 500:
                    wrong.append(f"{path} after {text[:40]!r}")
    assert not wrong, "\n".join(wrong)


HOSTS = ("evil.test", "evil.test:80", "[", "", "a b", "apps.test", "x--y.apps.test", "\xff", "127.0.0.1@evil.test")
FORWARDED = (
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "X-Host",
    "X-Original-Host",
    "Forwarded",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-Forwarded-Prefix",
    "X-Forwarded-Proto",
    "X-Forwarded-Scheme",
    "X-HTTP-Method-Override",
)
_PAGES = (
    "/",
    "/login",
    "/api/v2/buildinfo",
    "/install.sh",
    "/.well-known/oauth-authorization-server",
    "/setup",
    "/.well-known/oauth-protected-resource",
    "/oauth2/authorize?client_id=x",
    "/api/v2/init-script/linux/amd64",
    "/api/v2/applications/auth-redirect?redirect_uri=http://a--b--c.apps.test/",
    "/api/v2/applications/host",
    "/api/v2/users/oidc/callback",
    "/@admin/dev/apps/web/",
)


@pytest.mark.parametrize("redirects", [False, True])
async def test_host_header_is_not_trusted(redirects: bool) -> None:
    """Addresses in pages, scripts and redirects are the configured one, whatever the Host header says."""
    wrong = []
    more: dict[str, Any] = {"access_url": "http://coder.test", "redirect_to_access_url": True} if redirects else {}
    async with running_coderd(
        first_user=not redirects, wildcard_access_url="*.apps.test", experiments=("oauth2",), **more
    ) as world:
        credential: list[dict[str, str]] = [{"Host": host} for host in HOSTS if host.isascii()]
        credential += [
            {name: "host=evil.test;proto=https" if name == "Forwarded" else "evil.test"} for name in FORWARDED
        ]
        for headers in credential:
            for path in _PAGES:
                response = await world.client.get(path, headers={**headers, "Coder-Session-Token": world.token})
                world.client.cookies.clear()
                reported = "".join(f"{name}: {value}\n" for name, value in response.headers.items())
                if response.status_code >= 500 or "evil.test" in response.text + reported:
                    wrong.append(f"{headers} {path}: {response.status_code} {reported}")
    assert not wrong, "\n".join(wrong)


WHO: tuple[tuple[dict[str, str], str], ...] = (
    ({"X-Forwarded-For": "203.0.113.7"}, "203.0.113.7"),
    ({"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}, "203.0.113.7"),  # the first one is the client's claim
    ({"X-Forwarded-For": "203.0.113.7, 127.0.0.1"}, "203.0.113.7"),
    ({"X-Forwarded-For": "evil, 127.0.0.1"}, "127.0.0.1"),
    ({"X-Forwarded-For": "203.0.113.7, evil"}, "127.0.0.1"),
    ({"X-Forwarded-For": ""}, "127.0.0.1"),
    ({"X-Forwarded-For": "," * 500}, "127.0.0.1"),
    ({"X-Forwarded-For": "203.0.113.7:80"}, "127.0.0.1"),
    ({"X-Real-IP": "203.0.113.7"}, "127.0.0.1"),
    ({"Forwarded": "for=203.0.113.7"}, "127.0.0.1"),
    ({"True-Client-IP": "203.0.113.7"}, "127.0.0.1"),
    ({"CF-Connecting-IP": "203.0.113.7"}, "127.0.0.1"),
    ({"Remote-Addr": "203.0.113.7"}, "127.0.0.1"),
    ({"X-Forwarded-For": "999.1.1.1"}, "127.0.0.1"),
    ({"X-Forwarded-For": "203.0.113.7 198.51.100.1"}, "127.0.0.1"),
)


@pytest.mark.parametrize("trusted", [False, True])
async def test_client_address(trusted: bool) -> None:
    """As the audit log records it: headers count only from trusted proxies."""
    more: dict[str, Any] = {"proxy_trusted_origins": ("127.0.0.0/8",), "proxy_trusted_headers": ("X-Forwarded-For",)}
    wrong = []
    async with running_coderd(first_user=True, **(more if trusted else {})) as world:
        for headers, expected in WHO:
            name = f"who{uuid4().hex[:8]}"
            body = {
                "email": f"{name}@b.c",
                "username": name,
                "password": FIRST_USER["password"],
                "organization_ids": [world.organization_id],
            }
            sent = {**headers, "Coder-Session-Token": world.token}
            created = await world.client.post("/api/v2/users", json=body, headers=sent)
            assert created.status_code == 201, created.text
            rows = (await world.get(f"/api/v2/audit?limit=1&q=resource_target:{name}")).json()["audit_logs"]
            if [row["ip"] for row in rows] != [expected if trusted else "127.0.0.1"]:
                wrong.append(f"{headers}: {[row['ip'] for row in rows]}")
    assert not wrong, "\n".join(wrong)


async def test_responses_are_not_shared() -> None:
    """Responses that depend on the user vary by cookie, whatever conditions and ranges a request has."""
    wrong = []
    async with running_coderd(first_user=True) as world:
        _, member = await world.member("bob")
        for path in (
            "/api/v2/users/me",
            "/api/v2/users",
            "/api/v2/workspaces",
            "/api/v2/templates",
            "/",
            "/workspaces",
            f"/api/v2/users/{world.user_id}/keys/tokens",
            "/api/v2/deployment/config",
        ):
            for more in (
                {},
                {"Range": "bytes=0-10"},
                {"If-None-Match": "*"},
                {"If-None-Match": '""'},
                {"If-Modified-Since": "Fri, 31 Dec 2099 23:59:59 GMT"},
                {"Range": "bytes=" + "9" * 5000 + "-"},
                {"Accept-Encoding": "gzip"},
            ):
                responses: dict[str, httpx.Response] = {}
                for who, token in (("owner", world.token), ("member", member), ("anonymous", "")):
                    response = responses[who] = await world.get(path, token=token, headers=more)
                    world.client.cookies.clear()
                    vary = response.headers.get("vary", "").lower()
                    if response.status_code >= 500 or "cookie" not in vary:
                        wrong.append(f"{who} {path} {more}: {response.status_code} vary {vary}")
                    if "public" in response.headers.get("cache-control", ""):
                        wrong.append(f"{who} {path}: {response.headers['cache-control']}")
                if path.startswith("/api/") and responses["anonymous"].status_code != 401:
                    wrong.append(f"{path} {more}: {responses['anonymous'].status_code}")
    assert not wrong, "\n".join(wrong)


HEADS = [(400, "\r\n", b"200"), (600, "\r\n", b"431"), (8000, "\r\n", b"431"), (600, "\n", b"431"), (400, "\n", b"200")]


async def test_header_lines_are_limited() -> None:
    """With every line ending and in any pieces; lines after the head do not count."""
    async with running_coderd() as world:
        for lines, end, status in HEADS:
            head = f"POST /api/v2/csp/reports HTTP/1.1{end}Host: x{end}" + f"A: b{end}" * lines
            body = "{" + "\n" * 1000 + "}"
            reply = await _raw(world, f"{head}Content-Length: {len(body)}{end}{end}{body}")
            assert reply.split()[1] == status, (lines, end)


TRAILERS = [(0, b"200"), (400, b"200"), (600, b"431"), (10_000, b"431")]


async def test_trailer_lines_are_limited() -> None:
    """Trailers come before the caller is authenticated, too."""
    async with running_coderd() as world:
        head = "POST /api/v2/csp/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        for lines, status in TRAILERS:
            reply = await _raw(world, f"{head}2\r\n{{}}\r\n0\r\n" + "A: b\r\n" * lines + "\r\n")
            assert reply.split()[1] == status, lines


NAMES = (
    "x" * 255,
    "x" * 256,
    "x" * 1024,
    "x" * 5000,
    "\xe4" * 200,
    "a/" * 500,
    "a/" * 20_000,
    "../" * 300,
    "%00",
    "%ff%fe",
)
"""Names of no file; all but the first few exceed the length of a name or a path."""


async def test_unreadable_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client may request any name in a folder of files: never an error of the server, and never unbounded work."""
    looks, lstat = 0, os.lstat

    def counted(*args: Any, **rest: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        return lstat(*args, **rest)

    wrong = []
    async with running_coderd() as world:
        monkeypatch.setattr(os, "lstat", counted)
        for folder in ("", "assets/", "icon/", "emojis/", "static/", "bin/", "swagger/", "install.sh/", "@me/"):
            for name in NAMES:
                looks = 0
                response = await world.get(f"/{folder}{name}")
                if response.status_code >= 500 or looks > 2000:
                    wrong.append(f"/{folder}{name[:12]} ({len(name)}): {response.status_code}, {looks} looks")
    assert not wrong, "\n".join(wrong)


# ---- HTTP/2, which is not supported

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def _frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


_GET = b"\x82\x86\x84\x41\x01x"
"""HPACK: GET, http, /, and an authority."""
FLOODS = {
    # frames after the preface, and their number
    "settings": (_frame(4), 20_000),
    "pings": (_frame(6, body=bytes(8)), 20_000),
    "rapid resets": (_frame(1, 5, 1, _GET) + _frame(3, 0, 1, bytes(4)), 20_000),
    "many streams": (_frame(1, 5, 1, _GET), 20_000),
    "continuations": (_frame(1, 1, 1, _GET) + _frame(9, 0, 1, bytes(16_000)), 200),
    "a list of headers that unpacks to much": (_frame(1, 5, 1, _GET + b"\xbe" * 16_000), 200),
    "windows": (_frame(8, body=b"\x7f\xff\xff\xff"), 20_000),
    "nothing": (b"", 1),
}
_H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"


async def _spoken(world: World, sent: bytes) -> bytes:
    """Return everything sent until the server closes, which it may do early."""
    parts, received = urlsplit(world.url), b""
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        with trio.fail_after(60):

            async def send() -> None:
                with contextlib.suppress(trio.BrokenResourceError):
                    await stream.send_all(sent)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                with contextlib.suppress(trio.BrokenResourceError):
                    while piece := await stream.receive_some():
                        received += piece
                nursery.cancel_scope.cancel()
    return received


async def test_http2_is_refused() -> None:
    """Neither with prior knowledge, however much is sent, nor by upgrade: a line of HTTP/1.1 or nothing, and no frame.
    Other requests are served meanwhile, with the same budgets and authentication.
    """
    wrong = []
    async with running_coderd(first_user=True) as world:
        host = urlsplit(world.url).netloc
        for what, (frames, times) in FLOODS.items():
            responses: list[bytes] = []

            async def flood(sent: bytes = _PREFACE + frames * times, responses: list[bytes] = responses) -> None:
                responses.append(await _spoken(world, sent))

            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(flood)
                assert (await world.get("/api/v2/users/me")).status_code == 200, what
            for response in responses:
                if response and not re.match(rb"HTTP/1\.1 [45]\d\d ", response):
                    wrong.append(f"{what}: {response[:60]!r}")
        for method, path, more, status in (
            ("GET", "/healthz", "", b"200"),
            ("GET", "/api/v2/users/me", "", b"401"),
            ("GET", "/api/v2/users/me", f"Coder-Session-Token: {world.token}\r\n", b"200"),
            ("POST", "/api/v2/users/login", "Content-Length: 2\r\n", b"400"),
            ("GET", "/api/v2/workspaceagents/me/rpc", "", b"401"),
            ("GET", "/api/v2/notifications/inbox/watch", "", b"401"),
        ):
            head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{_H2C}{more}\r\n"
            response = await _raw(world, head + ("{}" if method == "POST" else ""))
            if response.split()[:2] != [b"HTTP/1.1", status]:
                wrong.append(f"h2c {method} {path} {more[:10]}: {response!r}")
    assert not wrong, "\n".join(wrong)
