"""Agents of dev containers: created by their parent over its link, or by the template, and deleted with either."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.coderd.services.apps.app_access import open_app
from coder.coderd.store.workspaces import port_shares as share_store
from coder.coderd.store.workspaces.port_shares import PortShareRow
from coder.domain.agents import sub_agents as rules
from coder.domain.apps.app_addresses import AppRequest
from coder.net.errors import HttpError
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, FakeAgent, connected_agent, eventually, workspace_world

pb = agent_pb2
Request = pb.CreateSubAgentRequest
UNKNOWN: Any = 77
"Number of a newer release."


@contextlib.asynccontextmanager
async def family(**fields: Any) -> AsyncIterator[tuple[AgentWorld, FakeAgent]]:
    async with workspace_world(agent_fields=fields) as view, connected_agent(view) as parent:
        yield view, parent


async def _make(parent: FakeAgent, name: str = "api", **more: Any) -> Any:
    request = Request(name=name, directory="/w", architecture="arm64", operating_system="linux", **more)
    return await parent.call("CreateSubAgent", request, pb.CreateSubAgentResponse)


async def _agents(view: AgentWorld) -> list[Any]:
    build = (await view.world.get(f"/api/v2/workspaces/{view.workspace['id']}")).json()["latest_build"]
    return [agent for resource in build["resources"] for agent in resource.get("agents") or ()]


def _as_child(view: AgentWorld, response: Any) -> AgentWorld:
    ident, token = UUID(bytes=response.agent.id), str(UUID(bytes=response.agent.auth_token))
    return AgentWorld(view.world, view.workspace, ident, token)


async def test_child_is_separate_agent() -> None:
    async with family(troubleshooting_url="https://help") as (view, parent):
        response = await _make(parent, display_apps=[Request.VSCODE, Request.WEB_TERMINAL])
        child = _as_child(view, response)
        parent_agent, children = sorted(await _agents(view), key=lambda agent: agent["parent_id"] or "")
        assert (children["id"], children["parent_id"], parent_agent["parent_id"]) == (
            str(child.agent_id),
            parent_agent["id"],
            None,
        )
        assert (children["name"], children["directory"], children["architecture"]) == ("api", "/w", "arm64")
        assert children["display_apps"] == ["vscode", "web_terminal"]
        assert (children["connection_timeout_seconds"], children["troubleshooting_url"]) == (120, "https://help")
        assert children["resource_id"] == parent_agent["resource_id"] and children["status"] == "connecting"
        listed = await parent.call("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse)
        assert list(listed.agents) == [response.agent]
        async with connected_agent(child) as inside:
            manifest = await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
            assert UUID(bytes=manifest.parent_id) == view.agent_id
            assert (manifest.agent_name, manifest.directory, manifest.owner_username) == ("api", "/w", "admin")
            with pytest.raises(RpcError, match="cannot have sub-agents"):
                await _make(inside, "grandchild")
            request = pb.DeleteSubAgentRequest(id=response.agent.id)
            for other in (inside, parent):
                with contextlib.nullcontext() if other is parent else pytest.raises(RpcError, match="does not belong"):
                    await other.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
            with pytest.raises(RpcError, match="no longer valid"):
                await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
        with pytest.raises(HttpError):
            async with connected_agent(child):
                pass
        assert len(await _agents(view)) == 1
        entries = (await view.world.get("/api/v2/audit?q=resource_type:workspace&limit=10")).json()["audit_logs"]
        fields = [entry["additional_fields"] for entry in entries if "parent_agent_name" in entry["additional_fields"]]
        assert [(item["agent_name"], item["parent_agent_name"]) for item in fields] == [("api", "main")] * 2


async def test_invalid_children_rejected() -> None:
    async with family() as (view, parent):
        for name, words in {
            "": "agent name is required",
            "a--b": "does not match",
            "x\x00": "does not match",
            "x" * 65: "64 characters",
            "MAIN": "already exists in this workspace",
        }.items():
            with pytest.raises(RpcError, match=words):
                await _make(parent, name)
        with pytest.raises(RpcError, match="directory contains a zero byte"):
            await parent.call("CreateSubAgent", Request(name="a", directory="\0"), pb.CreateSubAgentResponse)
        with pytest.raises(RpcError, match="unknown display app 77"):
            await _make(parent, display_apps=[UNKNOWN])
        for ident in (view.agent_id, uuid4()):
            with pytest.raises(RpcError, match="does not belong to this parent agent"):
                await _make(parent, id=ident.bytes)
        for number in range(rules.MAX_SUB_AGENTS):
            await _make(parent, f"a{number}")
        with pytest.raises(RpcError, match="may have 32 sub-agents"):
            await _make(parent, "more")
        with pytest.raises(RpcError, match="may have 100 applications"):
            await _make(parent, "more", apps=[Request.App()] * 101)


async def test_applications_validated_separately() -> None:
    check = Request.App.Healthcheck(url="http://x/h", interval=3, threshold=2)
    apps = [
        Request.App(slug="docs", url="http://x", share=Request.App.PUBLIC, open_in=Request.App.TAB, healthcheck=check),
        Request.App(slug="docs"),
        Request.App(slug="Bad"),
        Request.App(slug="nul", url="a\0"),
        Request.App(slug="new", share=UNKNOWN),
        Request.App(slug="newer", open_in=UNKNOWN),
        Request.App(slug="thief", external=True, url="https://evil.test/?t=$SESSION_TOKEN"),
        Request.App(slug="script", external=True, url="javascript:alert(1)"),
        Request.App(slug="plain", order=2, group="tools", hidden=True, display_name="Plain"),
    ]
    async with family() as (view, parent):
        template = view.workspace["template_id"]
        changed = await view.world.patch(f"/api/v2/templates/{template}", {"max_port_share_level": "authenticated"})
        assert changed.status_code == 200, changed.text
        response = await _make(parent, apps=apps)
        assert [(fault.index, fault.field) for fault in response.app_creation_errors] == [
            (1, "slug"),
            (2, "slug"),
            (3, "url"),
            (4, "share"),
            (5, "open_in"),
            (6, "url"),
            (7, "url"),
        ]
        (children,) = [agent for agent in await _agents(view) if agent["parent_id"]]
        by_end = {app["slug"].partition("-")[2]: app for app in children["apps"]}
        assert by_end.keys() == {"docs", "plain"}
        docs, plain = by_end["docs"], by_end["plain"]
        assert docs["slug"] == rules.stored_slug("api", "docs")
        assert (docs["sharing_level"], docs["open_in"], docs["health"]) == ("authenticated", "tab", "initializing")
        assert (plain["display_name"], plain["group"], plain["hidden"], plain["open_in"], plain["health"]) == (
            "Plain",
            "tools",
            True,
            "slim-window",
            "disabled",
        )


async def test_template_declares_dev_container_agent() -> None:
    containers = [
        provisioner_pb2.Devcontainer(
            id=str(uuid4()),
            subagent_id=str(uuid4()),
            name="api",
            workspace_folder="/w/api",
            config_path="dev.json",
            apps=[provisioner_pb2.App(slug="docs", url="http://x")],
            scripts=[provisioner_pb2.Script(display_name="Seed", script="seed", run_on_start=True)],
            envs=[provisioner_pb2.Env(name="A", value="1")],
        ),
        provisioner_pb2.Devcontainer(name="ui", workspace_folder="/w/ui", subagent_id=str(uuid4())),
    ]
    async with family(devcontainers=containers) as (view, parent):
        parent_agent, child = sorted(await _agents(view), key=lambda agent: agent["parent_id"] or "")
        # As recorded: tests/data/terraform/extraction/devcontainers/server-build.json.
        assert [source["display_name"] for source in parent_agent["log_sources"]] == [
            "Dev Container (api)",
            "Dev Container (ui)",
        ]
        assert [
            (script["display_name"], script["script"], script["run_on_start"]) for script in parent_agent["scripts"]
        ] == [
            ("Dev Container (api)", "", False),
            ("Dev Container (ui)", "", False),
        ]
        assert (child["name"], child["parent_id"], child["directory"]) == ("api", parent_agent["id"], "/w/api")
        assert (child["display_apps"], child["environment_variables"]) == ([], {"A": "1"})
        assert [app["slug"] for app in child["apps"]] == ["docs"]
        manifest = await parent.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
        api, ui = manifest.devcontainers
        assert (api.name, api.workspace_folder, api.config_path) == ("api", "/w/api", "dev.json")
        assert UUID(bytes=api.subagent_id) == UUID(child["id"]) and not ui.HasField("subagent_id")
        assert {container.id for container in manifest.devcontainers} == {script.id for script in manifest.scripts}
        request = Request(id=api.subagent_id, directory="/inside", display_apps=[Request.SSH_HELPER])
        filled = await parent.call("CreateSubAgent", request, pb.CreateSubAgentResponse)
        children = [agent for agent in await _agents(view) if agent["parent_id"]]
        assert [(agent["id"], agent["directory"], agent["display_apps"]) for agent in children] == [
            (child["id"], "/inside", ["ssh_helper"])
        ]
        async with connected_agent(_as_child(view, filled)) as inside:
            inner_manifest = await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
            assert dict(inner_manifest.environment_variables) == {"A": "1"}
            assert [script.script for script in inner_manifest.scripts] == ["seed"]

        async def left() -> Any:
            return [agent for agent in await _agents(view) if agent["parent_id"] and agent["status"] == "disconnected"]

        assert not (await eventually(left))[0]["health"]["healthy"]
        health = (await view.world.get(f"/api/v2/workspaces/{view.workspace['id']}")).json()["health"]
        assert health == {"healthy": True, "failing_agents": []}, "a container that is stopped makes no workspace ill"


async def _reason(view: AgentWorld, slug: str) -> str:
    """Return why an anonymous visitor cannot open an application of a stopped container."""
    request = AppRequest("subdomain", "/", "admin", "dev", "api", slug)
    with pytest.raises(AppRefusedError) as refused:
        await open_app(view.world.ctx, request, None)
    return refused.value.reason


async def _narrow(view: AgentWorld, level: str) -> None:
    path = f"/api/v2/templates/{view.workspace['template_id']}"
    changed = await view.world.patch(path, {"max_port_share_level": level})
    assert changed.status_code == 200, changed.text


async def test_lower_share_level_applies_to_apps() -> None:
    async with family() as (view, parent):
        app = Request.App(slug="docs", url="http://localhost:8080", share=Request.App.PUBLIC, subdomain=True)
        await _make(parent, apps=[app])
        slug = rules.stored_slug("api", "docs")
        assert await _reason(view, slug) == "agent_offline"
        for level in ("authenticated", "owner"):
            await _narrow(view, level)
            assert await _reason(view, slug) == "sign_in"
        await _narrow(view, "public")
        assert await _reason(view, slug) == "agent_offline"


async def test_template_apps_keep_share_level() -> None:
    app = provisioner_pb2.App(slug="docs", url="http://x", sharing_level=provisioner_pb2.AppSharingLevel.PUBLIC)
    containers = [provisioner_pb2.Devcontainer(id=str(uuid4()), name="api", workspace_folder="/w", apps=[app])]
    async with family(devcontainers=containers) as (view, _):
        await _narrow(view, "owner")
        assert await _reason(view, "docs") == "agent_offline"


async def test_port_shares_end_with_child() -> None:
    async with family() as (view, parent):
        path = f"/api/v2/workspaces/{view.workspace['id']}/port-share"

        async def shares() -> list[str]:
            return [share["agent_name"] for share in (await view.world.get(path)).json()["shares"]]

        response = await _make(parent)
        for name in ("main", "api"):
            body = {"agent_name": name, "port": 8080, "share_level": "public", "protocol": "http"}
            assert (await view.world.post(path, body)).status_code == 200
        request = pb.DeleteSubAgentRequest(id=response.agent.id)
        await parent.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
        assert await shares() == ["main"]
        entry = (await view.world.get("/api/v2/audit?q=resource_type:workspace&limit=1")).json()["audit_logs"][0]
        assert list(entry["diff"]["port_shares"]["old"]) == ["api 8080", "main 8080"]
        # Left by a sub-agent of an earlier build.
        left = PortShareRow(UUID(view.workspace["id"]), "api", 9090, "public", "http")
        await view.world.ctx.db.run(share_store.put_port_share, left)
        await _make(parent)
        assert await shares() == ["main"]


async def test_deleted_children_count_for_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_MADE", 3)
    monkeypatch.setattr(rules, "MAX_APPS_MADE", 3)
    apps = [Request.App(slug="a", url="http://x"), Request.App(slug="b", url="http://x")]
    async with family() as (_, parent):
        for number in range(3):
            response = await _make(parent, apps=apps if number == 0 else [])
            with pytest.raises(RpcError, match=r"2 applications .* restart|3 sub-agents were made .* restart"):
                await _make(parent, "other", apps=apps)
            request = pb.DeleteSubAgentRequest(id=response.agent.id)
            await parent.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
        with pytest.raises(RpcError, match="3 sub-agents were made since this build"):
            await _make(parent)
