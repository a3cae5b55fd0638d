"""Clients on the real links, and the whole overlay: agent, client and server reach each other through the relay."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.rpc_endpoints import absent_clients, coordination
from coder.coderd.services.access import rights_changes
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.network.resume_tokens import ResumeBinding
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import connect_websocket
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import Session, open_session
from coder.tailnet.controller import COORDINATE, REFRESH_RESUME_TOKEN
from coder.tailnet.resume_tokens import RESUME_HEADER
from tests.kit.agents.real_agent import exchange, running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, dial_link, eventually, workspace_world
from tests.kit.server import workspaces
from tests.kit.server.server_in_process import World

Request, Response = tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse


async def test_server_and_client_reach_agent() -> None:
    async with workspace_world() as view_context, running_overlay_agent(view_context):
        with trio.fail_after(60):
            dialer = view_context.world.ctx.agent_dialer
            assert dialer is not None
            await exchange(await dialer.dial(view_context.agent_id, 7))
        policy = DialPolicy(view_context.world.url, token=Secret(view_context.world.token))
        async with open_link(policy, view_context.agent_id, direct=False) as link:
            with trio.fail_after(60):
                await link.wait_reachable()
                await exchange(await link.connect(7))

        async def is_preferred() -> bool:
            relay = (await view_context.agent())["latency"].get("Coder Embedded Relay")
            return bool(relay and relay["preferred"])

        await eventually(is_preferred)


@pytest.mark.parametrize("how", ["unshared", "suspended", "away for long", "back"])
async def test_lost_client_is_watched(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents keep its keys for as long as it uses them, so that connections survive the server; permissions do not."""
    monkeypatch.setattr(absent_clients, "CHECK_INTERVAL", 0.05)
    monkeypatch.setattr(absent_clients, "PATIENCE", 0.05 if how == "away for long" else 3600.0)
    async with workspace_world() as view_context, running_overlay_agent(view_context) as agent:
        world = view_context.world
        bob, token = await world.member("bob")
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204
        key = PrivateKey.generate(os.urandom).public
        watched = world.ctx.services.relay.absent_clients._watched

        async def is_known() -> bool:
            return key in agent._node.peers()

        async def is_dropped() -> bool:
            return key not in agent._node.peers()

        async with _as_client(view_context, token, key):
            await eventually(is_known)

        async def is_watched() -> bool:
            return bool(watched)

        if how != "away for long":  # otherwise that may be over already
            await eventually(is_watched)
            assert await is_known(), "it is only lost"
        if how == "back":
            async with _as_client(view_context, token, key):
                await eventually(is_known)
                monkeypatch.setattr(absent_clients, "PATIENCE", 0.0)
                (peer,) = watched
                world.ctx.services.relay.coordinator.revoke(peer, watched[peer][1])
                assert await is_known(), "it requested its tunnel again"
            return
        if how == "unshared":
            assert (await world.patch(acl, {"user_roles": {bob: ""}})).status_code == 204
        elif how == "suspended":
            assert (await world.put(f"/api/v2/users/{bob}/status/suspend")).status_code == 200
        await eventually(is_dropped)
        assert not watched


@dataclass
class _Stream:
    """Client's coordination stream under control of a test."""

    session: Session
    stream: Any
    key: PublicKey = field(default_factory=lambda: PrivateKey.generate(os.urandom).public)
    disco: PublicKey = field(default_factory=lambda: PrivateKey.generate(os.urandom).public)

    async def tell(self, key: PublicKey, disco: PublicKey | None = None) -> None:
        node = tailnet_pb2.Node(
            id=7,
            key=key.binary,
            disco=(disco or self.disco).disco_text,
            preferred_derp=999,
            addresses=["fd7a:115c:a1e0:49d6::7/128"],
            allowed_ips=["fd7a:115c:a1e0:49d6::7/128"],
        )
        node.as_of.GetCurrentTime()
        await self.stream.send(Request(update_self=Request.UpdateSelf(node=node)))

    async def ask(self, agent_id: UUID) -> None:
        await self.stream.send(Request(add_tunnel=Request.Tunnel(id=agent_id.bytes)))

    async def resume_token(self) -> str:
        pb = tailnet_pb2
        answer = await self.session.call(
            REFRESH_RESUME_TOKEN, pb.RefreshResumeTokenRequest(), pb.RefreshResumeTokenResponse
        )
        return str(answer.token)

    async def refusal(self) -> str:
        """Return the error that ends the stream."""
        with trio.fail_after(60):
            while not (answer := await self.stream.receive()).error:
                pass
        return str(answer.error)


@asynccontextmanager
async def coordinating(world: World, path: str, token: str, *, resume: str = "") -> AsyncIterator[_Stream]:
    policy = DialPolicy(world.url, token=Secret(token))
    websocket = await connect_websocket(policy, path, headers=[(RESUME_HEADER, resume)] if resume else [])
    async with (
        open_session(websocket, role="client") as session,
        session.open_stream(COORDINATE, Request, Response) as stream,
    ):
        yield _Stream(session, stream)
        await trio.aclose_forcefully(websocket)


async def test_resumed_peer_loses_revoked_tunnels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared, resumed at another server, unshared: the agent drops the client although no new request was sent."""
    monkeypatch.setattr(rights_changes, "PAUSE", 0.0)
    async with workspace_world() as view_context, running_overlay_agent(view_context) as agent:
        world = view_context.world
        bob, token = await world.member("bob")
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204

        async def has_client() -> bool:
            return first.key in agent._node.peers()

        async def has_forgotten() -> bool:
            return not await has_client()

        async with coordinating(world, "/api/v2/tailnet?version=2.0", token) as first:
            await first.tell(first.key)
            await first.ask(view_context.agent_id)
            await eventually(has_client)
            resume = await first.resume_token()
            async with coordinating(world, "/api/v2/tailnet?version=2.0", token, resume=resume) as second:
                await second.tell(first.key, first.disco)
                assert "overwritten" in await first.refusal()
                assert (await world.patch(acl, {"user_roles": {bob: ""}})).status_code == 204
                await eventually(has_forgotten)
                await second.ask(view_context.agent_id)
                assert "unauthorized" in await second.refusal()


async def test_tunnel_uses_current_rights() -> None:
    """A link without tunnels stays open: permissions its opener lost since give no new tunnel."""
    async with workspace_world() as view_context:
        world, path = view_context.world, "/api/v2/tailnet?version=2.0"
        organization = f"/api/v2/organizations/{world.organization_id}"
        group = (await world.post(f"{organization}/groups", {"name": "friends"})).json()["id"]
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"
        assert (await world.patch(acl, {"group_roles": {group: "use"}})).status_code == 204
        for lose in ("group", "membership", "role"):
            bob, token = await world.member(f"bob-{lose}", ["owner"] if lose == "role" else None)
            if lose != "role":
                added = await world.patch(f"/api/v2/groups/{group}", {"add_users": [bob]})
                assert added.status_code == 200, added.text
            async with (
                coordinating(world, path, token) as may,
                coordinating(world, path, token) as lost,
            ):
                for item in (may, lost):
                    await item.tell(item.key)
                await may.ask(view_context.agent_id)
                if lose == "group":
                    answer = await world.patch(f"/api/v2/groups/{group}", {"remove_users": [bob]})
                elif lose == "membership":
                    answer = await world.delete(f"{organization}/members/{bob}")
                else:
                    answer = await world.put(f"/api/v2/users/{bob}/roles", {"roles": []})
                assert answer.status_code < 300, answer.text
                await lost.ask(view_context.agent_id)
                assert "unauthorized" in await lost.refusal(), lose


async def test_resume_token_is_useless_to_others() -> None:
    """Another organization's user, another session of the same user, another key: each is refused in its own way."""
    async with workspace_world() as view_context, running_overlay_agent(view_context) as agent:
        world = view_context.world
        created = await world.post("/api/v2/organizations", {"name": "elsewhere"})
        assert created.status_code == 201, created.text
        _, eve = await world.member("eve", organizations=[created.json()["id"]])
        again = await world.post("/api/v2/users/me/keys/tokens", {"token_name": "second"})
        tailnet = "/api/v2/tailnet?version=2.0"
        async with coordinating(world, tailnet, world.token) as first:
            await first.tell(first.key)
            await first.ask(view_context.agent_id)
            resume = await first.resume_token()
            for token in (eve, again.json()["key"]):
                ways: tuple[dict[str, Any], ...] = ({"headers": [(RESUME_HEADER, resume)]}, {})
                for view in ways:
                    path = tailnet if view else f"{tailnet}&resume_token={resume}"
                    with pytest.raises(HttpError) as caught:
                        await connect_websocket(DialPolicy(world.url, token=Secret(token)), path, **view)
                    assert caught.value.status == 401
                    assert [item["field"] for item in caught.value.validations] == ["resume_token"]
            async with coordinating(world, tailnet, world.token, resume=resume) as second:
                await second.tell(second.key)
                assert "other keys" in await second.refusal()
        assert second.key not in agent._node.peers()


@pytest.mark.parametrize("is_present", [True, False], ids=["present", "away"])
async def test_foreign_key_is_refused(is_present: bool) -> None:
    """Of a connected agent, and of a disconnected one: the wrong peer must not be faster after a restart."""
    async with workspace_world() as view_context:
        world = view_context.world
        _, bob = await world.member("bob")
        async with AsyncExitStack() as stack:
            agent = await stack.enter_async_context(running_overlay_agent(view_context))
            key = agent._node.self_info.public_key

            async def is_there() -> bool:
                return world.ctx.services.relay.coordinator.core.node_of(view_context.agent_id) is not None

            async def is_disconnected() -> bool:
                return not await is_there()

            await eventually(is_there)
            if not is_present:
                await stack.aclose()
                await eventually(is_disconnected)
            async with coordinating(world, "/api/v2/tailnet?version=2.0", bob) as thief:
                await thief.tell(key)
                assert "another peer" in await thief.refusal()


@asynccontextmanager
async def _as_client(view_context: AgentWorld, token: str, key: PublicKey, more: str = "") -> AsyncIterator[None]:
    """Run a client on its coordination stream, which will be cut."""
    path = f"/api/v2/workspaceagents/{view_context.agent_id}/coordinate?version=2.0{more}"
    websocket = await dial_link(view_context.world, path, token=token)
    async with (
        open_session(websocket, role="client") as session,
        session.open_stream(COORDINATE, Request, Response) as stream,
    ):
        node = tailnet_pb2.Node(
            id=7,
            key=key.binary,
            disco=PrivateKey.generate(os.urandom).public.disco_text,
            preferred_derp=999,
            addresses=["fd7a:115c:a1e0:49d6::7/128"],
            allowed_ips=["fd7a:115c:a1e0:49d6::7/128"],
        )
        node.as_of.GetCurrentTime()
        await stream.send(Request(update_self=Request.UpdateSelf(node=node)))
        await stream.send(Request(add_tunnel=Request.Tunnel(id=view_context.agent_id.bytes)))
        await stream.receive()
        yield
        await trio.aclose_forcefully(websocket)


@pytest.mark.parametrize("how", ["unshared", "suspended", "dormant"])
async def test_open_tunnel_ends_with_permission(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchanged keys would keep working on their own: the agent is notified to drop the client."""
    monkeypatch.setattr(coordination, "CHECK_INTERVAL", 0.05)
    async with workspace_world() as view_context, running_overlay_agent(view_context) as agent:
        world = view_context.world
        bob, token = await world.member("bob")
        acl = f"/api/v2/workspaces/{view_context.workspace['id']}/acl"
        assert (await world.patch(acl, {"user_roles": {bob: "use"}})).status_code == 204
        policy = DialPolicy(world.url, token=Secret(token))
        async with open_link(policy, view_context.agent_id, direct=False) as link:
            with trio.fail_after(60):
                await link.wait_reachable()
                await exchange(await link.connect(7))
            key = link.node.self_info.public_key
            assert key in agent._node.peers()
            if how == "unshared":
                assert (await world.patch(acl, {"user_roles": {bob: ""}})).status_code == 204
            elif how == "dormant":
                path = f"/api/v2/workspaces/{view_context.workspace['id']}/dormant"
                assert (await world.put(path, {"dormant": True})).status_code == 200
            else:
                assert (await world.put(f"/api/v2/users/{bob}/status/suspend")).status_code == 200

            async def forgotten() -> bool:
                return key not in agent._node.peers()

            await eventually(forgotten)
            if how == "dormant":
                # A discarded token cannot be used, not even by its owner.
                for user_token in (token, world.token):
                    with pytest.raises(HttpError) as caught:
                        await dial_link(
                            world,
                            f"/api/v2/workspaceagents/{view_context.agent_id}/coordinate?version=2.0",
                            token=user_token,
                        )
                    assert caught.value.status == 404


async def test_refusals_of_the_coordinate_link() -> None:
    async with workspace_world() as view_context:
        path = f"/api/v2/workspaceagents/{view_context.agent_id}/coordinate"
        _, stranger = await view_context.world.member()
        for where, token, status, message, fields in [
            (f"{path}?version=2.0", "", 401, None, []),
            (f"{path}", view_context.world.token, 400, "Unknown or unsupported API version", ["version"]),
            (f"{path}?version=1.0", view_context.world.token, 400, "Unknown or unsupported API version", ["version"]),
            (
                f"{path}?version=2.0&resume_token=bad",
                view_context.world.token,
                401,
                "Invalid resume token",
                ["resume_token"],
            ),
            (f"{path}?version=2.0", stranger, 404, None, []),
            (f"/api/v2/workspaceagents/{uuid4()}/coordinate?version=2.0", view_context.world.token, 404, None, []),
            (
                "/api/v2/tailnet?version=2.99",
                view_context.world.token,
                400,
                "Unknown or unsupported API version",
                ["version"],
            ),
        ]:
            with pytest.raises(HttpError) as caught:
                await dial_link(view_context.world, where, token=token)
            error = caught.value
            assert error.status == status, where
            assert [item["field"] for item in error.validations] == fields
            if message:
                assert error.message == message


async def test_resume_tokens_keep_peer_id() -> None:
    async with workspace_world() as view_context:
        path = f"/api/v2/workspaceagents/{view_context.agent_id}/coordinate?version=2.0"
        ids = []
        token = ""
        for _ in range(2):
            websocket = await dial_link(view_context.world, path + token, token=view_context.world.token)
            async with open_session(websocket, role="client") as session:
                answer = await session.call(
                    REFRESH_RESUME_TOKEN,
                    tailnet_pb2.RefreshResumeTokenRequest(),
                    tailnet_pb2.RefreshResumeTokenResponse,
                )
            assert answer.refresh_in.seconds == 12 * 3600
            session_id = view_context.world.token.partition("-")[0]
            caller = ResumeBinding(UUID(view_context.world.user_id), session_id)
            ids.append(await resume_tokens.read_untrusted(view_context.world.ctx, answer.token, caller))
            token = f"&resume_token={answer.token}"
        assert ids[0] == ids[1]


async def test_clients_cannot_reach_other_agents() -> None:
    async with workspace_world() as view_context:
        path = f"/api/v2/workspaceagents/{view_context.agent_id}/coordinate?version=2.0"
        websocket = await dial_link(view_context.world, path, token=view_context.world.token)
        other = uuid4()
        async with (
            open_session(websocket, role="client") as session,
            session.open_stream(COORDINATE, Request, Response) as stream,
        ):
            await stream.send(Request(add_tunnel=Request.Tunnel(id=other.bytes)))
            answer = await stream.receive()
            assert answer.error == f"authorization: invalid agent id, expected {view_context.agent_id}, got {other}"
            with pytest.raises(trio.EndOfChannel):
                await stream.receive()


async def test_workspace_updates_begin_with_snapshot() -> None:
    async with workspace_world() as view_context:
        websocket = await dial_link(view_context.world, "/api/v2/tailnet?version=2.3", token=view_context.world.token)
        pb = tailnet_pb2
        async with (
            open_session(websocket, role="client") as session,
            session.open_stream(
                "/coder.tailnet.v2.Tailnet/WorkspaceUpdates", pb.WorkspaceUpdatesRequest, pb.WorkspaceUpdate
            ) as stream,
        ):
            await stream.send(pb.WorkspaceUpdatesRequest(workspace_owner_id=UUID(view_context.world.user_id).bytes))
            await stream.close_send()
            first = await stream.receive()
            assert [(w.name, w.status) for w in first.upserted_workspaces] == [("dev", pb.Workspace.RUNNING)]
            assert [a.id for a in first.upserted_agents] == [view_context.agent_id.bytes]
            path = f"/api/v2/workspaces/{view_context.workspace['id']}/builds"
            created = await view_context.world.post(path, {"transition": "stop"})
            assert created.status_code == 201
            seen = []
            while pb.Workspace.STOPPED not in seen:
                update = await stream.receive()
                seen += [w.status for w in update.upserted_workspaces]


async def test_workspace_updates_follow_permissions() -> None:
    """A role that denies a user's own objects counts while the link is open."""
    pb = tailnet_pb2
    async with workspaces.workspace_world() as (world, _):
        bob, token = await world.member("bob")
        admin, world.token = world.token, token
        own = await workspaces.new_workspace(world, "own")
        world.token = admin
        denial = {"negate": True, "resource_type": "workspace", "action": "read"}
        none: dict[str, Any] = {"site_permissions": [], "user_permissions": [], "organization_member_permissions": []}
        role = {"name": "blind", "display_name": "", "organization_permissions": [denial], **none}
        organization = f"/api/v2/organizations/{world.organization_id}"
        assert (await world.post(f"{organization}/members/roles", role)).status_code == 200
        websocket = await dial_link(world, "/api/v2/tailnet?version=2.3", token=token)
        async with (
            open_session(websocket, role="client") as session,
            session.open_stream(
                "/coder.tailnet.v2.Tailnet/WorkspaceUpdates", pb.WorkspaceUpdatesRequest, pb.WorkspaceUpdate
            ) as stream,
        ):
            await stream.send(pb.WorkspaceUpdatesRequest(workspace_owner_id=UUID(bob).bytes))
            await stream.close_send()
            first = await stream.receive()
            assert [workspace.name for workspace in first.upserted_workspaces] == ["own"] and first.upserted_agents
            blinded = await world.put(f"{organization}/members/{bob}/roles", {"roles": ["blind"]})
            assert blinded.status_code == 200, blinded.text
            created = await world.post(f"/api/v2/workspaces/{own['id']}/builds", {"transition": "stop"})
            assert created.status_code == 201, created.text
            with trio.fail_after(60):
                update = await stream.receive()
            assert not update.upserted_workspaces and not update.upserted_agents
            assert [workspace.name for workspace in update.deleted_workspaces] == ["own"] and update.deleted_agents
