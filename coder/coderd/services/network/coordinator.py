"""The live coordinator: Coordinate streams around the pure coordinator in `domain/network/coordination.py`.

Every stream has a mailbox of 512 responses; a peer whose mailbox is full is dropped. All state is in memory: after a
restart peers reconnect and resend it. Peers at other replicas are `replica_coordination.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import trio

from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.services.network.derp_map import current_map
from coder.coderd.services.network.node_keys import keys_of_node
from coder.coderd.services.network.replica_coordination import Bridge, Mailbox
from coder.domain.foundation.numbers import decimal
from coder.domain.network.coordination import MAX_UPDATES, Coordination, Delivery, Update
from coder.domain.network.coordination_rules import CoordinatedNode, CoordinationRequest, CoordinationRules
from coder.rpc.calls import ServerCall
from coder.rpc.errors import RpcClosed
from coder.rpc.proto import tailnet_pb2
from coder.rpc.small_channel import SmallChannel

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.foundation.this_replica import ThisReplica

MAILBOX = 512
"Responses that may wait for one peer (docs/protocol/coordination.md#ends)."

_REASON = 256
"Characters of a text in a node."

CoordinateCall = ServerCall[tailnet_pb2.CoordinateResponse, tailnet_pb2.CoordinateRequest]
LeftBehind = Callable[[list[UUID]], None]
"""Callback with the agents to which a lost peer had tunnels."""
CheckTunnel = Callable[[UUID], Awaitable[str]]
"""Check of a tunnel to an agent that needs the database: reason of a refusal, empty when allowed."""
CheckKeys = Callable[[tuple[bytes, ...]], Awaitable[str]]
"""Check of a node's keys when they change: reason of a refusal, empty when allowed."""

_log = get_logger("coordinator")


async def allow(_subject: UUID | tuple[bytes, ...]) -> str:
    """Allow everything, for peers whose rules suffice."""
    return ""


class RegionLatency(msgspec.Struct, frozen=True):
    """Latency of an agent to a relay region, and whether the region is the agent's home."""

    preferred: bool
    latency_ms: float


@dataclass(frozen=True, slots=True)
class PeerChecks:
    """Checks of a stream, by the endpoint that serves it."""

    tunnel: CheckTunnel = allow
    keys: CheckKeys = allow
    left_behind: LeftBehind | None = None


class Coordinator:
    """All Coordinate streams of this server."""

    def __init__(self, ctx: Context, this_replica: ThisReplica) -> None:
        self._ctx = ctx
        self.core = Coordination()
        self.mailboxes: dict[int, Mailbox] = {}
        "Channel, or proxy of a peer at another replica, by connection."
        self.bridge = Bridge(ctx, self, this_replica.id)

    async def serve(
        self,
        call: CoordinateCall,
        peer_id: UUID,
        rules: CoordinationRules,
        checks: PeerChecks = PeerChecks(),
    ) -> None:
        """Serve a stream until it ends; then the peer is lost unless it sent a goodbye."""
        number, deliveries = self.core.connect(peer_id, rules)
        mailbox = self.mailboxes[number] = SmallChannel[Delivery](MAILBOX)
        self.deliver(deliveries)
        self.bridge.peer_connected(peer_id)
        try:
            with single_failure():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_write, call, mailbox, nursery.cancel_scope)
                    async for message in call:
                        await self._handle(number, peer_id, message, checks)
                    nursery.cancel_scope.cancel()
        finally:
            self.mailboxes.pop(number, None)
            self.deliver(self.core.lose(number))
            self.bridge.peer_disconnected(peer_id)
            agents = self.core.take_left_behind(peer_id)
            if agents and checks.left_behind is not None:
                checks.left_behind(agents)

    async def _handle(
        self, number: int, peer_id: UUID, message: tailnet_pb2.CoordinateRequest, checks: PeerChecks
    ) -> None:
        try:
            request = request_from_proto_untrusted(message)
        except ValueError as error:
            self.deliver(self.core.refuse(number, str(error)))
            return
        refusal = await self._explain_refusal(peer_id, request, checks)
        if refusal:
            self.deliver(self.core.refuse(number, f"authorization: {refusal}"))
            return
        self.deliver(self.core.handle(number, request))
        if request.add_tunnel is not None and self.core.is_present(peer_id):
            self.bridge.tunnel_requested(peer_id, request.add_tunnel)

    async def _explain_refusal(self, peer_id: UUID, request: CoordinationRequest, checks: PeerChecks) -> str:
        """Return why a request is refused by checks outside the pure rules; empty when allowed."""
        node, known = request.node, self.core.node_of(peer_id)
        if node is not None and (known is None or known.keys != node.keys):
            refusal = await checks.keys(node.keys)
            if refusal:
                return refusal
        return await checks.tunnel(request.add_tunnel) if request.add_tunnel is not None else ""

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        """Put each delivery into its peer's mailbox."""
        waiting = deque(deliveries)
        while waiting:
            delivery = waiting.popleft()
            mailbox = self.mailboxes.get(delivery.connection)
            if mailbox is None:
                continue
            try:
                mailbox.send_nowait(delivery)
            except trio.WouldBlock:
                _log.warn("a peer does not read its updates and is dropped", connection=delivery.connection)
                del self.mailboxes[delivery.connection]
                mailbox.close()
                waiting += self.core.overflow(delivery.connection)
            except trio.BrokenResourceError:
                pass  # its stream is ending

    def cut(self, peer_id: UUID) -> None:
        """Remove the tunnels of a peer that lost its session or its permission, at all replicas."""
        self.deliver(self.core.cut(peer_id))

    def revoke(self, peer_id: UUID, agents: Iterable[UUID]) -> None:
        """Remove the tunnels of a peer whose stream was lost earlier from these agents, at all replicas."""
        agents = list(agents)
        self.deliver(self.core.revoke(peer_id, agents))
        self.bridge.peer_revoked(peer_id, agents)

    def close(self) -> None:
        """Notify every peer that the server stops."""
        self.deliver(self.core.close())

    def node_number(self, peer_id: UUID) -> int | None:
        """Return the id of a peer's node; None while the peer is absent or has no node."""
        node = self.core.node_of(peer_id)
        return None if node is None else tailnet_pb2.Node.FromString(node.body).id

    def latency_of(self, agent_id: UUID) -> Mapping[str, RegionLatency] | None:
        """Return the agent's latencies by region name, as it measured them; None while the agent is absent."""
        node = self.core.node_of(agent_id)
        if node is None:
            return None
        message = tailnet_pb2.Node.FromString(node.body)
        regions = current_map(self._ctx).regions
        latencies: dict[str, RegionLatency] = {}
        for key, seconds in message.derp_latency.items():
            region = regions.get(_region_number(key))
            if region is not None:
                preferred = region.region_id == message.preferred_derp
                latencies[region.region_name] = RegionLatency(preferred, seconds * 1000)
        return latencies


def _region_number(key: str) -> int:
    number = decimal(key.partition("-")[0])
    return -1 if number is None else number


async def _write(call: CoordinateCall, mailbox: SmallChannel[Delivery], scope: trio.CancelScope) -> None:
    """Send deliveries; close the stream after the last one or when the mailbox overflowed."""
    try:
        try:
            await _send_all(call, mailbox)
        finally:
            mailbox.leave()
        await call.close()
    except RpcClosed:
        pass  # the peer left first
    scope.cancel()


async def _send_all(call: CoordinateCall, mailbox: SmallChannel[Delivery]) -> None:
    with suppress(trio.EndOfChannel):
        while True:
            delivery = await mailbox.receive()
            if delivery.updates or delivery.error:
                await call.send(response_to_proto(delivery))
            if delivery.end:
                return


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Part: run the coordinator until the server stops."""
    coordinator = ctx.services.relay.coordinator
    task_status.started()
    await ctx.stopping.wait()
    coordinator.close()


# ---- conversions


def request_from_proto_untrusted(message: tailnet_pb2.CoordinateRequest) -> CoordinationRequest:
    """Return a request. Raises ValueError with the wire's text for an id that is no UUID, or too many handshakes."""
    node = None
    if len(message.ready_for_handshake) > MAX_UPDATES:  # one for each peer of the longest list that is sent
        raise ValueError(f"ready for more than {MAX_UPDATES} handshakes in one request")
    if message.HasField("update_self"):
        node = node_from_proto(message.update_self.node)
    return CoordinationRequest(
        node=node,
        add_tunnel=_uuid_untrusted(message.add_tunnel.id) if message.HasField("add_tunnel") else None,
        remove_tunnel=_uuid_untrusted(message.remove_tunnel.id) if message.HasField("remove_tunnel") else None,
        disconnect=message.HasField("disconnect"),
        ready_for_handshake=tuple(_uuid_untrusted(ready.id) for ready in message.ready_for_handshake),
    )


def node_from_proto(node: tailnet_pb2.Node) -> CoordinatedNode:
    """Return a node as other peers receive it.

    The reason why a region needs WebSocket is truncated: genuine nodes put a proxy's answer there, which may be a whole
    page, and only users read it.
    """
    oversized = [region for region, reason in node.derp_forced_websocket.items() if len(reason) > _REASON]
    if oversized:
        original, node = node, tailnet_pb2.Node()
        node.CopyFrom(original)
        for region in oversized:
            node.derp_forced_websocket[region] = original.derp_forced_websocket[region][:_REASON]
    body = node.SerializeToString(deterministic=True)
    return CoordinatedNode(body, tuple(node.addresses), tuple(node.allowed_ips), keys_of_node(node))


def _uuid_untrusted(raw: bytes) -> UUID:
    if len(raw) != 16:
        raise ValueError(f"unable to convert bytes to UUID: invalid UUID (got {len(raw)} bytes)")
    return UUID(bytes=raw)


def response_to_proto(delivery: Delivery) -> tailnet_pb2.CoordinateResponse:
    return tailnet_pb2.CoordinateResponse(
        peer_updates=[_update_to_proto(update) for update in delivery.updates], error=delivery.error
    )


def _update_to_proto(update: Update) -> tailnet_pb2.CoordinateResponse.PeerUpdate:
    message = tailnet_pb2.CoordinateResponse.PeerUpdate(id=update.peer.bytes, reason=update.reason)
    message.kind = int(update.kind)  # type: ignore[assignment]
    if update.node is not None:
        message.node.ParseFromString(update.node.body)
    return message
