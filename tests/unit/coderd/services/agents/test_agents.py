"""Agents over plain HTTP, watch streams, logs that follow, programs to download."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import h11
import httpx
import pytest
import trio

from coder.base.secret import Secret
from coder.coderd.services.agents import agent_logs
from coder.coderd.services.agents.agent_access import authenticate_agent
from coder.coderd.store.agents import agent_metadata as metadata_store
from coder.domain.access.credentials import Credentials
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.api.api_description import check, check_list
from tests.kit.provisioners.scripted_provisioner import Answers, agent, resource
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import (
    TOKEN,
    build,
    build_answer,
    external_answer,
    new_workspace,
    parameters,
    workspace_world,
)


def agent_of(workspace: Any) -> Any:
    return next(item for item in workspace["latest_build"]["resources"] if "agents" in item)["agents"][0]


async def as_agent(world: World, method: str, path: str, json: Any = None, token: str = TOKEN) -> httpx.Response:
    return await world.request(method, f"/api/v2/workspaceagents/me/{path}", json=json, token=token)


async def test_tokens_valid_for_newest_build() -> None:
    async with workspace_world() as (world, _):
        missing = await as_agent(world, "GET", "gitsshkey", token="")
        assert missing.status_code == 401
        session = await as_agent(world, "GET", "gitsshkey", token=world.token)
        assert session.json() == {
            "message": "Workspace agent token invalid.",
            "detail": "An agent token must be a valid UUIDv4. (len 33)",
        }
        unknown = await as_agent(world, "GET", "gitsshkey")
        assert unknown.json()["message"] == "Workspace agent not authorized."
        workspace = await new_workspace(world, "w")
        key = await as_agent(world, "GET", "gitsshkey")
        assert set(key.json()) == {"public_key", "private_key"}
        await build(world, workspace["id"], "stop")
        assert (await as_agent(world, "GET", "gitsshkey")).status_code == 401


async def test_log_sources_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world() as (world, _):
        agent = agent_of(await new_workspace(world, "w"))
        monkeypatch.setattr(agent_logs, "MAX_LOG_SOURCES", len(agent["log_sources"]) + 2)
        answer = [
            {"id": f"22222222-2222-4222-8222-22222222222{number}", "display_name": f"{number}\x00", "icon": ""}
            for number in range(3)
        ]
        statuses = [
            (await as_agent(world, "POST", "log-source", source)).status_code for source in (*answer, answer[0])
        ]
        assert statuses == [201, 201, 400, 201]
        long = await as_agent(world, "POST", "log-source", {**answer[0], "display_name": "x" * 1025})
        assert (long.status_code, long.json()["validations"][0]["field"]) == (400, "display_name")
        current = (await world.get(f"/api/v2/workspaceagents/{agent['id']}")).json()["log_sources"]
        assert {"0❌", "1❌"} < {source["display_name"] for source in current} | {""}


async def test_log_sources_and_log_limit() -> None:
    async with workspace_world() as (world, _):
        agent = agent_of(await new_workspace(world, "w"))
        source = {"id": "22222222-2222-4222-8222-222222222222", "display_name": "Extra", "icon": "/icon/x.svg"}
        answer = await as_agent(world, "POST", "log-source", source)
        assert answer.status_code == 201
        check("WorkspaceAgentLogSource", answer.json())
        again = await as_agent(world, "POST", "log-source", {**source, "icon": ""})
        assert again.status_code == 201
        at = "2020-01-01T00:00:00.5Z"
        lines = [{"created_at": at, "output": "one"}, {"created_at": at, "output": "two\x00", "level": "error"}]
        sent = await as_agent(world, "PATCH", "logs", {"log_source_id": source["id"], "logs": lines})
        assert sent.status_code == 200, sent.text
        empty = await as_agent(world, "PATCH", "logs", {"log_source_id": source["id"], "logs": []})
        assert (empty.status_code, empty.json()["message"]) == (400, "No logs provided.")
        path = f"/api/v2/workspaceagents/{agent['id']}/logs"
        logs = (await world.get(path)).json()
        check_list("WorkspaceAgentLog", logs)
        assert [(item["output"], item["level"]) for item in logs] == [("one", "info"), ("two❌", "error")]
        later = (await world.get(path, params={"after": str(logs[0]["id"])})).json()
        assert [item["output"] for item in later] == ["two❌"]
        big = [{"created_at": at, "output": "x" * 600_000}]
        assert (await as_agent(world, "PATCH", "logs", {"log_source_id": source["id"], "logs": big})).status_code == 200
        full = await as_agent(world, "PATCH", "logs", {"log_source_id": source["id"], "logs": big})
        assert (full.status_code, full.json()["message"]) == (413, "Logs limit exceeded")
        current = (await world.get(f"/api/v2/workspaceagents/{agent['id']}")).json()
        check("WorkspaceAgent", current)
        assert current["logs_overflowed"] is True
        assert [item["icon"] for item in current["log_sources"] if item["display_name"] == "Extra"] == ["/icon/x.svg"]
        assert (await world.get(path, params={"follow": ""})).status_code == 426


async def test_follow_logs_until_newer_build() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaceagents/{agent_of(workspace)['id']}/logs?follow"
        source = "22222222-2222-4222-8222-222222222222"

        async def say(text: str) -> None:
            lines = [{"created_at": "2020-01-01T00:00:00Z", "output": text}]
            await as_agent(world, "PATCH", "logs", {"log_source_id": source, "logs": lines})

        await say("first")
        stream = await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), path)
        with trio.fail_after(60):
            assert [item["output"] for item in json.loads(await stream.receive_message() or "")] == ["first"]
            await say("second")
            assert [item["output"] for item in json.loads(await stream.receive_message() or "")] == ["second"]
            await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "stop"})
            assert await stream.receive_message() is None
        await stream.aclose()


async def test_app_status() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        report = {"app_slug": "web", "state": "working", "message": "busy", "uri": ""}
        assert (await as_agent(world, "PATCH", "app-status", report)).status_code == 200
        for change, message in (
            ({"app_slug": "zzz"}, "Failed to get workspace app."),
            ({"state": "sleeping"}, "Failed to parse request."),
            ({"message": "m" * 161}, "Message is too long."),
        ):
            refused = await as_agent(world, "PATCH", "app-status", {**report, **change})
            assert (refused.status_code, refused.json()["message"]) == (400, message)
        current = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()
        check("Workspace", current)
        assert current["latest_app_status"]["message"] == "busy"
        assert agent_of(current)["apps"][0]["statuses"][0]["state"] == "working"
        unknown = await as_agent(world, "GET", "external-auth?match=github.com")
        assert unknown.status_code == 404


async def sse_events(world: World, path: str, count: int, act: Any = None) -> list[tuple[str, Any]]:
    """Return the first events of a stream; `act` runs after the first data."""
    url = urlsplit(world.url)
    events: list[tuple[str, Any]] = []
    kind = ""
    with trio.fail_after(60):
        stream = await trio.open_tcp_stream(url.hostname or "", url.port or 0)
        async with aclosing(_lines(stream, path, world.token)) as lines:  # type: ignore[type-var]
            async for text in lines:
                if text.startswith("event: "):
                    kind = text[7:]
                    if kind == "ping":
                        events.append((kind, None))
                elif text.startswith("data: "):
                    events.append((kind, json.loads(text[6:])))
                    if act is not None:
                        await act()
                        act = None
                if len(events) >= count:
                    return events
    return events


async def _lines(stream: trio.SocketStream, path: str, token: str) -> AsyncIterator[str]:
    connection = h11.Connection(h11.CLIENT)
    head = h11.Request(method="GET", target=path, headers=[("Host", "test"), ("Coder-Session-Token", token)])
    rest = ""
    async with stream:
        await stream.send_all((connection.send(head) or b"") + (connection.send(h11.EndOfMessage()) or b""))
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some()))
            elif isinstance(event, h11.Response):
                assert (b"content-type", b"text/event-stream") in event.headers
            elif isinstance(event, h11.Data):
                *complete, rest = (rest + bytes(event.data).decode()).split("\n")
                for text in complete:
                    yield text
            else:
                return


async def test_watch_workspace() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        path = f"/api/v2/workspaces/{workspace['id']}"

        async def favorite() -> None:
            assert (await world.put(f"{path}/favorite")).status_code == 204

        events = await sse_events(world, f"{path}/watch", 3, favorite)
        assert [kind for kind, _ in events] == ["ping", "data", "data"]
        assert [data["favorite"] for _, data in events[1:]] == [False, True]
        stream = await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), f"{path}/watch-ws")
        with trio.fail_after(60):
            assert json.loads(await stream.receive_message() or "") == {"type": "ping", "data": None}
            assert json.loads(await stream.receive_message() or "")["data"]["id"] == workspace["id"]
            await world.delete(f"{path}/favorite")
            assert json.loads(await stream.receive_message() or "")["data"]["favorite"] is False
        await stream.aclose()
        assert (await world.get(f"{path}/watch-ws")).status_code == 426


async def test_watch_metadata() -> None:
    async with workspace_world() as (world, _):
        agent = agent_of(await new_workspace(world, "w"))
        current = await authenticate_agent(world.ctx, Credentials(TOKEN))

        async def report() -> None:
            async def store(tx: Any) -> None:
                result = ("7", "", world.ctx.clock.now())
                await metadata_store.update_metadata(tx, {(current.agent.id, "load"): result})
                from coder.coderd.store.workspaces.change_feed import notify_change

                await notify_change(
                    tx,
                    "metadata",
                    owner_id=current.owner_id,
                    workspace_id=current.workspace_id,
                    agent_id=current.agent.id,
                )

            await world.ctx.db.run(store)

        events = await sse_events(world, f"/api/v2/workspaceagents/{agent['id']}/watch-metadata", 2, report)
        assert [data[0]["result"]["value"] for _, data in events] == ["", "7"]
        assert events[0][1][0]["result"]["collected_at"] == "0001-01-01T00:00:00Z"
        check_list("WorkspaceAgentMetadata", events[1][1])


async def test_answers_match_public_schema() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w", ttl_ms=3_600_000, autostart_schedule="0 9 * * 1-5")
        check("Workspace", workspace)
        path = f"/api/v2/workspaces/{workspace['id']}"
        build_path = f"/api/v2/workspacebuilds/{workspace['latest_build']['id']}"
        check("WorkspacesResponse", (await world.get("/api/v2/workspaces")).json())
        check_list("WorkspaceBuild", (await world.get(f"{path}/builds")).json())
        check("WorkspaceBuild", (await world.get(build_path)).json())
        check("WorkspaceBuild", (await world.get("/api/v2/users/me/workspace/w/builds/1")).json())
        check_list("WorkspaceResource", (await world.get(f"{build_path}/resources")).json())
        check_list("WorkspaceBuildParameter", (await world.get(f"{build_path}/parameters")).json())
        check("WorkspaceBuildTimings", (await world.get(f"{build_path}/timings")).json())
        check("WorkspaceBuildTimings", (await world.get(f"{path}/timings")).json())
        check_list("ProvisionerJobLog", (await world.get(f"{build_path}/logs")).json())
        check("WorkspaceACL", (await world.get(f"{path}/acl")).json())
        agent = agent_of(workspace)
        connection = (await world.get(f"/api/v2/workspaceagents/{agent['id']}/connection")).json()
        assert set(connection) == {"derp_map", "derp_force_websockets", "disable_direct_connections", "hostname_suffix"}
        offline = await world.get(f"/api/v2/workspaceagents/{agent['id']}/listening-ports")
        assert offline.json() == {"message": 'Agent state is "connecting", it must be in the "connected" state.'}
        check("Response", offline.json())
        bad = await world.get("/api/v2/workspaceagents/abc")
        assert bad.json() == {"message": 'Invalid UUID "abc".', "detail": "invalid UUID length: 3"}
        pty = await world.get(f"/api/v2/workspaceagents/{agent['id']}/pty", params={"reconnect": agent["id"]})
        assert pty.status_code == 426


async def test_external_agents() -> None:
    answers = Answers(
        import_=lambda job: {
            "start_resources": [resource("main", "coder_external_agent", agents=[agent()])],
            "has_external_agents": True,
            "rich_parameters": parameters(),
        },
        build=external_answer,
    )
    async with workspace_world(answers) as (world, _):
        workspace = await new_workspace(world, "hello-world")
        assert workspace["latest_build"]["has_external_agent"] is True
        path = f"/api/v2/workspaces/{workspace['id']}/external-agent"
        answer = await world.get(f"{path}/main/credentials")
        check("ExternalAgentCredentials", answer.json())
        assert answer.json() == {
            "agent_token": TOKEN,
            "command": (
                f'curl -fsSL "{world.ctx.access_url}/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="{TOKEN}" sh'
            ),
        }
        assert (await world.get(f"{path}/other/credentials")).status_code == 404
        _, reader = await world.member("tadm", ["template-admin"])
        assert (await world.get(f"{path}/main/credentials", token=reader)).status_code == 403
        listed = await world.get("/api/v2/workspaces", params={"q": "has_external_agent:true"})
        assert listed.json()["count"] == 1
        await build(world, workspace["id"], "stop")
        assert (await world.get(f"{path}/main/credentials")).status_code == 404
        answers.build = build_answer
        plain = await new_workspace(world, "plain")
        assert (await world.get(f"/api/v2/workspaces/{plain['id']}/external-agent/main/credentials")).status_code == 404


async def test_init_scripts_and_programs(tmp_path: Path) -> None:
    shelf = tmp_path / "bin"
    shelf.mkdir()
    (shelf / "coder-linux-amd64").write_bytes(b"program")
    async with running_coderd(cache_dir=tmp_path) as world:
        script = await world.get("/api/v2/init-script/linux/amd64")
        assert script.status_code == 200
        assert script.headers["content-type"] == "text/plain; charset=utf-8"
        assert script.headers["content-digest"].startswith("sha256:")
        assert f"{world.ctx.access_url}/bin/coder-linux-amd64" in script.text
        unknown = await world.get("/api/v2/init-script/linux/mips")
        assert (unknown.status_code, unknown.json()) == (400, {"message": "Unknown os/arch: linux/mips"})
        program = await world.get("/bin/coder-linux-amd64")
        assert program.content == b"program"
        digest = hashlib.sha1(b"program", usedforsecurity=False).hexdigest()
        assert program.headers["etag"] == f'"{digest}"'
        assert program.headers["x-original-content-length"] == "7"
        same = await world.get("/bin/coder-linux-amd64", headers={"If-None-Match": program.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
        head = await world.request("HEAD", "/bin/coder-linux-amd64")
        assert (head.headers["content-length"], head.content) == ("7", b"")
        absent = await world.get("/bin/coder-darwin-arm64")
        assert absent.status_code == 404
        assert absent.json()["message"] == "There is no coder-darwin-arm64 on this server."
        assert "Built here: coder-linux-amd64." in absent.json()["detail"]
        assert (await world.get("/bin/passwd")).status_code == 404
        assert "root:" not in (await world.get("/bin/..%2f..%2fetc%2fpasswd")).text


async def test_banners_for_users_and_agents() -> None:
    async with workspace_world() as (world, _):
        await new_workspace(world)
        for token, status in ((TOKEN, 200), (world.token, 200), (str(uuid4()), 401), ("x" * 36, 401), ("", 401)):
            assert (await world.get("/api/v2/appearance", token=token)).status_code == status, token
