"""Coordination across replicas: an agent at one, its client at another.

Each replica's coordinator knows its own peers. Of a peer that is elsewhere it keeps a proxy: an ordinary peer of the
pure coordinator whose deliveries leave as notices to the replica where the real one is, and whose requests are notices
that came from there. So the rules of `domain/network/coordination.py` hold across replicas without knowing of them.

Who finds whom: a replica that is asked for a tunnel to a peer it does not have says so to all (`tunnel`), and the one
that has it answers with its node. A peer that arrives is announced (`here`); replicas with tunnels to it ask again.
Nothing is stored: a replica that missed notices asks all to say everything anew (`up`), and whoever says everything
also says when it begins and ends (`again`, `whole`): tunnels that were not among it are over. What takes something away
is kept until it has been said. A replica that dies is noticed by its row (`services/network/replicas.py`). With one
replica nothing is said at all.

Notices carry nodes (keys, addresses), which whoever reads the database may see; they are how machines are reached,
not secrets. Obeys nothing: the words are ours, and all replicas of a deployment are of one version or its neighbours.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol
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

_MOST_BYTES = 7900
"""Of one notice; Postgres refuses 8000."""
_MOST_NODE = 64 << 10
"""Bytes of a node that is told by a row: a thousand endpoints, and every region's figures, are half of it."""
_GONE = {NodeKind.LOST, NodeKind.DISCONNECTED}
_log = get_logger("replicas")


class CoordinatorMessage(msgspec.Struct, omit_defaults=True, frozen=True):
    """One word of the conversation. `number` keeps equal notices of one transaction apart: Postgres merges them."""

    sender: UUID
    number: int
    word: str
    "here, tunnel, update, left, revoked, up, again, whole, bye; unknown ones are passed over (a neighbour's version)"
    to: UUID | None = None
    "A replica; None: all."
    peer: UUID | None = None
    other: UUID | None = None
    kind: int = 0
    reason: str = ""
    node: str = ""
    "Base64 of the protobuf; empty: not known yet."
    is_in_row: bool = False
    "The node of `peer` fits no notice: the last one is in the database."


class _Proxy:
    """A peer that is at another replica. Takes the place of a mailbox."""

    def __init__(self, bridge: Bridge, peer: UUID, home: UUID) -> None:
        self.bridge = bridge
        self.peer = peer
        self.home = home
        self.number = 0

    def send_nowait(self, delivery: Delivery) -> None:
        if delivery.end:
            self.bridge.forget(self)
        for update in delivery.updates:
            self.bridge.tell_update(self, update)

    def close(self) -> None:
        self.bridge.forget(self)


class Live(Protocol):
    """What the bridge needs of the coordinator around it."""

    core: Coordination
    mailboxes: dict[int, Any]

    def hand_out(self, deliveries: Iterable[Delivery]) -> None: ...


class Bridge:
    """This replica's part of the conversation."""

    def __init__(self, ctx: Context, live: Live, replica_id: UUID) -> None:
        self._ctx = ctx
        self._live = live
        self._id = replica_id
        self._proxies: dict[UUID, _Proxy] = {}
        self._others: set[UUID] = set()
        self._number = 0
        self._waiting: list[CoordinatorMessage] = []
        self._said: dict[UUID, set[tuple[UUID, UUID]]] = {}
        """Of replicas that are saying everything: the tunnels they have named."""
        self._wake = trio.Event()
        self.newcomer = trio.Event()
        """Another replica said that it is up. Whoever waits for it puts a new one here."""

    # ---- what happened here

    def arrived(self, peer: UUID) -> None:
        """A peer connected to this replica."""
        self._say("here", peer=peer)

    def wants(self, source: UUID, destination: UUID) -> None:
        """A peer of ours asked for a tunnel."""
        if not self._is_ours(destination):
            self._say("tunnel", peer=source, other=destination, node=_text(self._live.core.node_of(source)))

    def left(self, peer: UUID) -> None:
        """A peer of ours is gone, and has not come back here."""
        if not self._live.core.is_present(peer):
            self._say("left", peer=peer)

    def revoked(self, peer: UUID, agents: Iterable[UUID]) -> None:
        """A peer that was lost may not come back by the tunnels it left behind, wherever its agents are."""
        for agent in agents:
            self._say("revoked", peer=peer, other=agent)

    def _is_ours(self, peer: UUID) -> bool:
        return peer not in self._proxies and self._live.core.is_present(peer)

    def tell_update(self, proxy: _Proxy, update: Update) -> None:
        """Something our proxy was told, for the one it stands for."""
        if self._proxies.get(update.peer) is not None:
            return  # of two proxies each has its own replica
        self._say(
            "update",
            to=proxy.home,
            peer=update.peer,
            other=proxy.peer,
            kind=int(update.kind),
            reason=update.reason,
            node=_text(update.node),
        )

    def forget(self, proxy: _Proxy) -> None:
        self._live.mailboxes.pop(proxy.number, None)
        if self._proxies.get(proxy.peer) is proxy:
            del self._proxies[proxy.peer]

    # ---- other replicas

    def set_others(self, others: Iterable[UUID]) -> None:
        """Those that live, by their rows. What the dead had is lost."""
        now = set(others) - {self._id}
        for dead in self._others - now:
            self._said.pop(dead, None)
            self._lose(dead)
        fresh = now - self._others
        self._others = now
        if fresh:
            self.announce()

    def announce(self) -> None:
        """Says everything anew, and asks the others to."""
        self._say("up")
        self._repeat()

    def _repeat(self) -> None:
        self._say("again")
        for source, destination in self._live.core.tunnels():
            if self._is_ours(source):
                self.wants(source, destination)
        self._say("whole")

    def _end_unsaid(self, replica: UUID) -> None:
        """The replica has named all tunnels of its peers: those here that were not among them have lost their right, or
        their source, and the word of it was lost."""
        said = self._said.pop(replica, None)
        if said is None:
            return  # its beginning was missed: it will be asked again
        for source, destination in list(self._live.core.tunnels()):
            proxy = self._proxies.get(source)
            if proxy is not None and proxy.home == replica and (source, destination) not in said:
                self._hear_gone(proxy, destination, NodeKind.DISCONNECTED)

    def _lose(self, replica: UUID) -> None:
        for proxy in [one for one in self._proxies.values() if one.home == replica]:
            self._drop(proxy, NodeKind.LOST)

    def _drop(self, proxy: _Proxy, kind: NodeKind) -> None:
        deliveries = self._live.core.lose(proxy.number, kind)
        self._live.core.take_left_behind(proxy.peer)  # its own replica knows what it may
        self.forget(proxy)
        self._live.hand_out(deliveries)

    # ---- what others say

    async def listen(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with self._ctx.db.listen(store.CHANNEL) as notices:
            task_status.started()
            async for _channel, payload in notices:
                if payload == RESYNC:
                    self._said.clear()  # what is missing now may have been named in between
                    self.announce()
                    continue
                try:
                    notice = msgspec.json.decode(payload, type=CoordinatorMessage)
                    if notice.sender != self._id and notice.to in {None, self._id}:
                        self._hear(await self._with_node(notice))
                except (msgspec.MsgspecError, ValueError) as error:
                    _log.warn("a notice of another replica cannot be read", error=error)

    async def _with_node(self, notice: CoordinatorMessage) -> CoordinatorMessage:
        """The notice with the node it speaks of, read where that concerns a peer of ours.

        The last one of a peer is there, which is as good as the one that was meant: all of them are told in the end.
        """
        if not notice.is_in_row or notice.peer is None or notice.other is None or not self._is_ours(notice.other):
            return notice
        try:
            body = await self._ctx.db.read(store.get_large_node, notice.peer)
        except Exception as error:
            # A database that is away cuts listening, too, and everything is said anew.
            _log.warn("a node that another replica told could not be read", peer=notice.peer, error=error)
            return notice
        return msgspec.structs.replace(notice, node=base64.b64encode(body or b"").decode())

    def _hear(self, notice: CoordinatorMessage) -> None:
        if notice.word == "bye":
            self._others.discard(notice.sender)
            self._said.pop(notice.sender, None)
            self._lose(notice.sender)
            return
        self._others.add(notice.sender)
        if notice.word == "up":
            self.newcomer.set()
            self._repeat()
        elif notice.word == "again":
            self._said[notice.sender] = set()
        elif notice.word == "whole":
            self._end_unsaid(notice.sender)
        elif notice.peer is None:
            return
        elif notice.word == "here":
            self._hear_here(notice.peer)
        elif notice.word == "left":
            proxy = self._proxies.get(notice.peer)
            if proxy is not None and proxy.home == notice.sender:
                self._drop(proxy, NodeKind.LOST)
        elif notice.word == "revoked" and notice.other is not None:
            self._live.hand_out(self._live.core.revoke(notice.peer, [notice.other]))
        elif notice.other is not None:
            self._hear_of_two(notice, notice.peer, notice.other)

    def _hear_here(self, peer: UUID) -> None:
        live = self._live
        if self._is_ours(peer):
            live.hand_out(
                live.core.displace(peer)
            )  # it went elsewhere, and its old connection is not worth waiting for
        for source in live.core.sources_of(peer):
            if self._is_ours(source):
                self.wants(source, peer)

    def _hear_of_two(self, notice: CoordinatorMessage, peer: UUID, other: UUID) -> None:
        if notice.word == "tunnel" and notice.sender in self._said:
            self._said[notice.sender].add((peer, other))
        if self._is_ours(peer) or not self._is_ours(other):
            return  # one of them has moved meanwhile
        node = _node(notice.node)
        if notice.word == "tunnel":
            proxy = self._proxy(peer, notice.sender)
            self._live.core.retell(proxy.number, other)  # who asks does not know, whatever we said before
            self._do(proxy, CoordinationRequest(node=node, add_tunnel=other))
        elif notice.word == "update" and notice.kind == NodeKind.NODE:
            self._do(self._proxy(peer, notice.sender), CoordinationRequest(node=node))
        elif notice.word == "update":
            known = self._proxies.get(peer)
            if known is None or known.home != notice.sender:
                return
            if notice.kind == NodeKind.READY_FOR_HANDSHAKE:
                self._do(known, CoordinationRequest(ready_for_handshake=(other,)))
            elif notice.kind in _GONE:
                self._hear_gone(known, other, NodeKind(notice.kind))

    def _hear_gone(self, proxy: _Proxy, other: UUID, kind: NodeKind) -> None:
        core = self._live.core
        if other in core.sources_of(proxy.peer):
            self._drop(proxy, kind)  # an agent: its clients keep their tunnels until it comes back
            return
        self._live.hand_out(core.part(proxy.number, other, kind))
        if not core.tunnels_to(proxy.peer):
            self._drop(proxy, kind)

    def _proxy(self, peer: UUID, home: UUID) -> _Proxy:
        found = self._proxies.get(peer)
        if found is not None and found.home == home:
            return found
        made = _Proxy(self, peer, home)
        made.number, deliveries = self._live.core.connect(peer, FullAccess())
        if found is not None:
            self._live.core.take_left_behind(peer)  # as in `_drop`
        if found is not None:
            self.forget(found)
        self._proxies[peer] = made
        self._live.mailboxes[made.number] = made
        self._live.hand_out(deliveries)
        return made

    def _do(self, proxy: _Proxy, request: CoordinationRequest) -> None:
        keys = request.node.keys if request.node is not None else ()
        if (holder := self._live.core.holder_of(keys, proxy.peer)) is not None:
            # Its replica asked the table of keys, which all share: the same program under a new id.
            known = self._proxies.get(holder)
            if known is not None:
                self._drop(known, NodeKind.LOST)
            else:
                self._live.hand_out(self._live.core.displace(holder))
        self._live.hand_out(self._live.core.handle(proxy.number, request))

    # ---- speaking

    def _say(self, word: str, **values: Any) -> None:
        if not self._others and word != "up":
            return
        self._number += 1
        self._waiting.append(CoordinatorMessage(self._id, self._number, word, **values))
        self._wake.set()

    async def speak(self) -> None:
        """Sends what is said, one transaction after the other: notices must not overtake each other."""
        pause, lost = Backoff(1.0, 30.0), False
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            notices, self._waiting = self._waiting, []
            if await self._publish(notices):
                pause.reset()
                if lost:
                    lost = False
                    self.announce()
                continue
            # An end has nobody else to say it; the rest is said anew once something can be said. Listening need not
            # have failed, too.
            lost, self._waiting = True, [*filter(_takes_away, notices), *self._waiting]
            self._wake.set()
            await trio.sleep(pause.next_delay())

    async def _publish(self, notices: list[CoordinatorMessage]) -> bool:
        texts = []
        nodes: dict[UUID, bytes] = {}
        for notice in notices:
            text = msgspec.json.encode(notice).decode()
            if len(text) > _MOST_BYTES and notice.peer is not None:
                body = base64.b64decode(notice.node)
                if fits := len(body) <= _MOST_NODE:
                    nodes[notice.peer] = body
                else:
                    _log.warn("a node is too large to be told to other replicas", peer=notice.peer, size=len(body))
                    if notice.word != "tunnel":
                        continue
                    # That there is one is said all the same: what is not named is taken for ended.
                text = msgspec.json.encode(msgspec.structs.replace(notice, node="", is_in_row=fits)).decode()
            texts.append(text)
        try:
            await self._ctx.db.run(store.publish, texts, nodes, self._ctx.clock.now())
        except Exception as error:
            _log.warn("other replicas were not told", error=error)
            return False
        return True

    async def say_goodbye(self) -> None:
        """The server stops: others need not wait for its row to grow old."""
        if self._others:
            self._number += 1
            await self._publish([*self._waiting, CoordinatorMessage(self._id, self._number, "bye")])


def _takes_away(notice: CoordinatorMessage) -> bool:
    return notice.word in {"left", "revoked"} or (notice.word == "update" and notice.kind in _GONE)


def _text(node: CoordinatedNode | None) -> str:
    return base64.b64encode(node.body).decode() if node is not None else ""


def _node(text: str) -> CoordinatedNode | None:
    if not text:
        return None
    body = base64.b64decode(text)
    return CoordinatedNode(body, keys=keys_of_untrusted(body))
