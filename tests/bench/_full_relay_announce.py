"""Announces keys to a deployment's coordinator, for as long as standard input is open: its relay limits unknown ones.

python -m tests.bench._full_relay_announce PORT AUTHORITY TOKEN reads a JSON list of public keys in hexadecimal.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime

import trio

from coder.mesh.keys import PrivateKey
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import open_session
from coder.tailnet.addresses import random_address, random_node_id
from coder.tailnet.controller import COORDINATE
from tests.bench._relay_server import policy


async def main(reached: DialPolicy, keys: list[bytes]) -> None:
    """Print a line when all keys are announced."""
    async with trio.open_nursery() as nursery:
        for key in keys:
            await nursery.start(_announce, reached, key)
        print(json.dumps(len(keys)), flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        nursery.cancel_scope.cancel()


async def _announce(reached: DialPolicy, key: bytes, *, task_status: trio.TaskStatus[None]) -> None:
    prefix, disco = f"{random_address()}/128", PrivateKey.generate(os.urandom).public.disco_text
    node = tailnet_pb2.Node(
        id=random_node_id(), key=key, disco=disco, preferred_derp=999, addresses=[prefix], allowed_ips=[prefix]
    )
    node.as_of.FromDatetime(datetime.now(UTC))
    request = tailnet_pb2.CoordinateRequest
    socket = await connect_websocket(reached, "/api/v2/tailnet?version=2.0")
    async with (
        open_session(socket, "client") as session,
        session.open_stream(COORDINATE, request, tailnet_pb2.CoordinateResponse) as stream,
    ):
        await stream.send(request(update_self=request.UpdateSelf(node=node)))
        task_status.started()
        async for response in stream:
            if response.error:
                raise RuntimeError(response.error)


if __name__ == "__main__":
    given = [bytes.fromhex(key) for key in json.loads(sys.stdin.readline())]
    trio.run(main, policy("127.0.0.1", int(sys.argv[1]), sys.argv[2], sys.argv[3]), given)
