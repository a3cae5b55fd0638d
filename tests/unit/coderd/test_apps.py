"""Applications of a workspace through the whole way: browser, server, mesh, agent, a real little web server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import trio
import trio.testing

from coder.base.secret import Secret
from coder.coderd.services.app_usage import AppUsage
from coder.coderd.store import insights
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents import AgentWorld, workspace_world
from tests.kit.web_app import WebApp, running_app
from tests.kit.whole_agent import running_agent

pb = provisioner_pb2
WEB = "/@admin/dev/apps/web"
WILDCARD = "*.apps.test"


@dataclass
class Scene:
    """A workspace whose agent runs, and the application in it."""

    agent: AgentWorld
    app: WebApp

    @property
    def world(self) -> Any:
        return self.agent.world

    async def get(self, path: str, *, token: str | None = None, method: str = "GET", **rest: Any) -> httpx.Response:
        self.world.client.cookies.clear()
        return await self.world.request(method, path, token=token, **rest)

    async def host(self, label: str, path: str = "/echo", *, token: str | None = "", **rest: Any) -> httpx.Response:
        """A request to an application's own host."""
        headers = {"Host": f"{label}.apps.test", **rest.pop("headers", {})}
        return await self.get(path, token=token, headers=headers, **rest)


def _app(slug: str, port: int, share: int = pb.OWNER, **rest: Any) -> provisioner_pb2.App:
    url = rest.pop("url", f"http://localhost:{port}")
    return pb.App(slug=slug, display_name=slug.title(), url=url, sharing_level=share, **rest)


@asynccontextmanager
async def scene(folder: Path, *, agent: bool = True, **settings: Any) -> AsyncIterator[Scene]:
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
    async with scene(tmp_path) as s:
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
        await _others(s)
        await _websocket(s)
        await _use_is_counted(s)


async def _ticket_alone(s: Scene, cookie: str) -> None:
    """The signed cookie opens this application without a session, and no other."""
    again = await s.get(f"{WEB}/echo", token="", headers={"Cookie": cookie})
    assert again.status_code == 200
    assert "set-cookie" not in again.headers
    assert "cookie" not in _headers(again)
    other = await s.get("/@admin/dev/apps/query/echo", token="", headers={"Cookie": cookie})
    assert other.status_code == 303
    forged = await s.get(f"{WEB}/echo", token="", headers={"Cookie": cookie[:-2] + "AA"})
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
    big = bytes(3_000_000)
    assert (await s.get(f"{WEB}/size", method="POST", content=big)).text == "3000000"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield bytes(50_000)

    assert (await s.get(f"{WEB}/size", method="PUT", content=pieces())).text == "500000"
    assert (await s.get(f"{WEB}/close")).text == "until the end"
    assert (await s.get(f"{WEB}/early", method="POST", content=bytes(10))).status_code == 413
    assert (await s.get(f"{WEB}/echo", method="HEAD")).content == b""
    async with _reading(s, "ticks") as stream:
        assert b"one" in await _until(stream, b"one")  # before the answer is whole
        s.app.tick.set()
        await _until(stream, b"two")
    s.app.tick, s.app.left = trio.Event(), trio.Event()
    # a browser that leaves is noticed by the application
    async with _reading(s, "ticks") as stream:
        await _until(stream, b"one")
    with trio.fail_after(5):
        await s.app.left.wait()
    # a reader who does not read does not fill our memory
    s.app.left = trio.Event()
    async with _reading(s, "endless") as stream:
        await _until(stream, b"xxx")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert s.app.sent < 24_000_000
    with trio.fail_after(5):
        await s.app.left.wait()


@asynccontextmanager
async def _reading(s: Scene, what: str) -> AsyncIterator[trio.SocketStream]:
    """A browser's bare connection, after it asked."""
    parts = urlsplit(s.world.url)
    async with await trio.open_tcp_stream(str(parts.hostname), int(parts.port or 0)) as stream:
        head = f"GET {WEB}/{what} HTTP/1.1\r\nHost: {parts.netloc}\r\nCoder-Session-Token: {s.world.token}\r\n\r\n"
        await stream.send_all(head.encode())
        yield stream


async def _until(stream: trio.SocketStream, mark: bytes) -> bytes:
    data = b""
    with trio.fail_after(5):
        while mark not in data:
            piece = await stream.receive_some(65536)
            assert piece, data
            data += piece
    return data


async def _refusals(s: Scene) -> None:
    out = await s.get(f"{WEB}/x?y=1", token="")
    assert out.status_code == 303
    place = urlsplit(out.headers["location"])
    assert place.path == "/login"
    assert parse_qs(place.query)["redirect"] == [f"{WEB}/x?y=1"]
    for path, status, heading in (
        ("/@admin/dev/apps/none/", 404, "404 - Application Not Found"),
        ("/@nobody/dev/apps/web/", 404, "404 - Application Not Found"),
        ("/@admin/dev.other/apps/web/", 404, "404 - Application Not Found"),
        ("/@admin/dev/apps/8080/", 500, "500 - Internal Server Error"),
        ("/@admin/dev/apps/dead/", 400, "400 - Bad Request"),
        ("/@admin/dev/apps/cmd/", 400, "400 - Bad Request"),
        (f"{WEB}/broken", 502, "502 - Bad Gateway"),
    ):
        page = await s.get(path)
        assert page.status_code == status, path
        assert f"<h1>{heading}</h1>" in page.text
        assert page.headers["content-type"] == "text/html; charset=utf-8"


async def _others(s: Scene) -> None:
    """Who may see what: by path nothing is shared, by host as the template says."""
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
    await _signing_in(s, token)


async def _cross_origin(s: Scene) -> None:
    ask = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-a"}
    mine = {"Origin": "https://web--dev--admin.apps.test"}
    allowed = await s.host("open--dev--admin", method="OPTIONS", headers={**mine, **ask})
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == mine["Origin"]
    assert allowed.headers["access-control-allow-headers"] == "x-a"
    real = await s.host("open--dev--admin", "/cookies", headers=mine)
    assert real.headers.get_list("access-control-allow-origin") == [mine["Origin"]]
    for origin in ("https://web--dev--bob.apps.test", "https://evil.test"):
        refused = await s.host("open--dev--admin", method="OPTIONS", headers={"Origin": origin, **ask})
        assert "access-control-allow-origin" not in refused.headers
        real = await s.host("open--dev--admin", "/cookies", headers={"Origin": origin})
        assert "access-control-allow-origin" not in real.headers


async def _signing_in(s: Scene, token: str) -> None:
    """A host of its own has no session yet: the dashboard hands one over, sealed."""
    away = await s.host("all--dev--admin", "/deep?a=1")
    assert away.status_code == 303
    address = urlsplit(away.headers["location"])
    assert address.path == "/api/v2/applications/auth-redirect"
    path = f"{address.path}?{address.query}"
    assert "/login" in (await s.get(path, token="")).headers["location"]
    back = await s.get(path, token=token)
    assert back.status_code == 307, back.text
    place = urlsplit(back.headers["location"])
    assert place.netloc == "all--dev--admin.apps.test"
    landed = await s.host("all--dev--admin", f"{place.path}?{place.query}")
    assert (landed.status_code, landed.headers["location"]) == (303, "/deep?a=1")
    cookie = landed.headers["set-cookie"].partition(";")[0]
    assert cookie.startswith("coder_subdomain_app_session_token_")
    inside = await s.host("all--dev--admin", headers={"Cookie": f"{cookie}; k=v"})
    assert inside.status_code == 200
    assert _headers(inside)["cookie"] == "k=v"
    key = cookie.partition("=")[2]
    assert (await s.get("/api/v2/users/me", token=key)).status_code in {403, 404}
    assert (await s.get(path, token=key)).status_code in {403, 404}
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


async def _use_is_counted(s: Scene) -> None:
    await s.world.ctx.part(AppUsage).report()
    log = (await s.world.get("/api/v2/connectionlog?q=type:workspace_app")).json()["connection_logs"]
    entry = next(
        row for row in log if row["web_info"]["slug_or_port"] == "web" and row["web_info"]["status_code"] == 200
    )
    assert entry["agent_name"] == "main"
    assert entry["web_info"]["user"]["username"] == "admin"
    assert (await s.world.get("/api/v2/connectionlog?q=type:port_forwarding")).json()["count"] >= 1
    hour = s.world.ctx.clock.now().replace(minute=0, second=0, microsecond=0)
    window = {"start_time": _day(hour), "end_time": _rfc3339(hour + timedelta(hours=1))}
    # reports end with the hour that runs: ask the store for the future
    used = await s.world.ctx.db.read(insights.app_usage, hour - timedelta(days=1), hour + timedelta(hours=2), [])
    by_slug = {row.slug: row for row in used}
    assert set(by_slug) == {"web", "query", "all", "open"}
    assert by_slug["web"].seconds in {60, 120}
    assert by_slug["open"].times == 1
    report = await s.world.get("/api/v2/insights/templates", params=window)
    assert report.status_code == 200, report.text
    days = (await s.world.get("/api/v2/insights/daus")).json()["entries"]
    assert days[-1]["amount"] == 2  # admin and bob; nobody in particular is nobody
    workspace = (await s.world.get(f"/api/v2/workspaces/{s.agent.workspace['id']}")).json()
    assert workspace["last_used_at"] > s.agent.workspace["last_used_at"]


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT00:00:00Z")
