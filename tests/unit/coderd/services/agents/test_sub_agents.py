"""Agents of dev containers: made by their parent over its link, or by the template, and gone with either."""

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
from coder.domain.agents import sub_agents as laws
from coder.domain.apps.app_addresses import AppRequest
from coder.net.errors import HttpError
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, provisioner_pb2
from tests.kit.agents.scripted_agent import AgentWorld, FakeAgent, connected_agent, eventually, workspace_world

pb = agent_pb2
Request = pb.CreateSubAgentRequest
UNKNOWN: Any = 77
"A number of another release."


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


def _as_child(view: AgentWorld, made: Any) -> AgentWorld:
    ident, token = UUID(bytes=made.agent.id), str(UUID(bytes=made.agent.auth_token))
    return AgentWorld(view.world, view.workspace, ident, token)


async def test_a_child_is_an_agent_of_its_own_below_its_parent() -> None:
    async with family(troubleshooting_url="https://help") as (view, parent):
        made = await _make(parent, display_apps=[Request.VSCODE, Request.WEB_TERMINAL])
        child = _as_child(view, made)
        above, shown = sorted(await _agents(view), key=lambda agent: agent["parent_id"] or "")
        assert (shown["id"], shown["parent_id"], above["parent_id"]) == (str(child.agent_id), above["id"], None)
        assert (shown["name"], shown["directory"], shown["architecture"]) == ("api", "/w", "arm64")
        assert shown["display_apps"] == ["vscode", "web_terminal"]
        assert (shown["connection_timeout_seconds"], shown["troubleshooting_url"]) == (120, "https://help")
        assert shown["resource_id"] == above["resource_id"] and shown["status"] == "connecting"
        listed = await parent.call("ListSubAgents", pb.ListSubAgentsRequest(), pb.ListSubAgentsResponse)
        assert list(listed.agents) == [made.agent]
        async with connected_agent(child) as inside:
            manifest = await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
            assert UUID(bytes=manifest.parent_id) == view.agent_id
            assert (manifest.agent_name, manifest.directory, manifest.owner_username) == ("api", "/w", "admin")
            with pytest.raises(RpcError, match="cannot have agents of its own"):
                await _make(inside, "grandchild")
            request = pb.DeleteSubAgentRequest(id=made.agent.id)
            for other in (inside, parent):
                with contextlib.nullcontext() if other is parent else pytest.raises(RpcError, match="does not belong"):
                    await other.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
            with pytest.raises(RpcError, match="no longer valid"):
                await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
        with pytest.raises(HttpError):
            async with connected_agent(child):
                pass
        assert len(await _agents(view)) == 1
        said = (await view.world.get("/api/v2/audit?q=resource_type:workspace&limit=10")).json()["audit_logs"]
        told = [entry["additional_fields"] for entry in said if "parent_agent_name" in entry["additional_fields"]]
        assert [(one["agent_name"], one["parent_agent_name"]) for one in told] == [("api", "main")] * 2


async def test_what_a_child_may_not_be() -> None:
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
        for number in range(laws.MAX_SUB_AGENTS):
            await _make(parent, f"a{number}")
        with pytest.raises(RpcError, match="may have 32 sub-agents"):
            await _make(parent, "more")
        with pytest.raises(RpcError, match="may have 100 applications"):
            await _make(parent, "more", apps=[Request.App()] * 101)


async def test_applications_are_made_or_told_of_one_by_one() -> None:
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
        made = await _make(parent, apps=apps)
        assert [(fault.index, fault.field) for fault in made.app_creation_errors] == [
            (1, "slug"),
            (2, "slug"),
            (3, "url"),
            (4, "share"),
            (5, "open_in"),
            (6, "url"),
            (7, "url"),
        ]
        (shown,) = [agent for agent in await _agents(view) if agent["parent_id"]]
        by_end = {app["slug"].partition("-")[2]: app for app in shown["apps"]}
        assert by_end.keys() == {"docs", "plain"}
        docs, plain = by_end["docs"], by_end["plain"]
        assert docs["slug"] == laws.stored_slug("api", "docs")
        assert (docs["sharing_level"], docs["open_in"], docs["health"]) == ("authenticated", "tab", "initializing")
        assert (plain["display_name"], plain["group"], plain["hidden"], plain["open_in"], plain["health"]) == (
            "Plain",
            "tools",
            True,
            "slim-window",
            "disabled",
        )


async def test_the_template_makes_the_agent_of_a_dev_container_with_parts_of_its_own() -> None:
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
        above, child = sorted(await _agents(view), key=lambda agent: agent["parent_id"] or "")
        # As recorded: tests/data/terraform/extraction/devcontainers/server-build.json.
        assert [source["display_name"] for source in above["log_sources"]] == [
            "Dev Container (api)",
            "Dev Container (ui)",
        ]
        assert [(one["display_name"], one["script"], one["run_on_start"]) for one in above["scripts"]] == [
            ("Dev Container (api)", "", False),
            ("Dev Container (ui)", "", False),
        ]
        assert (child["name"], child["parent_id"], child["directory"]) == ("api", above["id"], "/w/api")
        assert (child["display_apps"], child["environment_variables"]) == ([], {"A": "1"})
        assert [app["slug"] for app in child["apps"]] == ["docs"]
        manifest = await parent.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
        api, ui = manifest.devcontainers
        assert (api.name, api.workspace_folder, api.config_path) == ("api", "/w/api", "dev.json")
        assert UUID(bytes=api.subagent_id) == UUID(child["id"]) and not ui.HasField("subagent_id")
        assert {one.id for one in manifest.devcontainers} == {script.id for script in manifest.scripts}
        request = Request(id=api.subagent_id, directory="/inside", display_apps=[Request.SSH_HELPER])
        filled = await parent.call("CreateSubAgent", request, pb.CreateSubAgentResponse)
        shown = [agent for agent in await _agents(view) if agent["parent_id"]]
        assert [(one["id"], one["directory"], one["display_apps"]) for one in shown] == [
            (child["id"], "/inside", ["ssh_helper"])
        ]
        async with connected_agent(_as_child(view, filled)) as inside:
            given = await inside.call("GetManifest", pb.GetManifestRequest(), pb.Manifest)
            assert dict(given.environment_variables) == {"A": "1"}
            assert [script.script for script in given.scripts] == ["seed"]

        async def left() -> Any:
            return [one for one in await _agents(view) if one["parent_id"] and one["status"] == "disconnected"]

        assert not (await eventually(left))[0]["health"]["healthy"]
        health = (await view.world.get(f"/api/v2/workspaces/{view.workspace['id']}")).json()["health"]
        assert health == {"healthy": True, "failing_agents": []}, "a container that is stopped makes no workspace ill"


async def _reason(view: AgentWorld, slug: str) -> str:
    """Why nobody in particular cannot open an application of a container that does not run."""
    request = AppRequest("subdomain", "/", "admin", "dev", "api", slug)
    with pytest.raises(AppRefusedError) as refused:
        await open_app(view.world.ctx, request, None)
    return refused.value.reason


async def _narrow(view: AgentWorld, level: str) -> None:
    path = f"/api/v2/templates/{view.workspace['template_id']}"
    changed = await view.world.patch(path, {"max_port_share_level": level})
    assert changed.status_code == 200, changed.text


async def test_a_narrower_limit_of_the_template_counts_for_applications_there_are() -> None:
    async with family() as (view, parent):
        app = Request.App(slug="docs", url="http://localhost:8080", share=Request.App.PUBLIC, subdomain=True)
        await _make(parent, apps=[app])
        slug = laws.stored_slug("api", "docs")
        assert await _reason(view, slug) == "agent_offline"
        for level in ("authenticated", "owner"):
            await _narrow(view, level)
            assert await _reason(view, slug) == "sign_in"
        await _narrow(view, "public")
        assert await _reason(view, slug) == "agent_offline"


async def test_the_templates_own_applications_are_shared_as_it_says() -> None:
    app = provisioner_pb2.App(slug="docs", url="http://x", sharing_level=provisioner_pb2.AppSharingLevel.PUBLIC)
    containers = [provisioner_pb2.Devcontainer(id=str(uuid4()), name="api", workspace_folder="/w", apps=[app])]
    async with family(devcontainers=containers) as (view, _):
        await _narrow(view, "owner")
        assert await _reason(view, "docs") == "agent_offline"


async def test_shares_of_ports_end_with_a_child_and_are_not_the_next_ones() -> None:
    async with family() as (view, parent):
        path = f"/api/v2/workspaces/{view.workspace['id']}/port-share"

        async def shares() -> list[str]:
            return [share["agent_name"] for share in (await view.world.get(path)).json()["shares"]]

        made = await _make(parent)
        for name in ("main", "api"):
            body = {"agent_name": name, "port": 8080, "share_level": "public", "protocol": "http"}
            assert (await view.world.post(path, body)).status_code == 200
        request = pb.DeleteSubAgentRequest(id=made.agent.id)
        await parent.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
        assert await shares() == ["main"]
        said = (await view.world.get("/api/v2/audit?q=resource_type:workspace&limit=1")).json()["audit_logs"][0]
        assert list(said["diff"]["port_shares"]["old"]) == ["api 8080", "main 8080"]
        # Left by one of an earlier build.
        left = PortShareRow(UUID(view.workspace["id"]), "api", 9090, "public", "http")
        await view.world.ctx.db.run(share_store.put_port_share, left)
        await _make(parent)
        assert await shares() == ["main"]


async def test_removed_children_count_for_what_a_build_may_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "MAX_MADE", 3)
    monkeypatch.setattr(laws, "MAX_APPS_MADE", 3)
    apps = [Request.App(slug="a", url="http://x"), Request.App(slug="b", url="http://x")]
    async with family() as (_, parent):
        for number in range(3):
            made = await _make(parent, apps=apps if number == 0 else [])
            with pytest.raises(RpcError, match=r"2 applications .* restart|3 sub-agents were made .* restart"):
                await _make(parent, "other", apps=apps)
            request = pb.DeleteSubAgentRequest(id=made.agent.id)
            await parent.call("DeleteSubAgent", request, pb.DeleteSubAgentResponse)
        with pytest.raises(RpcError, match="3 sub-agents were made since this build"):
            await _make(parent)
