"""Workspace proxies as the site's administrators see them; licenses, which are not needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
import trio

from coder.base.clock import SystemClock
from coder.base.secret import Secret
from coder.coderd.rpc_endpoints import proxies
from coder.coderd.services.foundation import outgoing_requests
from coder.coderd.services.foundation.outgoing_requests import OutgoingReply
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.proxies.proxy_health import ProxyHealth, check_proxies
from coder.coderd.store.proxies import system_workspace_proxies
from coder.coderd.store.proxies import workspace_proxies as store
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import open_session
from tests.kit.api.api_description import check, check_list
from tests.kit.api.security_probes import forged as forge
from tests.kit.server.server_in_process import World, running_coderd

PATH = "/api/v2/workspaceproxies"


async def test_proxy_lifecycle() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member("alice")
        body = {"name": "sydney", "display_name": "Sydney", "icon": "/emojis/1f1e6.png"}
        assert (await world.post(PATH, body, token=token)).status_code == 403
        created = await world.post(PATH, body)
        assert created.status_code == 201, created.text
        check("UpdateWorkspaceProxyResponse", created.json())
        proxy = created.json()["proxy"]
        assert created.json()["proxy_token"].startswith(f"{proxy['id']}:")
        listed = (await world.get(PATH, token=token)).json()["regions"]
        check_list("WorkspaceProxy", listed)
        assert [item["name"] for item in listed] == ["primary", "sydney"]
        for region in (listed[1], (await world.get("/api/v2/regions", token=token)).json()["regions"][1]):
            assert (region["name"], region["healthy"]) == ("sydney", False), "it never registered"
            assert (region["path_app_url"], region["wildcard_hostname"]) == ("", "")
        assert (await world.post(PATH, {**body, "name": "Sydney"})).status_code == 409
        for name in ("primary", "", "a b"):
            assert (await world.post(PATH, {**body, "name": name})).status_code == 400, name
        change = {"id": proxy["id"], "name": "perth", "display_name": "", "icon": "", "regenerate_token": True}
        changed = (await world.patch(f"{PATH}/sydney", change)).json()
        assert changed["proxy"]["display_name"] == "Sydney"
        assert changed["proxy_token"] not in {"", created.json()["proxy_token"]}
        assert (await world.get(f"{PATH}/perth")).json()["status"]["status"] == "unregistered"
        assert (await world.delete(f"{PATH}/{proxy['id']}", token=token)).status_code == 403
        assert (await world.delete(f"{PATH}/{proxy['id']}")).status_code == 200
        assert (await world.get(f"{PATH}/perth")).status_code == 404


async def test_licenses_not_needed() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member("alice")
        assert (await world.get("/api/v2/licenses")).json() == []
        for caller, status in ((token, 403), (world.token, 400)):
            assert (await world.post("/api/v2/licenses", {"license": "x"}, token=caller)).status_code == status
        assert (await world.delete("/api/v2/licenses/1")).status_code == 404
        assert (await world.post("/api/v2/licenses/trial", {})).status_code == 405
        check_list("Replica", (await world.get("/api/v2/replicas")).json())


async def test_deployment_config_hides_secrets() -> None:
    async with running_coderd(first_user=True, provisioner_daemon_psk=Secret("hush")) as world:
        answer = await world.get("/api/v2/deployment/config")
        assert "hush" not in answer.text
        config = answer.json()["config"]
        assert config["provisioner"]["daemon_psk"] == config["oidc"]["client_secret"] == ""
        assert config["session_lifetime"]["default_duration"] == 24 * 3600 * 10**9
        assert "browser_only" not in config, "optional fields that are off are omitted"
        assert (await world.put("/api/v2/appearance", {}, token=(await world.member("bob"))[1])).status_code == 403


def _registration(**changes: Any) -> dict[str, Any]:
    return {
        "access_url": "http://127.0.0.1:1",
        "wildcard_hostname": "*.proxy.test",
        "derp_enabled": True,
        "derp_only": False,
        "replica_id": str(uuid4()),
        "replica_hostname": "box",
        "replica_error": "",
        "replica_relay_address": "http://10.0.0.1:3000",
        "version": "v2.34.0",
        **changes,
    }


async def test_proxy_registration_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "CHECK_INTERVAL", 0.05)
    async with running_coderd(first_user=True) as world:
        created = (await world.post(PATH, {"name": "sydney", "display_name": "", "icon": ""})).json()
        headers = {"Coder-External-Proxy-Token": created["proxy_token"]}

        async def call(method: str, path: str, accept: str = "*/*", **rest: Any) -> Any:
            sent = {**headers, "Accept": accept}
            return await world.request(method, f"{PATH}/me/{path}", token="", headers=sent, **rest)

        for name in ("register", "deregister", "app-stats", "issue-signed-app-token"):
            assert (await world.post(f"{PATH}/me/{name}", {}, token="")).status_code == 401, name
            assert (await world.post(f"{PATH}/me/{name}", {})).status_code == 401, "a user is no proxy"
            assert (await call("POST", name, json=[])).status_code == 400, name
        bad_headers = {"Coder-External-Proxy-Token": forge(created["proxy_token"])}
        assert (await world.post(f"{PATH}/me/register", {}, token="", headers=bad_headers)).status_code == 401
        assert (await world.get("/api/v2/workspaceagents/connection", token="", headers=bad_headers)).status_code == 401
        body = _registration()
        answer = await call("POST", "register", json=body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["sibling_replicas"] == []
        assert len(answer.json()["derp_mesh_key"]) == 64
        assert answer.json()["derp_mesh_key"] != world.ctx.services.relay.derp.mesh_key
        connection = "/api/v2/workspaceagents/connection"
        assert (await world.get(connection, token="", headers=headers)).status_code == 200
        assert (await world.get(connection, token="")).status_code == 401
        assert "Regions" in answer.json()["derp_map"]
        other = await call("POST", "register", json=_registration(replica_hostname="box2"))
        check_list("Replica", other.json()["sibling_replicas"])
        assert [sibling["id"] for sibling in other.json()["sibling_replicas"]] == [body["replica_id"]]
        for url in ("https://p.test/?", "https://p.test/" + "?" * 300 + "key" * 300, "https://p.test/" + "a" * 2000):
            refused = await call("POST", "register", json=_registration(access_url=url))
            assert refused.status_code == 400 and "no query" in refused.text
        bad = _registration(access_url="nowhere", derp_enabled=False, derp_only=True)
        fields = (await call("POST", "register", json=bad)).json()["validations"]
        assert {item["field"] for item in fields} == {"access_url", "derp_only"}
        assert (await call("POST", "deregister", json={"replica_id": body["replica_id"]})).status_code == 204
        assert (await call("POST", "deregister", json={"replica_id": body["replica_id"]})).status_code == 404
        await _check_sign_in(world, call)
        await _check_health(world)
        await _check_keys(call)
        await _check_coordination(world, headers)


async def _check_sign_in(world: World, call: Any) -> None:
    """Assert that sign-in for a proxy redirects with the registered scheme, regardless of the requested address."""
    body = _registration(access_url="https://p.test", wildcard_hostname="*.p.test")
    assert (await call("POST", "register", json=body)).status_code == 201
    for host in ("p.test", "app--dev--admin.p.test"):
        back = await world.get(f"/api/v2/applications/auth-redirect?redirect_uri=http%3A%2F%2F{host}%2Fx")
        assert back.status_code == 307, back.text
        assert back.headers["location"].startswith(f"https://{host}/x?")
    foreign = await world.get("/api/v2/applications/auth-redirect?redirect_uri=https%3A%2F%2Fq.test%2Fx")
    assert foreign.status_code == 400
    assert (await call("POST", "register", json=_registration())).status_code == 201


async def _check_health(world: World) -> None:
    app: list[bytes] = []
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            app.append(bytes(await stream.receive_some(4096)))
            body = b'{"errors":[],"warnings":["slow disk"]}'
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    await check_proxies(world.ctx)
    proxy = (await world.get(f"{PATH}/sydney")).json()
    check("WorkspaceProxy", proxy)
    assert (proxy["healthy"], proxy["status"]["status"]) == (False, "unreachable")
    report = (await world.get("/api/v2/debug/health?force=true")).json()["workspace_proxy"]
    assert report["warnings"][0]["code"] == "EWP02"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, listeners)
        row = await world.ctx.db.read(system_workspace_proxies.find_proxy, "sydney")
        assert row is not None
        await world.ctx.db.run(store.update_proxy, row.id, {"url": f"http://127.0.0.1:{port}"})
        await check_proxies(world.ctx)
        nursery.cancel_scope.cancel()
    assert app[0].startswith(b"GET /healthz-report ")
    proxy = (await world.get(f"{PATH}/sydney")).json()
    assert (proxy["healthy"], proxy["version"]) == (True, "v2.34.0")
    assert proxy["status"]["report"]["warnings"] == ["slow disk"]
    regions = (await world.get("/api/v2/regions")).json()["regions"]
    assert regions[1]["wildcard_hostname"] == "*.proxy.test"
    relay = next(region for number, region in current_map(world.ctx).regions.items() if number > 10_000)
    assert (relay.nodes[0].host_name, relay.nodes[0].derp_port, relay.embedded_relay) == ("127.0.0.1", port, False)


async def _check_keys(call: Any) -> None:
    assert (await call("GET", "crypto-keys")).status_code == 400
    assert (await call("GET", "crypto-keys?feature=oidc_convert")).status_code == 400
    for feature, size in (("workspace_apps_token", 64), ("workspace_apps_api_key", 32)):
        keys = (await call("GET", f"crypto-keys?feature={feature}")).json()["crypto_keys"]
        check_list("CryptoKey", keys)
        assert len(bytes.fromhex(keys[0]["secret"])) == size
    request = {
        "access_method": "path",
        "base_path": "/@x/y/apps/z/",
        "username_or_id": "x",
        "workspace_name_or_id": "y",
    }
    spec = {"app_request": {**request, "app_slug_or_port": "z"}, "session_token": ""}
    await _check_refusals(call, spec)
    assert (await call("POST", "app-stats", json={"stats": []})).status_code == 204


async def _check_refusals(call: Any, spec: dict[str, Any]) -> None:
    """A proxy that asks for JSON gets the reason; the original's proxies copy the answer to the browser."""
    path = "issue-signed-app-token"
    answer = await call("POST", path, json=spec, accept="application/json")
    assert answer.status_code == 401 and {"field": "reason", "detail": "sign_in"} in answer.json()["validations"]
    visitor = {"path_app_base_url": "https://proxy.test:8443", "app_hostname": "*.proxy.test:8443", "app_path": "/a/b"}
    by_path = await call("POST", path, json=spec | visitor | {"app_query": "c=d"}, accept="text/html")
    assert by_path.status_code == 303
    where = urlsplit(by_path.headers["location"])
    back = parse_qs(where.query)["redirect_uri"][0]
    assert (where.path, back) == (
        "/api/v2/applications/auth-redirect",
        "https://proxy.test:8443/@x/y/apps/z/a/b?c=d",
    )
    below = {**spec["app_request"], "access_method": "subdomain", "base_path": "/", "agent_name_or_id": "main"}
    by_host = await call("POST", path, json=spec | visitor | {"app_request": below}, accept="text/html")
    back = parse_qs(urlsplit(by_host.headers["location"]).query)["redirect_uri"][0]
    assert back == "https://z--main--y--x.proxy.test:8443/a/b"
    terminal = {**spec["app_request"], "access_method": "terminal"}
    assert (
        await call("POST", path, json=spec | visitor | {"app_request": terminal}, accept="text/html")
    ).status_code == 401


async def _check_coordination(world: World, headers: dict[str, str]) -> None:
    path = f"{PATH}/me/coordinate?version=2.0"
    with pytest.raises(HttpError):
        await connect_websocket(DialPolicy(world.url), path)
    websocket = await connect_websocket(DialPolicy(world.url), path, headers=list(headers.items()))
    pb = tailnet_pb2
    async with (
        open_session(websocket, role="client") as session,
        session.open_stream("/coder.tailnet.v2.Tailnet/StreamDERPMaps", pb.StreamDERPMapsRequest, pb.DERPMap) as stream,
    ):
        await stream.send(pb.StreamDERPMapsRequest())
        assert (await stream.receive()).regions
        # a new token ends connections of the old one
        proxy = (await world.get(f"{PATH}/sydney")).json()
        change = {"id": proxy["id"], "name": "sydney", "display_name": "", "icon": "", "regenerate_token": True}
        changed = await world.patch(f"{PATH}/sydney", change)
        assert changed.status_code == 200, changed.text
        with trio.fail_after(60), pytest.raises((RpcClosed, RpcError)):
            while True:
                await stream.receive()


@pytest.mark.parametrize("reply", [b"[" * 200_000, b"[]", b"1", b'{"errors": 5}', b"\xff"])
async def test_malformed_health_report_is_contained(reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(_method: str, _url: str, *, limit: int) -> OutgoingReply:
        assert limit <= 64 << 10
        return OutgoingReply(200, reply)

    monkeypatch.setattr(outgoing_requests, "fetch", fetch)
    health = ProxyHealth(cast("Any", SimpleNamespace(clock=SystemClock())))
    row = cast("Any", SimpleNamespace(id=uuid4(), url="http://p.test", version=""))
    await health.check(row)
    assert health.of(row).status == "unreachable"


REDIRECTS = [
    ("https://a--b--c--d.apps.test:8443/x", True),
    ("http://a--b--c--d.apps.test:8443/x", True),  # continues over TLS
    ("https://a--b--c--d.apps.test:8444/x", False),
    ("https://a--b--c--d.apps.test:22/x", False),
    ("https://a--b--c--d.apps.test:99999/x", False),
    ("https://apps.test:8443/x", False),
    ("https://plain.apps.test:8443/x", False),
    ("https://a--b--c--d.apps.test.evil.test:8443/x", False),
    ("https://evil.test:8443/a--b--c--d.apps.test", False),
    ("https://a--b--c--d.apps.test:8443@evil.test/x", False),
    ("https://evil.test\\@a--b--c--d.apps.test:8443/x", False),
    ("//a--b--c--d.apps.test:8443/x", False),
    ("ftp://a--b--c--d.apps.test:8443/x", False),
    ("javascript://a--b--c--d.apps.test:8443/%0aalert(1)", False),
    ("https://coder.test:8443/x", False),
    ("https://[::1/x", False),
    ("", False),
]


async def test_sealed_key_only_for_app_addresses() -> None:
    async with running_coderd(
        first_user=True, access_url="https://coder.test:8443", wildcard_access_url="*.apps.test"
    ) as world:
        for address, redirects in REDIRECTS:
            answer = await world.get("/api/v2/applications/auth-redirect", params={"redirect_uri": address})
            location = answer.headers.get("location", "")
            assert (answer.status_code in {303, 307}) is redirects, (address, answer.status_code, location, answer.text)
            assert location.startswith("https://a--b--c--d.apps.test:8443/x?") is redirects, address
