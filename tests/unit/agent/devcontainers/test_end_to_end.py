"""End to end: a template's dev container, built, listed by the API, with our agent inside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coder.agent.config import DevcontainerSettings
from coder.net.policy import DialPolicy
from coder.rpc.proto import provisioner_pb2
from tests.kit.agents.container_engine import FakeEngine
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, check_links_often, eventually, workspace_world
from tests.kit.paths import ROOT


async def test_template_starts_sub_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "coder"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m coder "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "work" / "api"
    engine = FakeEngine(tmp_path, monkeypatch)
    engine.add_builder()
    app = {"slug": "docs", "displayName": "Docs", "url": "http://localhost:1"}
    engine.describe(folder, customizations={"coder": {"apps": [app]}})
    declared = [provisioner_pb2.Devcontainer(name="api", workspace_folder=str(folder))]
    settings = {"devcontainers": DevcontainerSettings(), "executable": str(program)}
    async with workspace_world(agent_fields={"devcontainers": declared}) as view:
        async with running_agent(view, DialPolicy(view.world.url), tmp_path / "agent", **settings):
            child = await eventually(lambda: _child(view))
            assert (child["name"], child["directory"]) == ("api", "/workspaces/api")
            assert [item["display_name"] for item in child["apps"]] == ["Docs"]
            shown = (await view.world.get(f"/api/v2/workspaceagents/{view.agent_id}/containers")).json()
            (item,) = shown["devcontainers"]
            assert (item["status"], item["agent"]["id"]) == ("running", child["id"])
            assert [row["id"] for row in shown["containers"]] == engine.ids()
            assert (await view.agent())["lifecycle_state"] == "ready"
            inside = await view.world.get(f"/api/v2/workspaceagents/{child['id']}/containers")
            assert (inside.status_code, inside.json()["message"]) == (403, "Dev Container feature not supported.")

            async def built() -> Any:
                lines = (await view.world.get(f"/api/v2/workspaceagents/{view.agent_id}/logs")).json()
                sources = {source["id"]: source["display_name"] for source in (await view.agent())["log_sources"]}
                return [(sources[line["source_id"]], line["output"]) for line in lines]

            assert await eventually(built) == [("Dev Container (api)", "building api")]
        rebuilt_container = AgentWorld(view.world, view.workspace, UUID(child["id"]), "")

        async def gone() -> bool:
            return bool((await rebuilt_container.agent())["status"] == "disconnected")

        await eventually(gone)


async def test_rebuild_replaces_sub_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_links_often(monkeypatch)
    program = tmp_path / "coder"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m coder "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "work" / "api"
    engine = FakeEngine(tmp_path, monkeypatch)
    engine.add_builder()
    engine.describe(folder)
    app = provisioner_pb2.App(slug="docs", url="http://x")  # so that the template creates its agent
    declared = [provisioner_pb2.Devcontainer(name="api", workspace_folder=str(folder), apps=[app])]
    settings = {"devcontainers": DevcontainerSettings(), "executable": str(program)}
    async with (
        workspace_world(agent_fields={"devcontainers": declared}) as view,
        running_agent(view, DialPolicy(view.world.url), tmp_path / "agent", **settings),
    ):
        before = await eventually(lambda: _child(view))
        containers = engine.ids()
        path = f"/api/v2/workspaces/{view.workspace['id']}/builds"
        assert (await view.world.post(path, {"transition": "start"})).status_code == 201

        async def rebuilt_container() -> Any:
            result = await _child(view)
            return result if result is not None and result["id"] != before["id"] else None

        after = await eventually(rebuilt_container)
        assert (after["name"], engine.ids()) == (before["name"], containers)


async def _child(view: AgentWorld) -> Any:
    build = (await view.world.get(f"/api/v2/workspaces/{view.workspace['id']}")).json()["latest_build"]
    agents = [agent for resource in build["resources"] for agent in resource.get("agents") or ()]
    return next((item for item in agents if item["parent_id"] and item["status"] == "connected"), None)
