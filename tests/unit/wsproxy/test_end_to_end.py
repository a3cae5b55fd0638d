"""Server, workspace proxy and agent: users reach a workspace through the proxy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
import trio

from coder.appproxy.apps.app_visitor import Visitor
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.rpc_endpoints import proxies
from coder.coderd.services.apps import app_tokens
from coder.coderd.store.proxies import system_workspace_proxies
from coder.coderd.store.proxies import workspace_proxies as store
from coder.coderd.store.templates import insights
from coder.domain.access.credentials import Credentials
from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.core.wire import derp
from coder.mesh.drivers.relay_exchange import _Client, exchange
from coder.mesh.drivers.transport import DerpTransport
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import WebSocketStream, connect_websocket
from coder.rpc.proto import provisioner_pb2
from coder.tailnet.relay import RelayDialer
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.server import RunningProxy, open_proxy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, eventually, workspace_world
from tests.kit.api.api_description import check
from tests.kit.api.http_clients import http_client
from tests.kit.api.security_probes import forged as forge
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspace_proxy import MEASURED, PROXIES, all_is_measured, new_proxy, proxy_config, running_proxy
from tests.kit.stand_ins.scripted_http_servers import WebApp, running_app

pb = provisioner_pb2
WEB = "/@admin/dev/apps/web"


@dataclass
class Scene:
    agent: AgentWorld
    app: WebApp
    proxy: RunningProxy
    browser: httpx.AsyncClient

    @property
    def world(self) -> Any:
        return self.agent.world

    @property
    def url(self) -> str:
        return self.proxy.world.access_url

    @property
    def policy(self) -> DialPolicy:
        return DialPolicy(self.url, token=Secret(self.world.token))

    async def get(self, path: str, *, token: str | None = None, **rest: Any) -> httpx.Response:
        """Send a request to the proxy."""
        self.browser.cookies.clear()
        use = self.world.token if token is None else token
        headers = {**({"Coder-Session-Token": use} if use else {}), **rest.pop("headers", {})}
        return await self.browser.request(rest.pop("method", "GET"), self.url + path, headers=headers, **rest)

    async def host(self, label: str, path: str = "/echo", **rest: Any) -> httpx.Response:
        headers = {"Host": f"{label}.proxy.test", **rest.pop("headers", {})}
        return await self.get(path, token=rest.pop("token", ""), headers=headers, **rest)


@asynccontextmanager
async def view_context(folder: Path) -> AsyncIterator[Scene]:
    async with running_app() as app:
        url = f"http://localhost:{app.port}"
        apps = [
            pb.App(slug="web", display_name="Web", url=url, sharing_level=pb.OWNER),
            pb.App(slug="all", display_name="All", url=url, sharing_level=pb.AUTHENTICATED, subdomain=True),
            pb.App(slug="cmd", display_name="Cmd", command="htop", sharing_level=pb.OWNER),
        ]
        async with workspace_world(agent_fields={"apps": apps}) as agent:
            token = await new_proxy(agent.world)
            policy = DialPolicy(agent.world.url, token=Secret(agent.token))
            async with (
                running_agent(agent, policy, folder / "agent"),
                running_proxy(agent.world, token, **MEASURED) as proxy,
                http_client() as browser,
            ):
                yield Scene(agent, app, proxy, browser)


async def test_a_workspace_through_a_proxy(tmp_path: Path) -> None:
    async with view_context(tmp_path) as s:
        await _becomes_healthy(s)
        await _path_application(s)
        await _app_host(s)
        await _rejections(s)
        await _websocket(s)
        await _terminal(s)
        await _relay(s)
        await all_is_measured(s.proxy)
        await _other_paths(s)
        await _usage_is_reported(s)
        await _open_stream_checks(s)


async def _becomes_healthy(s: Scene) -> None:
    async def ok() -> bool:
        result = (await s.world.get(f"{PROXIES}/sydney")).json()
        return bool(result["status"]["status"] == "ok")

    await eventually(ok)
    report = (await s.get("/healthz-report")).json()
    check("ProxyHealthReport", report)
    assert report["errors"] == []
    info = (await s.get("/api/v2/buildinfo")).json()
    check("BuildInfoResponse", info)
    assert (info["workspace_proxy"], info["dashboard_url"]) == (True, s.world.url)
    regions = (await s.world.get("/api/v2/regions")).json()["regions"]
    assert regions[1]["path_app_url"] == s.url
    policy = (await s.world.get("/workspaces")).headers["content-security-policy"]
    sources = {part.split()[0]: part.split()[1:] for part in policy.split("; ")}
    assert {s.url, s.url.replace("http", "ws", 1)} <= set(sources["connect-src"])  # its latency, its terminals
    assert {urlsplit(s.url).netloc, "*.proxy.test"} <= set(sources["frame-src"])


async def _path_application(s: Scene) -> None:
    """Without a session at the proxy, the server transfers one, and the ticket works without it."""
    away = await s.get(f"{WEB}/echo?a=1", token="")
    assert away.status_code == 303, away.text
    address = urlsplit(away.headers["location"])
    assert f"{address.scheme}://{address.netloc}" == s.world.url
    assert address.path == "/api/v2/applications/auth-redirect"
    assert parse_qs(address.query)["redirect_uri"] == [f"{s.url}{WEB}/echo?a=1"]
    back = await s.world.get(f"{address.path}?{address.query}")
    assert back.status_code == 307, back.text
    assert back.headers["location"].startswith(f"{s.url}{WEB}/echo?")
    landed = await s.get(back.headers["location"].removeprefix(s.url), token="")
    assert (landed.status_code, landed.headers["location"]) == (303, f"{WEB}/echo?a=1")
    session = landed.headers["set-cookie"].partition(";")[0]
    assert session.startswith("coder_path_app_session_token=")
    opened = await s.get(f"{WEB}/echo?a=1", token="", headers={"Cookie": f"{session}; mine=1"})
    assert opened.status_code == 200, opened.text
    assert opened.json()["target"] == "/echo?a=1"
    seen = dict(opened.json()["headers"])
    assert seen["cookie"] == "mine=1"
    ticket = opened.headers["set-cookie"].partition(";")[0]
    assert ticket.startswith("coder_signed_app_token=")
    again = await s.get(f"{WEB}/echo", token="", headers={"Cookie": ticket})
    assert again.status_code == 200
    assert "set-cookie" not in again.headers
    forged = await s.get(f"{WEB}/echo", token="", headers={"Cookie": forge(ticket)})
    assert forged.status_code == 303
    key = session.partition("=")[2]
    assert (await s.world.get("/api/v2/users/me", token=key)).status_code in {403, 404}


async def _app_host(s: Scene) -> None:
    away = await s.host("all--dev--admin", "/deep?a=1")
    assert away.status_code == 303
    address = urlsplit(away.headers["location"])
    back = await s.world.get(f"{address.path}?{address.query}")
    location = urlsplit(back.headers["location"])
    assert (location.scheme, location.netloc) == ("http", "all--dev--admin.proxy.test")
    landed = await s.host("all--dev--admin", f"{location.path}?{location.query}")
    assert (landed.status_code, landed.headers["location"]) == (303, "/deep?a=1")
    cookie = landed.headers["set-cookie"].partition(";")[0]
    assert (await s.host("all--dev--admin", headers={"Cookie": cookie})).status_code == 200
    _, bob = await s.world.member("bob")
    assert (await s.host("all--dev--admin", token=bob)).status_code == 200
    hidden = await s.host("web--dev--admin", token=bob)
    assert hidden.status_code == 404, hidden.text
    port = f"{s.app.port}--main--dev--admin"
    assert (await s.host(port, token=s.world.token)).status_code == 200
    ask = {"Origin": "https://evil.test", "Access-Control-Request-Method": "PUT"}
    preflight = await s.host("all--dev--admin", method="OPTIONS", headers=ask)
    assert (preflight.status_code, preflight.headers.get("access-control-allow-origin")) == (204, None)


async def _rejections(s: Scene) -> None:
    """The proxy gives the server's reasons in the server's words."""
    for path, status, words in (
        ("/@admin/dev/apps/none/", 404, "404 - Application Not Found"),
        ("/@admin/dev/apps/8080/", 500, "Ports cannot be opened under a path."),
        ("/@admin/dev/apps/cmd/", 400, "This application is a command, not a page."),
    ):
        page = await s.get(path)
        own = await s.world.get(path)
        assert (page.status_code, page.text) == (own.status_code, own.text) == (status, page.text), path
        assert words in page.text


async def _websocket(s: Scene) -> None:
    socket = await connect_websocket(s.policy, f"{WEB}/ws")
    await socket.send_message("hello")
    assert await socket.receive_message() == "hello"
    await socket.send_message(bytes(200_000))
    assert await socket.receive_message() == bytes(200_000)
    await socket.aclose()


async def _terminal(s: Scene) -> None:
    path = f"/api/v2/workspaceagents/{s.agent.agent_id}/pty"
    body = {"url": s.url.replace("http://", "ws://") + path, "agentID": str(s.agent.agent_id)}
    answer = await s.world.post("/api/v2/applications/reconnecting-pty-signed-token", body)
    ticket = answer.json()["signed_token"]
    query = f"reconnect={uuid4()}&command=echo+through%3B+sleep+60"
    signed = f"{path}?{query}&coder_signed_app_token_23db1dde="
    plain, dashboard = DialPolicy(s.url), [("Origin", s.world.url)]
    for attempt in (f"{path}?{query}", f"{signed}{forge(ticket)}"):
        with pytest.raises(HttpError) as refused:
            await connect_websocket(plain, attempt)
        assert refused.value.status == 401
    with pytest.raises(HttpError):  # a page of another site, with the visitor's cookies
        cookie = [("Cookie", f"coder_session_token={s.world.token}"), ("Origin", "https://evil.test")]
        await connect_websocket(plain, f"{path}?{query}", headers=cookie)
    for policy, address, headers in ((plain, signed + ticket, dashboard), (s.policy, f"{path}?{query}", [])):
        socket = await connect_websocket(policy, address, headers=headers)
        await _shows(socket, b"through")
        await socket.aclose()
    log = (await s.world.get("/api/v2/connectionlog?q=type:workspace_app")).json()["connection_logs"]
    opened = [row for row in log if row["web_info"]["slug_or_port"] == "terminal"]
    assert [row["web_info"]["user"]["username"] for row in opened] == ["admin"]


async def _shows(terminal: WebSocketStream, text: bytes) -> None:
    seen = b""
    with trio.fail_after(60):
        while text not in seen:
            message = await terminal.receive_message()
            assert isinstance(message, bytes), terminal.close_reason
            seen += message


async def _relay(s: Scene) -> None:
    assert (await s.get("/derp/latency-check")).status_code == 200
    assert (await s.get("/derp")).status_code == 426
    with trio.fail_after(60):
        assert await exchange(await _client_of(s.proxy), await _client_of(s.proxy)) > 0


async def _client_of(proxy: RunningProxy) -> DerpTransport:
    """Connect to a proxy's relay."""
    port = urlsplit(proxy.world.access_url).port or 0
    node = DerpNode("a", 10_001, "127.0.0.1", derp_port=port, force_http=True)
    dialer = RelayDialer(DialPolicy(proxy.world.access_url))
    return await dialer(DerpRegion(10_001, "sydney", "Sydney", (node,)), node)


async def _other_paths(s: Scene) -> None:
    page = await s.get("/templates/a%20b?x=1")
    assert (page.status_code, page.headers["location"]) == (307, f"{s.world.url}/templates/a%20b?x=1")
    missing = await s.get("/api/v2/users/me")
    assert missing.status_code == 404
    assert s.world.url in missing.json()["detail"]
    far = await s.get("/latency-check", headers={"Origin": s.world.url})
    assert (far.text, far.headers["access-control-allow-origin"]) == ("OK", "*")
    assert (await s.get("/healthz")).text == "OK"


async def _usage_is_reported(s: Scene) -> None:
    await s.proxy.authorizer.report()
    hour = s.world.ctx.clock.now().replace(minute=0, second=0, microsecond=0)
    used = await s.world.ctx.db.read(insights.app_usage, hour - timedelta(days=1), hour + timedelta(hours=2), [])
    assert {row.slug for row in used} == {"web", "all"}
    await s.world.ctx.services.last_use.flush()
    workspace = (await s.world.get(f"/api/v2/workspaces/{s.agent.workspace['id']}")).json()
    assert workspace["last_used_at"] > s.agent.workspace["last_used_at"]


async def _open_stream_checks(s: Scene) -> None:
    """Open streams are checked again: those of logged-out users are closed, others stay open."""
    _, token = await s.world.member("dana")
    shared = DialPolicy(f"http://all--dev--admin.proxy.test:{urlsplit(s.url).port}", address="127.0.0.1")
    hers = await connect_websocket(replace(shared, token=Secret(token)), "/ws")
    mine = await connect_websocket(replace(shared, token=Secret(s.world.token)), "/ws")
    assert (await s.world.post("/api/v2/users/logout", token=token)).status_code == 200
    await s.proxy.authorizer.judge()
    with trio.fail_after(60):
        try:
            assert await hers.receive_message() is None
        except trio.BrokenResourceError:
            pass
    await hers.aclose()
    await mine.send_message("still")
    assert await mine.receive_message() == "still"
    await mine.aclose()
    await _ticket_only_checks(s)


async def _ticket_only_checks(s: Scene) -> None:
    """Without a session, the ticket's user is checked: at terminals, as the dashboard opens them, and in applications.
    A stream is closed if its workspace's name now belongs to another workspace."""
    eve, token = await s.world.member("eve")
    workspace = f"/api/v2/workspaces/{s.agent.workspace['id']}"
    assert (await s.world.patch(f"{workspace}/acl", {"user_roles": {eve: "use"}})).status_code == 204
    pty = f"/api/v2/workspaceagents/{s.agent.agent_id}/pty"
    body = {"url": s.url.replace("http://", "ws://") + pty, "agentID": str(s.agent.agent_id)}
    issued = await s.world.post("/api/v2/applications/reconnecting-pty-signed-token", body, token=token)
    query = f"reconnect={uuid4()}&command=sleep+60&coder_signed_app_token_23db1dde={issued.json()['signed_token']}"
    port = urlsplit(s.url).port
    host = f"{s.app.port}--main--dev--admin"
    entered = await s.host(host, token=token)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    own = DialPolicy(f"http://{host}.proxy.test:{port}", address="127.0.0.1")
    terminal = await connect_websocket(DialPolicy(s.url), f"{pty}?{query}")
    application = await connect_websocket(own, "/ws", headers=[("Cookie", cookie)])
    await s.proxy.authorizer.judge()
    await application.send_message("still")
    assert await application.receive_message() == "still"
    await terminal.send_message(b'{"data": "still"}')  # a terminal echoes its input
    await _shows(terminal, b"still")
    await _reused_name_is_rejected(s, UUID(eve), token, cookie.partition("=")[2])
    assert (await s.world.patch(f"{workspace}/acl", {"user_roles": {eve: ""}})).status_code == 204
    await s.proxy.authorizer.judge()
    await _wait_until_gone(terminal)
    await _wait_until_gone(application)
    with pytest.raises(HttpError) as refused:  # the tickets are valid for some seconds more
        await connect_websocket(DialPolicy(s.url), f"{pty}?{query}")
    assert refused.value.status == 404
    with pytest.raises(HttpError) as refused:
        await connect_websocket(own, "/ws", headers=[("Cookie", cookie)], carry=False)
    assert refused.value.status in {303, 401, 404}


async def _reused_name_is_rejected(s: Scene, eve: UUID, token: str, signed: str) -> None:
    """Two visitors have the same names; one connected to the former workspace of that name."""
    authorizer, visits = s.proxy.authorizer, s.world.ctx.services.edge.open_streams
    now = await app_tokens.read_ticket_untrusted(s.world.ctx, signed)
    before = replace(now, workspace_id=uuid4())
    for visitor in (Visitor(Credentials(), eve), Visitor(Credentials(token), eve)):
        with authorizer.watched(visitor, now) as stays, authorizer.watched(visitor, before) as leaves:
            with trio.CancelScope(shield=True):  # the cancelled task is this one: it would end without the checks
                await authorizer.judge()
            assert (stays.cancel_called, leaves.cancel_called) == (False, True), visitor
        with visits.track_app(visitor, now) as stays, visits.track_app(visitor, before) as leaves:
            with trio.CancelScope(shield=True):
                await visits.look()
            assert (stays.cancel_called, leaves.cancel_called) == (False, True), visitor


async def _wait_until_gone(socket: WebSocketStream) -> None:
    with trio.fail_after(60):
        try:
            while await socket.receive_message() is not None:
                pass
        except trio.BrokenResourceError:
            pass
    await socket.aclose()


async def test_deleted_proxy_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "CHECK_INTERVAL", 0.05)
    async with running_coderd(first_user=True) as world:
        token = await new_proxy(world)
        with pytest.raises(CoderError) as ended:
            async with running_proxy(world, token) as proxy:
                mine = proxy.world

                async def coordinated() -> bool:
                    return mine.agent_dialer is not None and mine.agent_dialer.controller.is_coordinated

                await eventually(coordinated)
                assert (await world.delete(f"{PROXIES}/sydney")).status_code == 200
                with trio.fail_after(60):
                    await trio.sleep_forever()
        assert ended.value.code == "proxy_token"
        assert "regenerate-token" in ended.value.hint
        assert mine.agent_dialer is None


async def test_replica_relays_are_connected() -> None:
    """A client of one process of a proxy reaches a client of another process."""
    async with running_coderd(first_user=True) as world:
        token = await new_proxy(world)
        first_config, two = [await proxy_config(world, token, derp_only=True) for _ in range(2)]
        first_config, two = [
            replace(config, server=replace(config.server, derp_server_relay_url=config.server.access_url))
            for config in (first_config, two)
        ]
        async with open_proxy(first_config) as first, open_proxy(two) as second:
            await first.world.registration.registered.wait()
            await second.world.registration.registered.wait()
            first.world.registration.check_now()  # it registers again and learns of the second

            first_client, second_client = _Client(await _client_of(first)), _Client(await _client_of(second))
            relay = first.world.relay
            assert relay is not None

            async def knows_peer() -> bool:
                return bool(relay._elsewhere)

            async with first_client.stream, second_client.stream:
                await first_client.log_in()
                await second_client.log_in()
                await eventually(knows_peer)
                await first_client.stream.send_all(derp.encode_send_packet(second_client.private.public, b"hello"))
                with trio.fail_after(60):
                    while not isinstance(frame := await second_client.inbox.frame(), derp.RecvPacket):
                        pass
                assert frame.packet == b"hello"


async def test_wrong_token_error() -> None:
    async with running_coderd(first_user=True) as world:
        config = await proxy_config(world, f"{uuid4()}:wrong")
        with pytest.raises(CoderError) as refused:
            async with open_proxy(config):
                with trio.fail_after(60):
                    await trio.sleep_forever()
        assert refused.value.code == "proxy_token"
        assert "wrong" not in str(refused.value)


async def test_relay_only_proxy() -> None:
    async with running_coderd(first_user=True) as world:
        token = await new_proxy(world)
        async with running_proxy(world, token, derp_only=True) as proxy, http_client() as browser:

            async def relays() -> bool:
                return (await browser.get(f"{proxy.world.access_url}/derp")).status_code == 426

            await eventually(relays)
            for path in (f"{WEB}/", "/templates", f"/api/v2/workspaceagents/{uuid4()}/pty"):
                assert (await browser.get(proxy.world.access_url + path)).status_code == 404, path
            assert (await browser.get(f"{proxy.world.access_url}/healthz")).status_code == 200
            health = world.ctx.services.api.proxy_health
            await health.check_all()
            assert (await world.get(f"{PROXIES}/sydney")).json()["derp_only"] is True
            assert len((await world.get("/api/v2/regions")).json()["regions"]) == 1


def _start(config: ProxyConfig, **env: str) -> subprocess.Popen[bytes]:
    words = ["wsproxy", "server", "--primary-access-url", config.primary_access_url]
    words += ["--http-address", config.server.http_address, "--access-url", config.server.access_url]
    known = {**os.environ, "CODER_PROXY_SESSION_TOKEN": config.token.reveal(), "PYTHONUNBUFFERED": "1", **env}
    argv = [sys.executable, "-m", "coder", *words]
    return subprocess.Popen(argv, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


async def test_the_command() -> None:
    async with running_coderd(first_user=True) as world:
        config = await proxy_config(world, await new_proxy(world))
        with _start(config) as process:

            def heard() -> bytes:
                assert process.stdout is not None
                return process.stdout.readline()

            output = b""
            with trio.fail_after(60):
                while b"Registered with" not in output:
                    line = await trio.to_thread.run_sync(heard)
                    assert line, output
                    output += line
            process.send_signal(signal.SIGTERM)
            rest, _ = await trio.to_thread.run_sync(process.communicate)
            assert process.returncode == 0, rest
            assert b"Shut down cleanly." in rest
        assert config.token.reveal().encode() not in output + rest
        row = await world.ctx.db.read(system_workspace_proxies.find_proxy, "sydney")
        assert row is not None
        assert not await world.ctx.db.read(store.list_replicas, row.id, world.ctx.clock.now() - timedelta(days=1))
