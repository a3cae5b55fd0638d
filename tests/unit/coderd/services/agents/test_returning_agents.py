"""Database statements of an agent that returns: all agents of a server do so together after a restart."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from sqlalchemy import event

from coder.coderd.services.network.node_keys import announced_keys
from coder.mesh.keys import PrivateKey
from coder.rpc.proto import agent_pb2, tailnet_pb2
from coder.rpc.services import TAILNET
from coder.tailnet.addresses import agent_address
from tests.kit.agents.scripted_agent import AgentWorld, FakeAgent, connected_agent, eventually, workspace_world
from tests.kit.server.server_in_process import World

KEY = PrivateKey.generate(os.urandom)
OTHERS = ("replicas", "provisioner_", "site_configs", "notification_messages", "clock_timestamp")
"""Tables of the server's own loops."""


@contextlib.contextmanager
def written_statements(world: World) -> Iterator[list[str]]:
    """Collect verb and table of each statement that writes, of those that an agent caused."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        words = statement.split()
        if words[0] in {"INSERT", "UPDATE", "DELETE"} and not any(name in statement for name in OTHERS):
            found.append(f"{words[0]} {words[1] if words[0] == 'UPDATE' else words[2]}")

    engine = world.ctx.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def _arrive(view_context: AgentWorld, agent: FakeAgent, directory: str, written: list[str], count: int) -> None:
    """Make the calls of an agent that connects, and wait for so many statements and for its keys to be committed."""
    await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
    startup = agent_pb2.Startup(version="v2.34.0", expanded_directory=directory)
    await agent.call("UpdateStartup", agent_pb2.UpdateStartupRequest(startup=startup), agent_pb2.Startup)
    kinds = (tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse)
    prefix = f"{agent_address(view_context.agent_id)}/128"
    node = tailnet_pb2.Node(id=1, key=KEY.public.binary, disco=KEY.public.disco_text, addresses=[prefix])
    node.allowed_ips.append(prefix)
    async with agent.session.open_stream(TAILNET + "Coordinate", *kinds) as stream:
        update = tailnet_pb2.CoordinateRequest.UpdateSelf(node=node)
        await stream.send(tailnet_pb2.CoordinateRequest(update_self=update))

        async def is_complete() -> bool:
            known = await announced_keys(view_context.world.ctx, [KEY.public])
            return len(written) >= count and bool(known)

        await eventually(is_complete)


async def test_returning_agent_writes_little() -> None:
    async with workspace_world() as view_context:
        for directory, expected in (
            ("/home/a", ["DELETE node_keys", "INSERT node_keys", "UPDATE workspace_agents"]),
            ("/home/a", ["INSERT node_keys"]),
            ("/home/b", ["INSERT node_keys", "UPDATE workspace_agents"]),
        ):
            async with connected_agent(view_context) as agent:

                async def is_marked() -> bool:
                    return bool((await view_context.agent())["status"] == "connected")

                await eventually(is_marked)
                with written_statements(view_context.world) as written:
                    await _arrive(view_context, agent, directory, written, len(expected))

            async def has_left() -> bool:
                return bool((await view_context.agent())["status"] == "disconnected")

            await eventually(has_left)
            assert sorted(written) == expected
        assert (await view_context.agent())["expanded_directory"] == "/home/b"
