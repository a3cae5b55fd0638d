"""Clients on the real links, and the whole overlay: agent, client and server reach each other through the relay."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
import trio

from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.links import absent_clients, coordination
from coder.coderd.services import resume_tokens
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import open_session
from coder.tailnet.controller import COORDINATE, REFRESH_RESUME_TOKEN
from tests.kit.agents import AgentWorld, dial_link, eventually, workspace_world
from tests.kit.overlay import exchange, running_agent

Request, Response = tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse


async def test_server_and_client_reach_an_agent():
    async with workspace_world() as scene, running_agent(scene):
        with trio.fail_after(15):
            await exchange(await scene.world.ctx.agent_dialer.dial(scene.agent_id, 7))
        policy = DialPolicy(scene.world.url, token=Secret(scene.world.token))
        async with open_link(policy, str(scene.agent_id), direct=False) as link:
            with trio.fail_after(15):
                await link.wait_reachable()
                await exchange(await link.connect(7))
        shown = (await scene.agent())["latency"]
        assert shown["Coder Embedded Relay"]["preferred"]


@pytest.mark.parametrize("how", ["unshared", "suspended", "away for long", "back"])
async def test_a_client_that_left_without_a_word_is_watched_on(how: str, monkeypatch: pytest.MonkeyPatch):
    """Agents keep its keys for as long as it uses them, so that they survive the server; but not the right to them."""
    monkeypatch.setattr(absent_clients, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(absent_clients, "PATIENCE", 0.5 if how == "away for long" else 3600.0)
    async with workspace_world() as scene, running_agent(scene) as agent:
        world = scene.world
        bob, token = await world.member("bob")
        acl = f"/api/v2/workspaces/{scene.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204
        key = PrivateKey.generate(os.urandom).public
        watched = world.ctx.part(absent_clients.AbsentClients)._watched

        async def is_known() -> bool:
            return key in agent._node.peers()

        async def is_forgotten() -> bool:
            return key not in agent._node.peers()

        async with _as_client(scene, token, key):
            await eventually(is_known)

        async def is_watched() -> bool:
            return bool(watched)

        await eventually(is_watched)
        assert await is_known(), "it is only lost"
        if how == "back":
            (peer,) = watched
            resumed = await resume_tokens.issue(world.ctx, peer)
            async with _as_client(scene, token, key, f"&resume_token={resumed.token}"):
                await eventually(is_known)
                assert not watched
            return
        if how == "unshared":
            assert (await world.patch(acl, {"user_roles": {bob: ""}})).status_code == 204
        elif how == "suspended":
            assert (await world.put(f"/api/v2/users/{bob}/status/suspend")).status_code == 200
        await eventually(is_forgotten)
        assert not watched


@asynccontextmanager
async def _as_client(scene: AgentWorld, token: str, key: PublicKey, more: str = "") -> AsyncIterator[None]:
    """A client on its coordination stream that will be torn away."""
    path = f"/api/v2/workspaceagents/{scene.agent_id}/coordinate?version=2.0{more}"
    websocket = await dial_link(scene.world, path, token=token)
    async with (
        open_session(websocket, role="client") as session,
        session.open_stream(COORDINATE, Request, Response) as stream,
    ):
        node = tailnet_pb2.Node(
            id=7, key=key.binary, disco=PrivateKey.generate(os.urandom).public.disco_text, preferred_derp=999,
            addresses=["fd7a:115c:a1e0:49d6::7/128"], allowed_ips=["fd7a:115c:a1e0:49d6::7/128"],
        )  # fmt: skip
        node.as_of.GetCurrentTime()
        await stream.send(Request(update_self=Request.UpdateSelf(node=node)))
        await stream.send(Request(add_tunnel=Request.Tunnel(id=scene.agent_id.bytes)))
        await stream.receive()
        yield
        await trio.aclose_forcefully(websocket)


@pytest.mark.parametrize("how", ["unshared", "suspended", "dormant"])
async def test_an_open_tunnel_ends_with_the_right_to_it(how: str, monkeypatch: pytest.MonkeyPatch):
    """Keys that were exchanged would go on by themselves: the agent is told to forget the client."""
    monkeypatch.setattr(coordination, "LOOK_EVERY", 0.05)
    async with workspace_world() as scene, running_agent(scene) as agent:
        world = scene.world
        bob, token = await world.member("bob")
        acl = f"/api/v2/workspaces/{scene.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204
        policy = DialPolicy(world.url, token=Secret(token))
        async with open_link(policy, str(scene.agent_id), direct=False) as link:
            with trio.fail_after(15):
                await link.wait_reachable()
                await exchange(await link.connect(7))
            key = link.node.self_info.public_key
            assert key in agent._node.peers()
            if how == "unshared":
                assert (await world.patch(acl, {"user_roles": {bob: ""}})).status_code == 204
            elif how == "dormant":
                path = f"/api/v2/workspaces/{scene.workspace['id']}/dormant"
                assert (await world.put(path, {"dormant": True})).status_code == 200
            else:
                assert (await world.put(f"/api/v2/users/{bob}/status/suspend")).status_code == 200

            async def forgotten() -> bool:
                return key not in agent._node.peers()

            await eventually(forgotten)
            if how == "dormant":
                # What is put aside cannot be used, by its owner neither.
                for who in (token, world.token):
                    with pytest.raises(HttpError) as caught:
                        await dial_link(
                            world, f"/api/v2/workspaceagents/{scene.agent_id}/coordinate?version=2.0", token=who
                        )
                    assert caught.value.status == 404


async def test_refusals_of_the_coordinate_link():
    async with workspace_world() as scene:
        path = f"/api/v2/workspaceagents/{scene.agent_id}/coordinate"
        _, stranger = await scene.world.member()
        for where, token, status, message, fields in [
            (f"{path}?version=2.0", "", 401, None, []),
            (f"{path}", scene.world.token, 400, "Unknown or unsupported API version", ["version"]),
            (f"{path}?version=1.0", scene.world.token, 400, "Unknown or unsupported API version", ["version"]),
            (f"{path}?version=2.0&resume_token=bad", scene.world.token, 401, "Invalid resume token", ["resume_token"]),
            (f"{path}?version=2.0", stranger, 404, None, []),
            (f"/api/v2/workspaceagents/{uuid4()}/coordinate?version=2.0", scene.world.token, 404, None, []),
            ("/api/v2/tailnet?version=2.99", scene.world.token, 400, "Unknown or unsupported API version", ["version"]),
        ]:
            with pytest.raises(HttpError) as caught:
                await dial_link(scene.world, where, token=token)
            error = caught.value
            assert error.status == status, where
            assert [item["field"] for item in error.validations] == fields
            if message:
                assert error.message == message


async def test_resume_tokens_keep_the_peer_id():
    async with workspace_world() as scene:
        path = f"/api/v2/workspaceagents/{scene.agent_id}/coordinate?version=2.0"
        ids = []
        token = ""
        for _ in range(2):
            websocket = await dial_link(scene.world, path + token, token=scene.world.token)
            async with open_session(websocket, role="client") as session:
                answer = await session.call(
                    REFRESH_RESUME_TOKEN,
                    tailnet_pb2.RefreshResumeTokenRequest(),
                    tailnet_pb2.RefreshResumeTokenResponse,
                )
            assert answer.refresh_in.seconds == 12 * 3600
            ids.append(await resume_tokens.read_untrusted(scene.world.ctx, answer.token))
            token = f"&resume_token={answer.token}"
        assert ids[0] == ids[1]


async def test_clients_may_not_reach_for_other_agents():
    async with workspace_world() as scene:
        path = f"/api/v2/workspaceagents/{scene.agent_id}/coordinate?version=2.0"
        websocket = await dial_link(scene.world, path, token=scene.world.token)
        other = uuid4()
        async with (
            open_session(websocket, role="client") as session,
            session.open_stream(COORDINATE, Request, Response) as stream,
        ):
            await stream.send(Request(add_tunnel=Request.Tunnel(id=other.bytes)))
            answer = await stream.receive()
            assert answer.error == f"authorization: invalid agent id, expected {scene.agent_id}, got {other}"
            with pytest.raises(trio.EndOfChannel):
                await stream.receive()


async def test_workspace_updates_begin_with_a_snapshot():
    async with workspace_world() as scene:
        websocket = await dial_link(scene.world, "/api/v2/tailnet?version=2.3", token=scene.world.token)
        pb = tailnet_pb2
        async with (
            open_session(websocket, role="client") as session,
            session.open_stream(
                "/coder.tailnet.v2.Tailnet/WorkspaceUpdates", pb.WorkspaceUpdatesRequest, pb.WorkspaceUpdate
            ) as stream,
        ):
            await stream.send(pb.WorkspaceUpdatesRequest(workspace_owner_id=UUID(scene.world.user_id).bytes))
            await stream.close_send()
            first = await stream.receive()
            assert [(w.name, w.status) for w in first.upserted_workspaces] == [("dev", pb.Workspace.RUNNING)]
            assert [a.id for a in first.upserted_agents] == [scene.agent_id.bytes]
            path = f"/api/v2/workspaces/{scene.workspace['id']}/builds"
            made = await scene.world.post(path, {"transition": "stop"})
            assert made.status_code == 201
            seen = []
            while pb.Workspace.STOPPED not in seen:
                update = await stream.receive()
                seen += [w.status for w in update.upserted_workspaces]
