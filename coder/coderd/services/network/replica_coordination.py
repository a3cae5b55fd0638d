"""Coordination across replicas: an agent at one replica, its client at another.

Each replica's coordinator knows its own peers. For a peer at another replica it keeps a proxy: an ordinary peer of the
pure coordinator. The proxy's deliveries leave as notices to the peer's replica, and notices from there are the proxy's
requests. So the rules of `domain/network/coordination.py` hold across replicas without any code for them.

Discovery: a replica that gets a request for a tunnel to an unknown peer announces it to all (`tunnel`), and the peer's
replica answers with the peer's node. A peer that connects is announced (`here`); replicas with tunnels to it ask again.
Nothing is stored: a replica that missed notices asks all others to resend their state (`up`). A replica marks the
beginning and the end of its state (`again`, `whole`); tunnels that were not listed in between are removed. Notices that
remove state are kept until they are sent. A replica's death shows in its row (`services/network/replicas.py`). A single
replica sends no notices.

Notices carry nodes (keys, addresses), which are visible to readers of the database; they locate machines and are no
secrets. The protocol is our own; all replicas of a deployment have the same version or adjacent ones.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack
from uuid import UUID

import msgspec
import trio

from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.coderd.services.network.node_keys import keys_of_untrusted
from coder.coderd.store.engine.listening import RESYNC
from coder.coderd.store.network import replicas as store
from coder.domain.network.coordination import Coordination, Delivery, NodeKind, Update
from coder.domain.network.coordination_rules import CoordinatedNode, CoordinationRequest, FullAccess

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_MAX_NOTICE = 7900
"""Bytes of a notice; Postgres rejects 8000."""
_MAX_NODE = 64 << 10
"""Bytes of a node in a row: a thousand endpoints, and every region's latency, take half of it."""
_GONE = {NodeKind.LOST, NodeKind.DISCONNECTED}
_log = get_logger("replicas")


class CoordinatorMessage(msgspec.Struct, omit_defaults=True, frozen=True):
    """A notice between replicas. `number` keeps equal notices of one transaction apart, which Postgres would merge."""

    sender: UUID
    number: int
    word: str
    "here, tunnel, update, left, revoked, up, again, whole, bye; unknown words of an adjacent version are ignored."
    to: UUID | None = None
    "Receiving replica; None for all."
    peer: UUID | None = None
    other: UUID | None = None
    kind: int = 0
    reason: str = ""
    node: str = ""
    "Base64 of the protobuf; empty while the node is unknown."
    is_in_row: bool = False
    "Whether the node of `peer` is too large for a notice; its latest version is in the database then."


class _MessageFields(TypedDict, total=False):
    """Optional fields of a `CoordinatorMessage`."""

    to: UUID | None
    peer: UUID | None
    other: UUID | None
    kind: int
    reason: str
    node: str
    is_in_row: bool


class _Proxy:
    """A peer at another replica; stands in for a mailbox."""

    def __init__(self, bridge: Bridge, peer: UUID, home: UUID) -> None:
        self.bridge = bridge
        self.peer = peer
        self.home = home
        self.number = 0

    def send_nowait(self, delivery: Delivery) -> None:
        if delivery.end:
            self.bridge.remove_proxy(self)
        for update in delivery.updates:
            self.bridge.send_update(self, update)

    def close(self) -> None:
        self.bridge.remove_proxy(self)


class Mailbox(Protocol):
    """Receiver of a peer's deliveries: a channel, or the proxy of a peer at another replica."""

    def send_nowait(self, value: Delivery, /) -> None: ...

    def close(self) -> None: ...


class LocalCoordinator(Protocol):
    """Interface that the bridge needs of its coordinator."""

    core: Coordination
    mailboxes: dict[int, Mailbox]

    def deliver(self, deliveries: Iterable[Delivery]) -> None: ...


class Bridge:
    """Exchange of notices between this replica's coordinator and the others."""

    def __init__(self, ctx: Context, coordinator: LocalCoordinator, replica_id: UUID) -> None:
        self._ctx = ctx
        self._coordinator = coordinator
        self._id = replica_id
        self._proxies: dict[UUID, _Proxy] = {}
        self._others: set[UUID] = set()
        self._number = 0
        self._outbox: list[CoordinatorMessage] = []
        self._listed: dict[UUID, set[tuple[UUID, UUID]]] = {}
        """Tunnels listed so far, by replica that is resending its state."""
        self._wake = trio.Event()
        self.replica_started = trio.Event()
        """Set when another replica announces its start. The waiting task replaces it."""

    # ---- local events

    def peer_connected(self, peer: UUID) -> None:
        """Announce a peer that connected to this replica."""
        self._queue("here", peer=peer)

    def tunnel_requested(self, source: UUID, destination: UUID) -> None:
        """Announce a local peer's request for a tunnel."""
        if not self._is_ours(destination):
            self._queue("tunnel", peer=source, other=destination, node=_text(self._coordinator.core.node_of(source)))

    def peer_disconnected(self, peer: UUID) -> None:
        """Announce that a local peer disconnected and did not reconnect to this replica."""
        if not self._coordinator.core.is_present(peer):
            self._queue("left", peer=peer)

    def peer_revoked(self, peer: UUID, agents: Iterable[UUID]) -> None:
        """Announce that a lost peer may not use its earlier tunnels again, at any replica."""
        for agent in agents:
            self._queue("revoked", peer=peer, other=agent)

    def _is_ours(self, peer: UUID) -> bool:
        return peer not in self._proxies and self._coordinator.core.is_present(peer)

    def send_update(self, proxy: _Proxy, update: Update) -> None:
        """Send an update that a proxy received to the replica of its peer."""
        if self._proxies.get(update.peer) is not None:
            return  # both peers are remote: their own replicas exchange it
        self._queue(
            "update",
            to=proxy.home,
            peer=update.peer,
            other=proxy.peer,
            kind=int(update.kind),
            reason=update.reason,
            node=_text(update.node),
        )

    def remove_proxy(self, proxy: _Proxy) -> None:
        self._coordinator.mailboxes.pop(proxy.number, None)
        if self._proxies.get(proxy.peer) is proxy:
            del self._proxies[proxy.peer]

    # ---- other replicas

    def set_others(self, others: Iterable[UUID]) -> None:
        """Set the living replicas, according to their rows. Peers of dead replicas are lost."""
        now = set(others) - {self._id}
        for dead in self._others - now:
            self._listed.pop(dead, None)
            self._lose_replica(dead)
        joined = now - self._others
        self._others = now
        if joined:
            self.announce()

    def replica_ended(self, replica: UUID) -> None:
        """Lose the peers of a replica that is known to have ended."""
        self._others.discard(replica)
        self._listed.pop(replica, None)
        self._lose_replica(replica)

    async def publish_end_of(self, replica: UUID) -> None:
        """Announce a goodbye in the place of a replica that ended without one."""
        self._number += 1
        await self._publish([CoordinatorMessage(replica, self._number, "bye")])

    def announce(self) -> None:
        """Send this replica's state, and ask the others for theirs."""
        self._queue("up")
        self._send_state()

    def _send_state(self) -> None:
        self._queue("again")
        for source, destination in self._coordinator.core.tunnels():
            if self._is_ours(source):
                self.tunnel_requested(source, destination)
        self._queue("whole")

    def _remove_unlisted(self, replica: UUID) -> None:
        """Remove tunnels that the replica did not list: a removal was lost."""
        listed = self._listed.pop(replica, None)
        if listed is None:
            return  # its beginning was missed: a later resync covers it
        for source, destination in list(self._coordinator.core.tunnels()):
            proxy = self._proxies.get(source)
            if proxy is not None and proxy.home == replica and (source, destination) not in listed:
                self._receive_gone(proxy, destination, NodeKind.DISCONNECTED)

    def _lose_replica(self, replica: UUID) -> None:
        for proxy in [item for item in self._proxies.values() if item.home == replica]:
            self._drop(proxy, NodeKind.LOST)

    def _drop(self, proxy: _Proxy, kind: NodeKind) -> None:
        deliveries = self._coordinator.core.lose(proxy.number, kind)
        self._coordinator.core.take_left_behind(proxy.peer)  # its own replica knows its permissions
        self.remove_proxy(proxy)
        self._coordinator.deliver(deliveries)

    # ---- notices of other replicas

    async def listen(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with self._ctx.db.listen(store.CHANNEL) as notices:
            task_status.started()
            async for _channel, payload in notices:
                if payload == RESYNC:
                    self._listed.clear()  # tunnels may have been listed during the gap
                    self.announce()
                    continue
                try:
                    notice = msgspec.json.decode(payload, type=CoordinatorMessage)
                    if notice.sender != self._id and notice.to in {None, self._id}:
                        self._receive(await self._with_node(notice))
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    _log.warn("a notice of another replica cannot be read", error=error)

    async def _with_node(self, notice: CoordinatorMessage) -> CoordinatorMessage:
        """Return the notice with its node, which is read from the database when it concerns a local peer.

        The row has the peer's latest node, which may be newer than the notice. That is harmless: every node is sent.
        """
        if not notice.is_in_row or notice.peer is None or notice.other is None or not self._is_ours(notice.other):
            return notice
        try:
            body = await self._ctx.db.read(store.get_large_node, notice.peer)
        except Exception as error:
            # When the database is down, listening fails as well, and a resync follows.
            _log.warn("a node of another replica could not be read", peer=notice.peer, error=error)
            return notice
        return msgspec.structs.replace(notice, node=base64.b64encode(body or b"").decode())

    def _receive(self, notice: CoordinatorMessage) -> None:
        if notice.word == "bye":
            self.replica_ended(notice.sender)
            return
        self._others.add(notice.sender)
        if notice.word == "up":
            self.replica_started.set()
            self._send_state()
        elif notice.word == "again":
            self._listed[notice.sender] = set()
        elif notice.word == "whole":
            self._remove_unlisted(notice.sender)
        elif notice.peer is None:
            return
        elif notice.word == "here":
            self._receive_here(notice.peer)
        elif notice.word == "left":
            proxy = self._proxies.get(notice.peer)
            if proxy is not None and proxy.home == notice.sender:
                self._drop(proxy, NodeKind.LOST)
        elif notice.word == "revoked" and notice.other is not None:
            self._coordinator.deliver(self._coordinator.core.revoke(notice.peer, [notice.other]))
        elif notice.other is not None:
            self._receive_pair(notice, notice.peer, notice.other)

    def _receive_here(self, peer: UUID) -> None:
        coordinator = self._coordinator
        if self._is_ours(peer):
            coordinator.deliver(coordinator.core.displace(peer))  # the peer moved: its old connection is dead
        for source in coordinator.core.sources_of(peer):
            if self._is_ours(source):
                self.tunnel_requested(source, peer)

    def _receive_pair(self, notice: CoordinatorMessage, peer: UUID, other: UUID) -> None:
        if notice.word == "tunnel" and notice.sender in self._listed:
            self._listed[notice.sender].add((peer, other))
        if self._is_ours(peer) or not self._is_ours(other):
            return  # one of the two moved meanwhile
        node = _node(notice.node)
        if notice.word == "tunnel":
            proxy = self._proxy(peer, notice.sender)
            self._coordinator.core.retell(
                proxy.number, other
            )  # the asking replica does not know the node, even if it was sent
            self._handle(proxy, CoordinationRequest(node=node, add_tunnel=other))
        elif notice.word == "update" and notice.kind == NodeKind.NODE:
            self._handle(self._proxy(peer, notice.sender), CoordinationRequest(node=node))
        elif notice.word == "update":
            known = self._proxies.get(peer)
            if known is None or known.home != notice.sender:
                return
            if notice.kind == NodeKind.READY_FOR_HANDSHAKE:
                self._handle(known, CoordinationRequest(ready_for_handshake=(other,)))
            elif notice.kind in _GONE:
                self._receive_gone(known, other, NodeKind(notice.kind))

    def _receive_gone(self, proxy: _Proxy, other: UUID, kind: NodeKind) -> None:
        core = self._coordinator.core
        if other in core.sources_of(proxy.peer):
            self._drop(proxy, kind)  # an agent: its clients keep their tunnels until it reconnects
            return
        self._coordinator.deliver(core.part(proxy.number, other, kind))
        if not core.tunnels_to(proxy.peer):
            self._drop(proxy, kind)

    def _proxy(self, peer: UUID, home: UUID) -> _Proxy:
        known = self._proxies.get(peer)
        if known is not None and known.home == home:
            return known
        proxy = _Proxy(self, peer, home)
        proxy.number, deliveries = self._coordinator.core.connect(peer, FullAccess())
        if known is not None:
            self._coordinator.core.take_left_behind(peer)  # as in `_drop`
            self.remove_proxy(known)
        self._proxies[peer] = proxy
        self._coordinator.mailboxes[proxy.number] = proxy
        self._coordinator.deliver(deliveries)
        return proxy

    def _handle(self, proxy: _Proxy, request: CoordinationRequest) -> None:
        keys = request.node.keys if request.node is not None else ()
        if (holder := self._coordinator.core.holder_of(keys, proxy.peer)) is not None:
            # The peer's replica checked the shared table of keys: this is the same program under a new id.
            known = self._proxies.get(holder)
            if known is not None:
                self._drop(known, NodeKind.LOST)
            else:
                self._coordinator.deliver(self._coordinator.core.displace(holder))
        self._coordinator.deliver(self._coordinator.core.handle(proxy.number, request))

    # ---- sending

    def _queue(self, word: str, **values: Unpack[_MessageFields]) -> None:
        if not self._others and word != "up":
            return
        self._number += 1
        self._outbox.append(CoordinatorMessage(self._id, self._number, word, **values))
        self._wake.set()

    async def send_notices(self) -> None:
        """Send queued notices, one transaction after the other: notices must not overtake each other."""
        pause, lost = Backoff(1.0, 30.0), False
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            notices, self._outbox = self._outbox, []
            if await self._publish(notices):
                pause.reset()
                if lost:
                    lost = False
                    self.announce()
                continue
            # A removal has no other source; everything else is resent by the resync. Listening may still work, so the
            # others would not ask for it.
            lost, self._outbox = True, [*filter(_removes_state, notices), *self._outbox]
            self._wake.set()
            await trio.sleep(pause.next_delay())

    async def _publish(self, notices: list[CoordinatorMessage]) -> bool:
        texts = []
        nodes: dict[UUID, bytes] = {}
        for notice in notices:
            text = msgspec.json.encode(notice).decode()
            if len(text) > _MAX_NOTICE and notice.peer is not None:
                body = base64.b64decode(notice.node)
                if in_row := len(body) <= _MAX_NODE:
                    nodes[notice.peer] = body
                else:
                    _log.warn("a node is too large for other replicas", peer=notice.peer, size=len(body))
                    if notice.word != "tunnel":
                        continue
                    # The tunnel is announced without the node: an unlisted tunnel counts as removed.
                text = msgspec.json.encode(msgspec.structs.replace(notice, node="", is_in_row=in_row)).decode()
            texts.append(text)
        try:
            await self._ctx.db.run(store.publish, texts, nodes, self._ctx.clock.now())
        except Exception as error:
            _log.warn("notices for other replicas could not be sent", error=error)
            return False
        return True

    async def say_goodbye(self) -> None:
        """Announce that the server stops, so that others need not wait until its row is stale."""
        if self._others:
            self._number += 1
            await self._publish([*self._outbox, CoordinatorMessage(self._id, self._number, "bye")])


def _removes_state(notice: CoordinatorMessage) -> bool:
    return notice.word in {"left", "revoked"} or (notice.word == "update" and notice.kind in _GONE)


def _text(node: CoordinatedNode | None) -> str:
    return base64.b64encode(node.body).decode() if node is not None else ""


def _node(text: str) -> CoordinatedNode | None:
    if not text:
        return None
    body = base64.b64decode(text)
    return CoordinatedNode(body, keys=keys_of_untrusted(body))
