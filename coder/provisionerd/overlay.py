"""Overlay membership of a daemon: the server connects to it to check its health and the load of its machine.

Everything uses connections the daemon opens: coordination over the existing link, packets through the relay. A poll
every half minute does not justify UDP sockets and their keepalives, so direct paths are not used. Older servers without
this call rely on the link's own heartbeat.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import partial
from uuid import UUID

import h11
import trio

from coder.base.host import HostWatch
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION
from coder.mesh.node import NodeConfig, open_node
from coder.net.bounded_http import BoundedHttp
from coder.net.policy import DialPolicy
from coder.provisionerd.activity import ProvisionerActivity
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import overlay_pb2
from coder.rpc.services import OVERLAY
from coder.rpc.session import Session
from coder.tailnet import derpmap
from coder.tailnet.addresses import agent_address, node_id, service_address
from coder.tailnet.controller import Controller, open_controller
from coder.tailnet.relay import RelayDialer

JOIN = OVERLAY + "Join"
HEALTH_PORT = 4
"Overlay port of the HTTP API, the same as the agents'."
HEALTH_PATH = "/api/v0/health"
_TIMEOUT = 20.0

_log = get_logger("provisionerd.overlay")


@dataclass(slots=True)
class _Node:
    """Overlay node, created once a server has assigned an id."""

    id: UUID
    controller: Controller
    scope: trio.CancelScope


class DaemonOverlay:
    """Overlay of one process. Call `run` for the life of the daemon, `coordinate` with every session."""

    def __init__(self, policy: DialPolicy, host: HostWatch, activity: ProvisionerActivity) -> None:
        self._policy = policy
        self._host, self._activity = host, activity
        self._process = os.urandom(16)
        self._node: _Node | None = None
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    async def coordinate(self, session: Session) -> None:
        """Stay on the overlay until the session ends. No failure here affects the jobs."""
        try:
            answer = await session.call(JOIN, overlay_pb2.JoinRequest(process=self._process), overlay_pb2.JoinResponse)
        except RpcError as problem:
            _log.debug("the server has no overlay for provisioners", reason=problem.text)
            return
        except RpcClosed:
            return
        try:
            await (await self._join(answer)).run(session)
        except (RpcClosed, RpcError) as problem:
            _log.debug("coordination ended", reason=problem.message)
        except Exception as problem:
            _log.warn("the overlay is not reachable", error=problem)

    async def _join(self, answer: overlay_pb2.JoinResponse) -> Controller:
        assert self._nursery is not None  # noqa: S101 - run() was started first
        ident = UUID(bytes=answer.id)
        if self._node is None or self._node.id != ident:
            if self._node is not None:
                self._node.scope.cancel()  # a server that assigns ever new ids would fill this process with nodes
            self._node = await self._nursery.start(self._run_node, ident, answer)
        return self._node.controller

    async def _run_node(
        self,
        ident: UUID,
        answer: overlay_pb2.JoinResponse,
        *,
        task_status: trio.TaskStatus[_Node] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        relay = RelayDialer(self._policy, force_websockets=answer.derp_force_websockets)
        config = NodeConfig(
            addresses=(agent_address(ident), service_address(ident)),
            derp_map=derpmap.with_embedded(derpmap.from_proto(answer.derp_map), self._policy.url),
            derp_dialer=relay,
            latency_probe=relay.probe,
            direct=False,
        )
        url, number = self._policy.url, node_id(ident)
        with trio.CancelScope() as scope:
            async with (
                open_node(config) as node,
                open_controller(node, "destination", number=number, server_url=url, direct=False) as controller,
            ):
                _log.debug("joined the overlay", address=str(config.addresses[0]))
                task_status.started(_Node(ident, controller, scope))
                try:
                    await trio.serve_listeners(self._serve, [node.tcp_listen(HEALTH_PORT)])
                except Exception as problem:
                    _log.error("the overlay node failed", error=problem)
                    self._node = None  # the next session creates another node

    async def _serve(self, stream: trio.abc.Stream) -> None:
        """Serve one request per connection. Never raises for a peer's misbehaviour."""
        async with stream:
            try:
                with trio.fail_after(_TIMEOUT):
                    await _answer(stream, partial(self.health))
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
                return

    def health(self) -> JsonObject:
        """Return the health report for the server."""
        return {
            "version": BUILD_VERSION,
            "host": asdict(self._host.look()),
            "slots": {"total": self._activity.slots, "busy": len(self._activity.jobs)},
            "jobs": sorted(self._activity.jobs),
        }


async def _answer(stream: trio.abc.Stream, health: partial[JsonObject]) -> None:
    connection = BoundedHttp(h11.SERVER, max_incomplete_event_size=16 << 10)
    event = await connection.read_event(stream)
    if not isinstance(event, h11.Request):
        return
    is_health = event.method == b"GET" and event.target == HEALTH_PATH.encode()
    body = json.dumps(health() if is_health else {"message": "Route not found."}).encode() + b"\n"
    headers = [
        ("Content-Type", "application/json; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    parts = (h11.Response(status_code=200 if is_health else 404, headers=headers), h11.Data(body), h11.EndOfMessage())
    await stream.send_all(b"".join(connection.send(part) or b"" for part in parts))
