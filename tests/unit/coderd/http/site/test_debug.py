"""Debug views of a running server: profiles of the process, traffic of the relay."""

from __future__ import annotations

import io
import sys
import tarfile

import pytest

from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.server.server_in_process import running_coderd

PROFILE = "/api/v2/debug/profile"


async def test_profile_covers_this_process() -> None:
    async with running_coderd(first_user=True) as world:
        answer = await world.post(PROFILE, {"Duration": 50_000_000, "Profiles": []})
        assert answer.status_code == 200, answer.text
        with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:gz") as archive:
            texts = {name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]
        assert set(texts) == {"cpu.txt", "threads.txt", "tasks.txt", "heap.txt", "gc.txt"}
        assert all(line.rpartition(" ")[2].isdigit() for line in texts["threads.txt"].splitlines())
        assert "coder.coderd" in texts["threads.txt"] or "trio" in texts["threads.txt"]
        assert "coder.coderd.loops" in texts["tasks.txt"]
        assert "builtins.dict" in texts["heap.txt"]


async def test_profile_permissions() -> None:
    async with running_coderd(first_user=True) as world:
        _, token = await world.member()
        assert (await world.post(PROFILE, token="")).status_code == 401
        assert (await world.post(PROFILE, token=token)).status_code in {403, 404}
        for body in ({"Duration": 10**12}, {"Duration": -1}, {"Profiles": ["secrets"]}):
            assert (await world.post(PROFILE, body)).status_code == 400, body


async def test_overlay_pages_list_peers() -> None:
    async with running_coderd(first_user=True) as world:
        assert "<pre>No peers.</pre>" in (await world.get("/api/v2/debug/tailnet")).text
    async with agent_world() as view_context, connected_agent(view_context):
        shown = (await view_context.world.get("/api/v2/debug/coordinator")).text
        assert "tunnels to it: " in shown and "object at 0x" not in shown


async def test_relay_traffic_by_connection() -> None:
    async with agent_world() as view_context, connected_agent(view_context):
        result = (await view_context.world.get("/api/v2/debug/derp/traffic")).json()
        assert all(set(item) == {"Sent", "Recv", "Key"} and item["Key"].startswith("nodekey:") for item in result)
        assert result and result[0]["Recv"] >= 0  # the server's own node is connected


async def test_command_line_hides_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    line = [
        "coder",
        "server",
        "--postgres-url=postgres://u:hush@h/d",
        "--oidc-client-secret",
        "hush",
        "--cache-dir",
        "/c",
    ]
    monkeypatch.setattr(sys, "argv", line)
    async with running_coderd(first_user=True) as world:
        shown = (await world.get("/api/v2/debug/pprof/cmdline")).text
        assert shown == "coder\0server\0--postgres-url=***\0--oidc-client-secret\0***\0--cache-dir\0/c"
        assert "hush" not in (await world.get("/api/v2/debug/expvar")).text
