"""Applications of a workspace end to end: browser, server, mesh, agent, a small real web server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
import trio
import trio.testing

from coder.base.secret import Secret
from coder.coderd.services.apps import app_tokens
from coder.coderd.store.access import system_keys
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.templates import insights
from coder.coderd.store.workspaces.port_shares import PortShareRow, put_port_share
from coder.domain.apps import app_headers
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.api.security_probes import forged as forge
from tests.kit.server.server_in_process import FIRST_USER, World
from tests.kit.stand_ins.certificates import Authority
from tests.kit.stand_ins.scripted_http_servers import WebApp, running_app

pb = provisioner_pb2
WEB = "/@admin/dev/apps/web"
WILDCARD = "*.apps.test"


@dataclass
class Scene:
    """Workspace with a running agent, and the application in it."""

    agent: AgentWorld
    app: WebApp

    @property
    def world(self) -> World:
        return self.agent.world

    async def get(self, path: str, *, token: str | None = None, method: str = "GET", **rest: Any) -> httpx.Response:
        self.world.client.cookies.clear()
        return await self.world.request(method, path, token=token, **rest)

    async def host(self, label: str, path: str = "/echo", *, token: str | None = "", **rest: Any) -> httpx.Response:
        """Send a request to an application's own host."""
        headers = {"Host": f"{label}.apps.test", **rest.pop("headers", {})}
        return await self.get(path, token=token, headers=headers, **rest)


def _app(slug: str, port: int, share: Any = pb.OWNER, **rest: Any) -> provisioner_pb2.App:
    url = rest.pop("url", f"http://localhost:{port}")
    return pb.App(slug=slug, display_name=slug.title(), url=url, sharing_level=share, **rest)


@asynccontextmanager
async def view_context(folder: Path, *, agent: bool = True, **settings: Any) -> AsyncIterator[Scene]:
    async with running_app() as app:
        apps = [
            _app("web", app.port),
            _app("query", app.port, url=f"http://localhost:{app.port}/base?folder=/home"),
            _app("all", app.port, pb.AUTHENTICATED, subdomain=True),
            _app("open", app.port, pb.PUBLIC, subdomain=True),
            _app("dead", 1),
            _app("cmd", 0, url="", command="htop"),
        ]
        settings = {"wildcard_access_url": WILDCARD, **settings}
        async with workspace_world(agent_fields={"apps": apps}, **settings) as world:
            if not agent:
                yield Scene(world, app)
                return
            policy = DialPolicy(world.world.url, token=Secret(world.token))
            async with running_agent(world, policy, folder / "agent"):
                yield Scene(world, app)


def _headers(answer: httpx.Response) -> dict[str, str]:
    return dict(answer.json()["headers"])


async def test_path_application(tmp_path: Path) -> None:
    async with view_context(tmp_path) as s:
        first = await s.get(
            f"{WEB}/echo?x=1&coder_session_token={s.world.token}", headers={"Cookie": "mine=1; csrf_token=t"}
        )
        assert first.status_code == 200, first.text
        assert first.json()["target"] == "/echo?x=1"
        seen = _headers(first)
        assert seen["cookie"] == "mine=1"
        assert "coder-session-token" not in seen
        assert seen["x-forwarded-for"] == "127.0.0.1"
        assert seen["host"] == urlsplit(s.world.url).netloc
        assert first.headers["x-content-type-options"] == "nosniff"
        ticket = first.headers["set-cookie"]
        assert ticket.startswith("coder_signed_app_token=")
        assert f"Path={WEB}/;" in ticket
        assert "HttpOnly; SameSite=Lax" in ticket
        await _ticket_alone(s, ticket.partition(";")[0])
        await _addresses(s)
        await _bodies(s)
        await _refusals(s)
        await _other_users(s)
        await _websocket(s)
        await _secure_port(s, tmp_path)
        await _terminal(s)
        await _counted_use(s)
        await _rechecked_streams(s)
        await _foreign_pages(s)
        await _passed_through(s)
        await _unhealthy_app(s)


async def _ticket_alone(s: Scene, cookie: str) -> None:
    """Check that the signed cookie opens this application without a session, and no other."""
    again = await s.get(f"{WEB}/echo", token="", headers={"Cookie": cookie})
    assert again.status_code == 200
    assert "set-cookie" not in again.headers
    assert "cookie" not in _headers(again)
    other = await s.get("/@admin/dev/apps/query/echo", token="", headers={"Cookie": cookie})
    assert other.status_code == 303
    forged = await s.get(f"{WEB}/echo", token="", headers={"Cookie": forge(cookie)})
    assert forged.status_code == 303


async def _addresses(s: Scene) -> None:
    bare = await s.get(WEB)
    assert (bare.status_code, bare.headers["location"]) == (307, f"{WEB}/")
    default = await s.get("/@admin/dev/apps/query/")
    assert default.headers["location"] == "/@admin/dev/apps/query/?folder=/home"
    below = await s.get("/@admin/dev/apps/query/a%20b?folder=x")
    assert below.json()["target"] == "/base/a%20b?folder=x"
    assert (await s.get("/%40admin/dev.main/apps/web/echo")).status_code == 200
    # dashboard and applications share a connection
    page = await s.get("/@admin/dev/terminal")
    assert page.status_code == 200
    assert "coder_signed_app_token" not in page.headers.get("set-cookie", "")
    cookies = (await s.get(f"{WEB}/cookies")).headers
    assert "clear-site-data" not in cookies
    assert "access-control-allow-origin" not in cookies
    values = cookies.get_list("set-cookie")
    assert [value for value in values if not value.startswith("coder_signed")] == [
        f"a=1; Path={WEB}/",
        f"b=2; Path={WEB}/x",
    ]


async def _bodies(s: Scene) -> None:
    big = bytes(1_000_000)
    assert (await s.get(f"{WEB}/size", method="POST", content=big)).text == "1000000"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield bytes(50_000)

    assert (await s.get(f"{WEB}/size", method="PUT", content=pieces())).text == "500000"
    assert (await s.get(f"{WEB}/close")).text == "until the end"
    assert (await s.get(f"{WEB}/early", method="POST", content=bytes(10))).status_code == 413
    assert (await s.get(f"{WEB}/echo", method="HEAD")).content == b""
    async with _reading(s, "ticks") as stream:
        assert b"one" in await _until(stream, b"one")  # before the response is complete
        s.app.tick.set()
        await _until(stream, b"two")
    s.app.tick, s.app.left = trio.Event(), trio.Event()
    # the application notices a browser that disconnects
    async with _reading(s, "ticks") as stream:
        await _until(stream, b"one")
    with trio.fail_after(60):
        await s.app.left.wait()
    # a client that does not read does not fill our memory
    s.app.left = trio.Event()
    async with _reading(s, "endless") as stream:
        await _until(stream, b"xxx")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert s.app.sent < 24_000_000
    with trio.fail_after(60):
        await s.app.left.wait()


@asynccontextmanager
async def _reading(s: Scene, path: str) -> AsyncIterator[trio.SocketStream]:
    """Yield a browser's bare connection after its request."""
    parts = urlsplit(s.world.url)
    async with await trio.open_tcp_stream(str(parts.hostname), int(parts.port or 0)) as stream:
        head = f"GET {WEB}/{path} HTTP/1.1\r\nHost: {parts.netloc}\r\nCoder-Session-Token: {s.world.token}\r\n\r\n"
        await stream.send_all(head.encode())
        yield stream


async def _until(stream: trio.SocketStream, mark: bytes) -> bytes:
    data = b""
    with trio.fail_after(60):
        while mark not in data:
            piece = await stream.receive_some(65536)
            assert piece, data
            data += piece
    return data


async def _unhealthy_app(s: Scene) -> None:
    """Check that an unhealthy application can still be reached, so that its owner can repair it."""
    await s.world.ctx.db.run(app_store.update_app_health, await _app_id(s, "query"), "unhealthy")
    assert (await s.get("/@admin/dev/apps/query/x")).status_code == 200
    closed = await s.host("9999--main--dev--admin", token=None)
    assert closed.status_code == 502
    assert "Nothing listens on port 9999" in closed.text


async def _app_id(s: Scene, slug: str) -> UUID:
    apps = (await s.agent.agent())["apps"]
    return UUID(next(app["id"] for app in apps if app["slug"] == slug))


async def _refusals(s: Scene) -> None:
    out = await s.get(f"{WEB}/x?y=1", token="")
    assert out.status_code == 303
    location = urlsplit(out.headers["location"])
    assert location.path == "/login"
    assert parse_qs(location.query)["redirect"] == [f"{WEB}/x?y=1"]
    for path, status, heading in (
        ("/@admin/dev/apps/none/", 404, "404 - Application Not Found"),
        ("/@nobody/dev/apps/web/", 404, "404 - Application Not Found"),
        ("/@admin/dev.other/apps/web/", 404, "404 - Application Not Found"),
        ("/@admin/dev/apps/8080/", 500, "500 - Internal Server Error"),
        ("/@admin/dev/apps/dead/", 400, "400 - Bad Request"),
        ("/@admin/dev/apps/cmd/", 400, "400 - Bad Request"),
        (f"{WEB}/broken", 502, "502 - Bad Gateway"),
        (f"{WEB}/lines", 502, "502 - Bad Gateway"),
    ):
        page = await s.get(path)
        assert page.status_code == status, path
        assert f"<h1>{heading}</h1>" in page.text
        assert page.headers["content-type"] == "text/html; charset=utf-8"


async def _other_users(s: Scene) -> None:
    """Check access of other users: by path nothing is shared, by host as the template allows."""
    _, token = await s.world.member("bob")
    for slug in ("web", "all", "open"):
        assert (await s.get(f"/@admin/dev/apps/{slug}/", token=token)).status_code == 404
    assert (await s.host("web--dev--admin", token=token)).status_code == 404
    assert (await s.host("all--dev--admin", token=token)).status_code == 200
    assert (await s.host("all--main--dev--admin", token=token)).status_code == 200
    opened = await s.host("open--dev--admin")
    assert opened.status_code == 200
    assert _headers(opened)["host"] == "open--dev--admin.apps.test"
    assert (await s.host(f"{s.app.port}--main--dev--admin", token=token)).status_code == 404
    assert (await s.host(f"pre---{s.app.port}--main--dev--admin", token=None)).status_code == 200
    wrong = await s.host("a--b", token=None)
    assert wrong.status_code == 400
    share = {"agent_name": "main", "port": s.app.port, "share_level": "authenticated", "protocol": "http"}
    template = s.agent.workspace["template_id"]
    await s.world.patch(f"/api/v2/templates/{template}", {"max_port_share_level": "public"})
    answer = await s.world.post(f"/api/v2/workspaces/{s.agent.workspace['id']}/port-share", share)
    assert answer.status_code == 200, answer.text
    assert (await s.host(f"{s.app.port}--main--dev--admin", token=token)).status_code == 200
    await _cross_origin(s)
    await _sign_in_handover(s, token)


async def _cross_origin(s: Scene) -> None:
    ask = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-a"}
    own = {"Origin": "https://web--dev--admin.apps.test"}
    allowed = await s.host("open--dev--admin", method="OPTIONS", headers={**own, **ask})
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == own["Origin"]
    assert allowed.headers["access-control-allow-headers"] == "x-a"
    real = await s.host("open--dev--admin", "/cookies", headers=own)
    assert real.headers.get_list("access-control-allow-origin") == [own["Origin"]]
    for origin in ("https://web--dev--bob.apps.test", "https://evil.test"):
        refused = await s.host("open--dev--admin", method="OPTIONS", headers={"Origin": origin, **ask})
        assert "access-control-allow-origin" not in refused.headers
        real = await s.host("open--dev--admin", "/cookies", headers={"Origin": origin})
        assert "access-control-allow-origin" not in real.headers


async def _sign_in_handover(s: Scene, token: str) -> None:
    """Check the sign-in of a separate host, which has no session yet: the dashboard hands over a sealed key."""
    away = await s.host("all--dev--admin", "/deep?a=1")
    assert away.status_code == 303
    address = urlsplit(away.headers["location"])
    assert address.path == "/api/v2/applications/auth-redirect"
    path = f"{address.path}?{address.query}"
    assert "/login" in (await s.get(path, token="")).headers["location"]
    back = await s.get(path, token=token)
    assert back.status_code == 307, back.text
    location = urlsplit(back.headers["location"])
    assert location.netloc == "all--dev--admin.apps.test"
    # whatever the address claims, the redirect uses the server's own scheme
    other = await s.get(path.replace("http%3A", "https%3A"), token=token)
    assert urlsplit(other.headers["location"]).scheme == urlsplit(s.world.url).scheme == "http"
    landed = await s.host("all--dev--admin", f"{location.path}?{location.query}")
    assert (landed.status_code, landed.headers["location"]) == (303, "/deep?a=1")
    cookie = landed.headers["set-cookie"].partition(";")[0]
    assert cookie.startswith("coder_subdomain_app_session_token_")
    inside = await s.host("all--dev--admin", headers={"Cookie": f"{cookie}; k=v"})
    assert inside.status_code == 200
    assert _headers(inside)["cookie"] == "k=v"
    for start in ("//evil.test/x", "/\\evil.test/x"):
        raw = httpx.URL(s.world.url).copy_with(raw_path=f"{start}?{app_headers.API_KEY_QUERY}=no".encode())
        headers = {"Host": "all--dev--admin.apps.test"}
        back = await s.world.client.send(httpx.Request("GET", raw, headers=headers))
        assert (back.status_code, back.headers["location"]) == (303, "/evil.test/x")
    key = cookie.partition("=")[2]
    assert (await s.get("/api/v2/users/me", token=key)).status_code in {403, 404}
    assert (await s.get(path, token=key)).status_code in {403, 404}
    # a script of that host may have read the address with the key: it opens this workspace and nothing else
    row = await s.world.ctx.db.read(system_keys.get_key, key.partition("-")[0])
    assert row is not None and list(row.allow_list) == [f"workspace:{s.agent.workspace['id']}"]
    nowhere = await s.get(path.replace("all--dev--admin", "all--gone--admin"), token=token)
    sealed = parse_qs(urlsplit(nowhere.headers["location"]).query)[app_headers.API_KEY_QUERY][0]
    useless = await app_tokens.open_key_untrusted(s.world.ctx, sealed)
    row = await s.world.ctx.db.read(system_keys.get_key, useless.partition("-")[0])
    assert row is not None and list(row.allow_list) == [f"workspace:{UUID(int=0)}"]
    assert (await s.host("all--dev--admin", token=useless)).status_code != 200
    assert (await s.get(path.replace("http%3A%2F%2F", "http%3A%2F%2F%3Ax%40"), token=token)).status_code == 400
    bad = path.replace("all--dev--admin.apps.test", "evil.test")
    assert (await s.get(bad, token=token)).status_code == 400


async def _websocket(s: Scene) -> None:
    policy = DialPolicy(s.world.url, token=Secret(s.world.token))
    socket = await connect_websocket(policy, f"{WEB}/ws")
    await socket.send_message("hello")
    assert await socket.receive_message() == "hello"
    await socket.send_message(bytes(200_000))
    assert await socket.receive_message() == bytes(200_000)
    await socket.aclose()


async def _rechecked_streams(s: Scene) -> None:
    """Check that open streams are rechecked: a stream outlives neither session nor permission."""
    world, visits = s.world, s.world.ctx.services.edge.open_streams
    dana, token = await world.member("dana")
    shared = f"/api/v2/workspaces/{s.agent.workspace['id']}/acl"
    assert (await world.patch(shared, {"user_roles": {dana: "use"}})).status_code == 204
    pty = f"/api/v2/workspaceagents/{s.agent.agent_id}/pty"
    url = world.url.replace("http://", "ws://") + pty
    body = {"url": url, "agentID": str(s.agent.agent_id)}
    answer = await world.post("/api/v2/applications/reconnecting-pty-signed-token", body, token=token)
    ticket = answer.json()["signed_token"]
    plain, policy = DialPolicy(world.url), DialPolicy(world.url, token=Secret(token))
    port = urlsplit(world.url).port
    own = DialPolicy(f"http://web--dev--admin.apps.test:{port}", token=Secret(token), address="127.0.0.1")
    query = f"reconnect={uuid4()}&command=sleep+60"
    second = await world.login("dana@b.c", FIRST_USER["password"])
    brief = await connect_websocket(replace(own, token=Secret(second)), "/ws")
    assert (await world.post("/api/v2/users/logout", token=second)).status_code == 200
    with trio.fail_after(60):
        await _expect_end(brief)  # immediately, without a check
    await _shared_ports_end(s, token)
    sockets = [
        await connect_websocket(own, "/ws"),
        await connect_websocket(policy, f"{pty}?{query}"),
        await connect_websocket(plain, f"{pty}?{query}&coder_signed_app_token_23db1dde={ticket}"),
    ]
    await visits.look()
    await sockets[0].send_message("still here")
    assert await sockets[0].receive_message() == "still here"
    assert (await world.patch(shared, {"user_roles": {dana: ""}})).status_code == 204
    with trio.fail_after(60):
        for socket in sockets:
            await _expect_end(socket)


async def _shared_ports_end(s: Scene, token: str) -> None:
    """Check that shared ports end with the share and the template's limit immediately, and at the next check after
    expiry."""
    share = {"agent_name": "main", "port": s.app.port, "share_level": "authenticated", "protocol": "http"}
    path, template = (
        f"/api/v2/workspaces/{s.agent.workspace['id']}",
        f"/api/v2/templates/{s.agent.workspace['template_id']}",
    )
    _, stranger = await s.world.member("erin")
    host = f"http://{s.app.port}--main--dev--admin.apps.test:{urlsplit(s.world.url).port}"
    guest = DialPolicy(host, token=Secret(stranger), address="127.0.0.1")

    async def unshare() -> httpx.Response:
        return await s.world.request("DELETE", f"{path}/port-share", json=share)

    async def narrow() -> httpx.Response:
        return await s.world.patch(template, {"max_port_share_level": "owner"})

    for end in (unshare, narrow):
        assert (await s.world.post(f"{path}/port-share", share)).status_code == 200
        socket = await connect_websocket(guest, "/ws")
        assert (await end()).status_code == 200
        with trio.fail_after(60):
            await _expect_end(socket)
    await s.world.patch(template, {"max_port_share_level": "public"})
    assert (await s.world.post(f"{path}/port-share", share)).status_code == 200
    socket = await connect_websocket(guest, "/ws")
    label, now = f"{s.app.port}--main--dev--admin", s.world.ctx.clock.now()
    assert (await s.host(label, token=stranger)).status_code == 200
    workspace_id = UUID(s.agent.workspace["id"])
    over = PortShareRow(workspace_id, "main", s.app.port, "authenticated", "http", now - timedelta(seconds=1))
    await s.world.ctx.db.run(put_port_share, over)
    assert (await s.host(label, token=stranger)).status_code == 404
    await s.world.ctx.services.edge.open_streams.look()  # as every minute
    with trio.fail_after(60):
        await _expect_end(socket)


async def _expect_end(socket: Any) -> None:
    with suppress(trio.BrokenResourceError):
        while await socket.receive_message() is not None:
            pass
    await trio.aclose_forcefully(socket)


async def _counted_use(s: Scene) -> None:
    await s.world.ctx.services.edge.app_usage.report()
    log = (await s.world.get("/api/v2/connectionlog?q=type:workspace_app")).json()["connection_logs"]
    entry = next(
        row for row in log if row["web_info"]["slug_or_port"] == "web" and row["web_info"]["status_code"] == 200
    )
    assert entry["agent_name"] == "main"
    assert entry["web_info"]["user"]["username"] == "admin"
    assert (await s.world.get("/api/v2/connectionlog?q=type:port_forwarding")).json()["count"] >= 1
    hour = s.world.ctx.clock.now().replace(minute=0, second=0, microsecond=0)
    window = {"start_time": _day(hour), "end_time": _rfc3339(hour + timedelta(hours=1))}
    # reports end with the current hour: ask the store for the future
    used = await s.world.ctx.db.read(insights.app_usage, hour - timedelta(days=1), hour + timedelta(hours=2), [])
    by_slug = {row.slug: row for row in used}
    assert set(by_slug) == {"web", "query", "all", "open"}
    assert by_slug["web"].seconds > 0 and by_slug["web"].seconds % 60 == 0  # a minute with any use counts as a whole
    assert by_slug["open"].times == 1
    report = await s.world.get("/api/v2/insights/templates", params=window)
    assert report.status_code == 200, report.text
    # for users whose noon is in this hour: midnight may have passed during the test
    days = (await s.world.get(f"/api/v2/insights/daus?tz_offset={12 - hour.hour}")).json()["entries"]
    assert max(day["amount"] for day in days) == 2  # admin and bob; anonymous visitors do not count
    await s.world.ctx.services.last_use.flush()
    workspace = (await s.world.get(f"/api/v2/workspaces/{s.agent.workspace['id']}")).json()
    assert workspace["last_used_at"] > s.agent.workspace["last_used_at"]


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT00:00:00Z")


async def _foreign_pages(s: Scene) -> None:
    """Check foreign pages: below one wildcard all is one site to a browser, yet other owners' pages must not use the
    visitor's cookies."""
    first = await s.host("all--dev--admin", token=None)
    cookie = first.headers["set-cookie"].partition(";")[0]
    for origin, status in (
        ("https://x--dev--bob.apps.test", 403),
        ("https://x--dev--admin.apps.test", 200),
        ("http://all--dev--admin.apps.test", 200),
        ("null", 403),
    ):
        headers = {"Cookie": cookie, "Origin": origin}
        answer = await s.host("all--dev--admin", "/size", method="POST", headers=headers, content=b"x")
        assert answer.status_code == status, origin
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Cookie": cookie}
    page = await s.host("all--dev--admin", "/ws", headers={**upgrade, "Origin": "https://x--dev--bob.apps.test"})
    assert page.status_code == 403


async def _passed_through(s: Scene) -> None:
    """Check that a template may leave CORS to its applications."""
    template = s.agent.workspace["template_id"]
    changed = await s.world.patch(f"/api/v2/templates/{template}", {"cors_behavior": "passthru"})
    assert changed.status_code == 200, changed.text
    ask = {"Origin": "https://evil.test", "Access-Control-Request-Method": "PUT"}
    preflight = await s.host("open--dev--admin", method="OPTIONS", headers=ask)
    assert preflight.json()["method"] == "OPTIONS"
    answer = await s.host("open--dev--admin", "/cookies", headers={"Origin": "https://evil.test"})
    assert answer.headers["access-control-allow-origin"] == "*"


async def _secure_port(s: Scene, folder: Path) -> None:
    """Check a port with TLS and an unknown certificate."""
    authority = Authority(folder)
    listeners = await trio.open_ssl_over_tcp_listeners(0, authority.server_context("localhost"), host="127.0.0.1")
    port = listeners[0].transport_listener.socket.getsockname()[1]  # type: ignore[attr-defined]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, s.app.serve, listeners)
        assert (await s.host(f"{port}s--main--dev--admin", token=None)).status_code == 200
        assert (await s.host(f"{port}--main--dev--admin", token=None)).status_code == 502
        nursery.cancel_scope.cancel()


async def _terminal(s: Scene) -> None:
    """Check that a ticket opens one agent's terminal without a session."""
    path = f"/api/v2/workspaceagents/{s.agent.agent_id}/pty"
    url = s.world.url.replace("http://", "ws://") + path
    route = "/api/v2/applications/reconnecting-pty-signed-token"
    body = {"url": url, "agentID": str(s.agent.agent_id)}
    _, other = await s.world.member("carl")
    assert (await s.world.post(route, body, token=other)).status_code == 404
    assert (await s.world.post(route, body, token="")).status_code == 401
    for wrong in ("zzz", url.replace("/pty", ""), url.replace("127.0.0.1", "evil.test")):
        assert (await s.world.post(route, {**body, "url": wrong})).status_code == 400
    ticket = (await s.world.post(route, body)).json()["signed_token"]
    policy = DialPolicy(s.world.url)
    query = f"reconnect={uuid4()}&command=echo+through%3B+sleep+60&coder_signed_app_token_23db1dde="
    for token, at in ((forge(ticket), path), (ticket, path.replace(str(s.agent.agent_id), str(uuid4())))):
        with pytest.raises(HttpError):
            await connect_websocket(policy, f"{at}?{query}{token}")
    socket = await connect_websocket(policy, f"{path}?{query}{ticket}")
    seen = b""
    with trio.fail_after(60):
        while b"through" not in seen:
            message = await socket.receive_message()
            assert isinstance(message, bytes)
            seen += message
    await socket.aclose()
    log = (await s.world.get("/api/v2/connectionlog?q=type:workspace_app")).json()["connection_logs"]
    opened = [row for row in log if row["web_info"]["slug_or_port"] == "terminal"]
    assert [(row["web_info"]["user"]["username"], row["agent_name"], row["ip"]) for row in opened] == [
        ("admin", "main", "127.0.0.1")
    ]


async def test_pages_and_settings(tmp_path: Path) -> None:
    settings = {"redirect_to_access_url": True, "dangerous_allow_cors_requests": True}
    async with view_context(tmp_path, agent=False, **settings) as s:
        waiting = await s.get(f"{WEB}/")
        assert waiting.status_code == 502
        assert "is not connected" in waiting.text
        assert 'http-equiv="refresh"' in waiting.text
        await _hosts_and_origins(s)
        await _settings_of_paths(s)
        await _stopped_workspace(s)


async def _hosts_and_origins(s: Scene) -> None:
    away = await s.get("/templates?a=b", headers={"Host": "other.test"})
    assert (away.status_code, away.headers["location"]) == (307, f"{s.world.url}/templates?a=b")
    assert (await s.get("/healthz", headers={"Host": "10.0.0.1"})).status_code == 200
    ask = {"Origin": "https://x.test", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "a"}
    preflight = await s.get("/api/v2/users/me", method="OPTIONS", headers=ask)
    assert preflight.headers["access-control-allow-origin"] == "*"
    answer = await s.get("/api/v2/buildinfo", headers={"Origin": "https://x.test"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    host = (await s.get("/api/v2/applications/host")).json()["host"]
    assert host == f"*.apps.test:{urlsplit(s.world.url).port}"
    assert (await s.get("/api/v2/regions")).json()["regions"][0]["wildcard_hostname"] == host


async def _settings_of_paths(s: Scene) -> None:
    """Check that by path only the owner is admitted, unless the deployment explicitly allows more."""
    ctx, usual = s.world.ctx, s.world.ctx.config
    _, bob = await s.world.member("bob", ["owner"])
    for setting, reached in (
        ({}, {"web": False, "all": False, "open": False}),
        ({"dangerous_allow_path_app_sharing": True}, {"web": False, "all": True, "open": True}),
        ({"dangerous_allow_path_app_site_owner_access": True}, {"web": True, "all": True, "open": True}),
    ):
        ctx.config = replace(usual, **cast("Any", setting))
        for slug, allowed in reached.items():
            answer = await s.get(f"/@admin/dev/apps/{slug}/", token=bob)
            # 502: admitted, but the agent is not connected
            assert answer.status_code == (502 if allowed else 404), (setting, slug)
    ctx.config = replace(usual, disable_path_apps=True)
    off = await s.get(f"{WEB}/", token="")
    assert off.status_code == 403
    assert (await s.host("open--dev--admin")).status_code == 502
    ctx.config = usual


async def _stopped_workspace(s: Scene) -> None:
    workspace = f"/api/v2/workspaces/{s.agent.workspace['id']}"
    assert (await s.world.post(f"{workspace}/builds", {"transition": "stop"})).status_code == 201

    async def is_stopped() -> bool:
        return bool((await s.world.get(workspace)).json()["latest_build"]["status"] == "stopped")

    await eventually(is_stopped)
    page = await s.get(f"{WEB}/")
    assert page.status_code == 400
    assert "<h1>400 - Workspace Offline</h1>" in page.text
    assert f'href="{s.world.url}/@admin/dev"' in page.text
    _, bob = await s.world.member("eve")
    assert (await s.get(f"{WEB}/", token=bob)).status_code == 404
    assert (await s.get(f"{WEB}/", token="")).status_code == 303
