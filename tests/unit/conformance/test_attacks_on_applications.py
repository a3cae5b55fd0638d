"""Attacks on workspace applications, end to end: addresses, cookies, tickets, ports, ambiguous bytes.

Each row is one request of an unauthorized caller, or one that must not be parsed as two. The application answers with
the request it got. Sharing levels are in `tests/unit/appproxy/apps/test_apps.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trio

from coder.appproxy.apps.app_tickets import Ticket, terminal_request
from coder.coderd.services.apps import app_tokens
from coder.domain.apps.app_addresses import AppRequest
from coder.domain.apps.app_headers import API_KEY_QUERY, SIGNED_TOKEN_QUERY
from tests.kit.agents.scripted_agent import eventually
from tests.unit.appproxy.apps.test_apps import Scene, view_context

MINE = "/@admin/dev/apps/web/echo"
HOST = "web--dev--admin"
PORT = "{port}--main--dev--admin"

ADDRESSES: tuple[tuple[str, str], ...] = (
    # (host before the wildcard or "", path): applications for the workspace's owner only, in every spelling
    *[
        ("", path)
        for path in (
            MINE,
            "/@admin/dev.main/apps/web/echo",
            "/@ADMIN/DEV/apps/WEB/echo",
            "/@%61dmin/dev/apps/web/echo",
            "/%40admin/dev/apps/web/echo",
            "/@admin/dev/apps/web/../web/echo",
            "/@admin/dev/apps/%77eb/echo",
            "//@admin/dev/apps/web/echo",
            "/./@admin/dev/apps/web/echo",
            "/@admin//dev/apps/web/echo",
            "/@admin/dev/apps//web/echo",
            "/@admin%2Fdev/apps/web/echo",
            "/@admin/dev%2Fapps%2Fweb/echo",
            "/@me/../@admin/dev/apps/web/echo",
            "/@admin/dev/apps/web;x=1/echo",
            "/@admin/dev/apps/web%00/echo",
            "/@admin/dev/apps/all/echo",
            "/@admin/dev/apps/open/echo",
            "/@admin/dev/apps/{port}/echo",
            "/@admin/dev.main/apps/{port}/echo",
            "/@admin/dev/apps/{port}s/echo",
            "/@admin/{workspace}/apps/web/echo",
            "/@{owner}/dev/apps/web/echo",
            "/@{owner}/{workspace}/apps/web/echo",
            "/@admin/dev.{agent}/apps/web/echo",
            "/@bob/{workspace}/apps/web/echo",
            "/@admin/dev/apps/web/echo?coder_session_token=",
            f"/@admin/dev/apps/web/echo?{SIGNED_TOKEN_QUERY}=x",
            f"/@admin/dev/apps/web/echo?{API_KEY_QUERY}=x",
            "/@admin/dev/apps/web/ws",
            "/@admin/dev/apps/web",
        )
    ],
    *[
        (host, "/echo")
        for host in (
            HOST,
            HOST.upper(),
            "web--main--dev--admin",
            "web--dev--ADMIN",
            f"x---{HOST}",
            f"--{HOST}",
            f"{HOST}--",
            PORT,
            "{port}s--main--dev--admin",
            "{port}--dev--admin",
            "0{port}--main--dev--admin",
            "+{port}--main--dev--admin",
            "{port}.0--main--dev--admin",
            "{port}--main--dev--{owner}",
            "{port}--{agent}--dev--admin",
            "{port}--main--{workspace}--admin",
            "99999--main--dev--admin",
            "{wrapped}--main--dev--admin",
            "-{port}--main--dev--admin",
            "query--dev--admin",
            "cmd--dev--admin",
            "web--dev--admin--",
            "web--dev",
            "--",
            "----",
            "web--dev--me",
            "web--dev--bob",
            "web--dev--*",
        )
    ],
)
RESERVED = (0, 1, 2, 3, 4, 5, 6, 7, 8)
"""Ports of the agent itself and below, which no browser may open, not even the owner's."""


async def _opened(s: Scene, host: str, path: str, **rest: Any) -> str:
    """Return the request that the application got, if any."""
    headers = {**({"Host": f"{host}.apps.test"} if host else {}), **rest.pop("headers", {})}
    response = await s.get(path, headers=headers, token=rest.pop("token", ""), **rest)
    # The 500 is recorded: a port under a path.
    assert response.status_code < 500 or "Ports cannot be opened" in response.text, (host, path, response.text)
    there = response.headers.get("location", "")
    own = {"", urlsplit(s.world.url).netloc, f"{host}.apps.test".lower(), f"{host}.apps.test"}
    assert urlsplit(there).netloc in own, (host, path, there)
    return response.text if response.status_code == 200 and response.text.startswith('{"method"') else ""


async def test_applications_refuse_other_users(tmp_path: Path) -> None:
    wrong, asked = [], 0
    async with view_context(tmp_path) as s:
        world, workspace = s.world, s.agent.workspace
        elsewhere = (await world.post("/api/v2/organizations", {"name": "elsewhere"})).json()["id"]
        _, bob = await world.member("bob")
        _, stranger = await world.member("stranger", organizations=[elsewhere])
        _, admin_elsewhere = await world.member("template", ["template-admin"])
        names = {
            "port": s.app.port,
            "wrapped": s.app.port + 65536,
            "workspace": workspace["id"],
            "agent": s.agent.agent_id,
            "owner": workspace["owner_id"],
        }

        async def reached() -> str:
            return await _opened(s, "", MINE, token=world.token)

        await eventually(reached)
        for token in ("", bob, stranger, admin_elsewhere, "x" * 33, "a" * 10 + "-" + "b" * 22):
            for host, path in ADDRESSES:
                asked += 1
                if await _opened(s, host.format(**names), path.format(**names), token=token):
                    wrong.append(f"{token[:4]}: {host} {path}")
        for port in RESERVED:
            asked += 1
            if await _opened(s, f"{port}--main--dev--admin", "/echo", token=world.token):
                wrong.append(f"the owner: {port}")
        wrong += await _by_tickets(s, bob)
        wrong += await _by_headers(s, bob)
        wrong += await _secrets_stay(s)
    assert asked > 300
    assert not wrong, "\n".join(wrong)


async def _by_tickets(s: Scene, token: str) -> list[str]:
    """Tickets for other applications, and forged ones."""
    world = s.world
    me, agent = (await world.get("/api/v2/users/me", token=token)).json()["id"], s.agent.agent_id
    workspace = s.agent.workspace["id"]
    good = AppRequest("path", "/@admin/dev/apps/web/", "admin", "dev", "", "web")
    url, wrong = f"http://localhost:{s.app.port}", []
    requests = [
        AppRequest("path", "/@admin/dev/apps/all/", "admin", "dev", "", "all"),
        AppRequest("path", "/", "admin", "dev", "", "web"),
        AppRequest("subdomain", "/", "admin", "dev", "", "web"),
        AppRequest("subdomain", "/@admin/dev/apps/web/", "admin", "dev", "", "web"),
        AppRequest("path", "/@admin/dev/apps/web/", "admin", "dev", "other", "web"),
        AppRequest("path", "/@admin/dev/apps/web/", "bob", "dev", "", "web"),
        AppRequest("path", "/@admin/dev/apps/web/", "admin", "dev", "", "web", "prefix"),
        terminal_request(agent),
    ]
    tokens = [
        (await app_tokens.issue_ticket(world.ctx, Ticket(item, workspace, agent, url, me)))[0] for item in requests
    ]
    whole, _ = await app_tokens.issue_ticket(world.ctx, Ticket(good, workspace, agent, url, me))
    head, claims, signature = whole.split(".")
    tokens += [
        f"{head}.{claims}.",
        f"{head}.{claims}.AAAA",
        f"{head}.{claims}",
        f"{head}..{signature}",
        "..",
        "a.b.c",
        "",
        f"eyJhbGciOiJub25lIn0.{claims}.",
        f"eyJhbGciOiJIUzI1NiJ9.{claims}.{signature}",
        whole + "A",
        whole[:-4],
    ]
    for text in tokens:
        for credential in (
            {"Cookie": f"coder_signed_app_token={text}"},
            {"Cookie": f'coder_signed_app_token="{text}"'},
        ):
            if await _opened(s, "", MINE, headers=credential):
                wrong.append(f"ticket {text[:60]}")
        if await _opened(s, "", f"{MINE}?{SIGNED_TOKEN_QUERY}={text}"):
            wrong.append(f"ticket in the query {text[:60]}")
    sealed = await app_tokens.seal_key(world.ctx, token)
    for text in (sealed, sealed[:-3], sealed.replace(".", "", 1), "....", "x" * 5000):
        if await _opened(s, HOST, f"/echo?{API_KEY_QUERY}={text}"):
            wrong.append(f"sealed key {text[:60]}")
    return wrong


async def _by_headers(s: Scene, token: str) -> list[str]:
    """Names of hosts, users and proxies in headers are claims of the sender."""
    wrong = []
    host = f"{HOST}.apps.test"
    for headers in (
        {"X-Forwarded-Host": host},
        {"X-Original-Host": host},
        {"Forwarded": f"host={host};proto=https"},
        {"X-Host": host},
        {"Host": f"{host}."},
        {"Host": f"{host}:1"},
        {"Host": f"x.{host}"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Coder-External-Proxy-Token": "x:y"},
        {"X-Coder-User": "admin"},
        {"X-Forwarded-User": "admin"},
        {"X-Original-URL": MINE},
        {"X-Rewrite-URL": MINE},
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Authorization": f"Bearer {s.agent.token}"},
        {"Coder-Session-Token": s.agent.token},
        {"Cookie": f"coder_session_token={s.agent.token}"},
        {"Origin": s.world.url},
        {"Origin": f"http://{host}"},
        {"Referer": s.world.url},
    ):
        for path in ("/echo", MINE):
            for credential in ("", token):
                response = await s.get(path, headers=headers, token=credential)
                if response.text.startswith('{"method"'):
                    wrong.append(f"{headers} {path}")
    return wrong


async def _secrets_stay(s: Scene) -> list[str]:
    """An application never gets the credential by which its visitor came in, in any form."""
    token, wrong = s.world.token, []
    ways: list[tuple[str, dict[str, str]]] = [
        (f"{MINE}?coder_session_token={token}", {}),
        (f"{MINE}?coder%5Fsession%5Ftoken={token}&a=1", {}),
        (f"{MINE}?access_token={token}", {}),
        (f"{MINE}?a=1&coder_session_token={token}&coder_session_token=x", {}),
        (MINE, {"Coder-Session-Token": token}),
        (MINE, {"CODER-SESSION-TOKEN": token}),
        (MINE, {"Authorization": f"Bearer {token}"}),
        (MINE, {"Authorization": f"bearer  {token}"}),
        (MINE, {"Authorization": f"BEARER {token}"}),
        (MINE, {"Cookie": f"coder_session_token={token}"}),
        (MINE, {"Cookie": f"a=b; coder_session_token={token}; c=d"}),
        (MINE, {"Cookie": f"coder_session_token={token}; coder_session_token={token}"}),
        (MINE, {"Cookie": f"coder_session_token = {token}", "Coder-Session-Token": token}),
        (MINE, {"Cookie": f"__Host-coder_session_token={token}", "Coder-Session-Token": token}),
        (MINE, {"Cookie": f"csrf_token={token}", "Coder-Session-Token": token}),
        (MINE, {"Cookie": f'coder_session_token="{token}"'}),
        (MINE, {"Coder-Session-Token": token, "Connection": "coder-session-token, cookie"}),
    ]
    for path, headers in ways:
        response = await s.get(path, token="", headers=headers)
        if token in response.text:
            wrong.append(f"{path} {headers}: seen by the application")
    return wrong


def _head(s: Scene, *lines: str, method: str = "POST", path: str = MINE, body: str = "") -> bytes:
    fixed = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(s.world.url).netloc}"]
    fixed.append(f"Coder-Session-Token: {s.world.token}")
    return "\r\n".join([*fixed, *lines, "", body]).encode("latin-1")


async def test_one_request_never_becomes_two(tmp_path: Path) -> None:
    """A body for one parser and a second request for the other: smuggled bytes must not reach an application."""
    hidden = "GET /@admin/dev/apps/web/echo/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    size, chunked = len(hidden), f"{len(hidden):x}\r\n{hidden}\r\n0\r\n\r\n"
    async with view_context(tmp_path) as s:
        await s.get(MINE)
        cases = [
            _head(s, f"Content-Length: {size}", "Transfer-Encoding: chunked", body=hidden),
            _head(s, "Transfer-Encoding: chunked", f"Content-Length: {size}", body=f"0\r\n\r\n{hidden}"),
            _head(s, "Content-Length: 0", f"Content-Length: {size}", body=hidden),
            _head(s, f"Content-Length: {size}, 0", body=hidden),
            _head(s, f"Content-Length: +{size}", body=hidden),
            _head(s, f"Content-Length: 0x{size:x}", body=hidden),
            _head(s, "Content-Length: -1", body=hidden),
            _head(s, f"Content-Length : {size}", body=hidden),
            _head(s, f" Content-Length: {size}", body=hidden),
            _head(s, "Transfer-Encoding: identity", f"Content-Length: {size}", body=hidden),
            _head(s, "Transfer-Encoding: gzip, chunked", body=chunked),
            _head(s, "Transfer-Encoding: xchunked", body=chunked),
            _head(s, "Transfer-Encoding: chunked, identity", body=chunked),
            _head(s, "Transfer-Encoding:\x0bchunked", body=chunked),
            _head(s, "Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=chunked),
            _head(s, "Transfer-Encoding: chunked", body=f"0;x=\r\n\r\n{hidden}"),
            _head(s, f"Content-Length: {size}", "Connection: content-length", body=hidden),
            _head(s, "Transfer-Encoding: chunked", "Connection: transfer-encoding", body=chunked),
            _head(s, f"Content-Length: {size}", "Connection: close, content-length, host", body=hidden),
            _head(s, f"Content-Length: {size}", "Expect: 100-continue", body=hidden),
            _head(s, f"Content-Length: {size}", method="GET", body=hidden),
            _head(
                s,
                "Upgrade: h2c",
                "Connection: Upgrade, HTTP2-Settings",
                "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
                body=hidden,
            ),
            _head(s, "Upgrade: websocket", "Connection: Upgrade", f"Content-Length: {size}", body=hidden),
            _head(s, f"X: a\rContent-Length: {size}", body=hidden),
            _head(s, f"X: a\nContent-Length: {size}", body=hidden),
            _head(s, "X: a\x00b", f"Content-Length: {size}", body=hidden),
            _head(s, path=MINE + " HTTP/1.1\r\nX: y", body=hidden),
            _head(s, path=MINE + "\x20x", body=hidden),
            _head(s, f"Content-Length: {size}", path=f"http://evil.test{MINE}", body=hidden),
        ]
        wrong = []
        for sent in cases:
            received = await _raw(s, sent)
            heads = [line for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
            if b"/echo/smuggled" in received.replace(hidden.encode(), b""):
                wrong.append(f"smuggled by {sent[:300]!r}: {received[:300]!r}")
            # A second success may only answer a request without credentials that the sender itself made.
            if len([item for item in heads if b" 200 " in item]) > 1:
                wrong.append(f"two answers to {sent[:300]!r}")
    assert not wrong, "\n".join(wrong)


async def _raw(s: Scene, sent: bytes) -> bytes:
    parts = urlsplit(s.world.url)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        await stream.send_all(sent)
        received = b""
        with trio.move_on_after(0.5):  # a connection that stays open has sent its response
            while piece := await stream.receive_some():
                received += piece
        return received


async def test_cross_application_cookies_are_refused(tmp_path: Path) -> None:
    """Requests that another user's application makes a visitor's browser send."""
    async with view_context(tmp_path) as s:
        ticket = (await s.get(MINE)).headers["set-cookie"].partition(";")[0]
        wrong = []
        for origin in (
            "http://all--dev--bob.apps.test",
            "https://evil.test",
            "null",
            "http://apps.test",
            f"http://{HOST}.apps.test.evil.test",
            "file://",
        ):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                headers = {"Cookie": ticket, "Origin": origin, "Sec-Fetch-Site": "cross-site"}
                response = await s.get(MINE, method=method, token="", headers=headers)
                if response.status_code == 200:
                    wrong.append(f"{method} from {origin}")
                # Browsers send no fetch metadata to a host without TLS, and old browsers never do.
                silent = await s.get(MINE, method=method, token="", headers={"Cookie": ticket, "Origin": origin})
                if silent.status_code == 200:
                    wrong.append(f"{method} from {origin} without Sec-Fetch-Site")
                if origin == "null":
                    own = {**headers, "Sec-Fetch-Site": "same-origin"}
                    if (await s.get(MINE, method=method, token="", headers=own)).status_code != 200:
                        wrong.append(f"{method} of an own page without a referrer")
            upgrade = {
                "Cookie": ticket,
                "Origin": origin,
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            }
            response = await s.get("/@admin/dev/apps/web/ws", token="", headers=upgrade)
            if response.status_code in {101, 200}:
                wrong.append(f"a WebSocket from {origin}")
            page = await s.get(MINE, token="", headers={"Cookie": ticket, "Origin": origin})
            if page.headers.get("access-control-allow-origin"):
                wrong.append(f"{origin} may read")
        mine = json.loads((await s.get(MINE, token="", headers={"Cookie": ticket})).text)
        assert mine["method"] == "GET"
    assert not wrong, "\n".join(wrong)
