"""Health checks of daemons on the overlay; other daemons are judged by their heartbeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.clock import FakeClock
from coder.base.host import HostWatch
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.coderd.rpc_endpoints.provisioners import connect_built_in
from coder.coderd.services.provisioning import daemon_health_checks, daemon_mesh
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.provisionerd.activity import ProvisionerActivity
from coder.provisionerd.overlay import JOIN, DaemonOverlay
from coder.rpc.errors import RpcError
from coder.rpc.proto import overlay_pb2, tailnet_pb2
from coder.rpc.session import open_session
from coder.tailnet.controller import COORDINATE
from tests.kit.provisioners.scripted_provisioner import connected_daemon, new_version, serve_path
from tests.kit.server.server_in_process import World, running_coderd

HEALTH = "/api/v2/organizations/default/provisionerdaemons/health"


async def health_of(world: World, condition: Any = lambda daemon: True) -> dict[str, Any]:
    """Wait until the only daemon's health meets the condition, and return it."""
    while True:
        (health,) = (await world.get(HEALTH)).json()
        if condition(health):
            return dict(health)
        await trio.sleep(0.02)


async def test_health_over_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_mesh, "INTERVAL", 0.05)
    clock = FakeClock()
    async with running_coderd(first_user=True, clock=clock) as world:
        policy = DialPolicy(world.url, token=Secret(world.token))
        activity = ProvisionerActivity()
        overlay = DaemonOverlay(policy, HostWatch(tmp_path), activity)
        socket = await connect_websocket(policy, serve_path(name="far"))
        with trio.fail_after(120):
            async with open_session(socket, role="client") as session, trio.open_nursery() as nursery:
                await nursery.start(overlay.run)
                nursery.start_soon(overlay.coordinate, session)
                # The first check may come too early for an answer: the next one counts.
                health = await health_of(world, lambda item: item["source"] == "mesh" and item["reachable"])
                assert (health["version"], health["status"]) == (BUILD_VERSION, "idle")
                assert health["slots"] == {"total": 1, "busy": 0}
                assert health["host"]["cores"] >= 1 and health["host"]["disk_total"] > 0
                assert 0 < health["latency_ms"] < 20_000
                with activity.working("a-job"):
                    await health_of(world, lambda item: item["slots"]["busy"] == 1)
                # The link stays, but the node is closed: by heartbeats alone this daemon would be idle.
                monkeypatch.setattr(daemon_health_checks, "TIMEOUT", 0.1)
                since = clock.now()
                nursery.cancel_scope.cancel()
            async with connected_daemon(world, name="far") as daemon:
                joined = await daemon.session.call(
                    JOIN, overlay_pb2.JoinRequest(process=bytes(16)), overlay_pb2.JoinResponse
                )
                stream = daemon.session.open_stream(
                    COORDINATE, tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
                )
                async with stream as call:
                    await call.send(tailnet_pb2.CoordinateRequest())
                    # Until the first check of the new link, the old link's last result may be shown.
                    health = await health_of(world, lambda item: item["problem"] == "no answer within 0.1 s")
                    assert len(joined.id) == 16 and not health["reachable"]
                    assert health["unreachable_since"].startswith(since.strftime("%Y-%m-%dT%H:%M:%S"))
                    version = await new_version(world)
                    path = f"/api/v2/organizations/{world.organization_id}/provisionerjobs/{version['job']['id']}/why"
                    clock.advance(50)
                    why = (await world.get(path)).json()
        assert [daemon["code"] for daemon in why["daemons"]] == ["unreachable"]
        assert why["daemons"][0]["message"].startswith("is unreachable over the mesh since 20")
        assert (why["daemons"][0]["may_take"], why["verdict"]) == (True, "all_offline")


async def test_health_without_overlay() -> None:
    async with running_coderd(first_user=True) as world:
        async with connected_daemon(world, name="old") as daemon:
            health = await health_of(world)
            assert (health["source"], health["reachable"], health["host"]) == ("heartbeat", True, None)
            with pytest.raises(RpcError, match="join the overlay first"):
                await daemon.session.call(COORDINATE, tailnet_pb2.CoordinateRequest(), tailnet_pb2.CoordinateResponse)
            with pytest.raises(RpcError, match="16 bytes"):
                await daemon.session.call(JOIN, overlay_pb2.JoinRequest(process=b"x"), overlay_pb2.JoinResponse)
        async with connect_built_in(world.ctx, "own", ["echo"]):
            health = {daemon["name"]: daemon for daemon in (await world.get(HEALTH)).json()}["own"]
        assert (health["source"], health["reachable"]) == ("process", True)
        assert health["host"]["cores"] >= 1


async def test_health_requires_permission() -> None:
    async with running_coderd(first_user=True) as world:
        assert (await world.get(HEALTH, token="")).status_code == 401
