"""The server whose packets to and from its database are lost, so that they arrive late and in bursts."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator

import trio

from tests.kit.agents.scripted_agent import connected_agent, eventually, start_workspace
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, line, new_version
from tests.kit.server.postgres_server import fresh_database, shared_postgres
from tests.kit.server.server_in_process import running_on

LATE = 0.25
"""Seconds until TCP repeats a packet that was lost."""
LOSS = 0.02


@contextlib.asynccontextmanager
async def lossy_path() -> AsyncIterator[str]:
    """A TCP address that leads to the suite's PostgreSQL."""
    socket_path = str((await shared_postgres()).sockets / ".s.PGSQL.5432")
    chance = random.Random(7)

    async def copy(source: trio.abc.Stream, target: trio.abc.Stream, ends: trio.CancelScope) -> None:
        async for data in source:
            if chance.random() < LOSS:
                await trio.sleep(LATE)
            await target.send_all(data)
        ends.cancel()  # a client that cancels a statement waits for the end of its connection

    async def serve(client: trio.SocketStream) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with client, await trio.open_unix_socket(socket_path) as server, trio.open_nursery() as nursery:
                nursery.start_soon(copy, server, client, nursery.cancel_scope)
                await copy(client, server, nursery.cancel_scope)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def test_late_packets_lose_nothing() -> None:
    async with fresh_database() as url, lossy_path() as address:
        name = url.partition("?")[0].rpartition("/")[2]
        async with running_on(f"postgresql://coder@{address}/{name}?sslmode=disable") as world:
            await world.first_user()
            scene = await start_workspace(world)
            async with connected_agent(scene), connected_daemon(world, tags={"own": "1"}) as daemon:
                version = await new_version(world, tags={"own": "1"})
                job = await daemon.acquire()
                for number in range(5):
                    await daemon.update(job, logs=[line("Planning", f"line {number}")])
                await daemon.complete_import(job)

                async def is_connected() -> bool:
                    return bool((await scene.agent())["status"] == "connected")

                await eventually(is_connected)
            path = f"/api/v2/templateversions/{version['id']}"
            assert (await ended(world, path))["job"]["status"] == "succeeded"
            outputs = [entry["output"] for entry in (await world.get(f"{path}/logs")).json()]
            assert [text for text in outputs if text.startswith("line")] == [f"line {number}" for number in range(5)]
