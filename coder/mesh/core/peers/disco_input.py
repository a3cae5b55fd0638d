"""Disco messages that arrived: whose they are, what they prove, and the answers that are owed at once.

Lives here: opening, and handing each message to the paths of the peer it belongs to.
Does not live here: what we say by ourselves (path_actions.py).
Obeys docs/protocol/disco.md, "Hearing".
"""

from __future__ import annotations

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.peermap import PeerMap
from coder.mesh.core.paths.probing import PingAnswered
from coder.mesh.core.peers.path_actions import PathActions
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.peers.sink import Sink
from coder.mesh.core.wire import disco
from coder.mesh.core.wire.address import UdpAddress

_PSEUDO_RELAY = "127.3.3.40"
"""Peers are told that we saw their relayed ping come from this address, the port being the region."""


class DiscoInput:
    """For all peers of one endpoint. `peers` are the endpoint's, by node key."""

    __slots__ = ("_actions", "_by_address", "_by_disco", "_direct", "_peers", "_sink")

    def __init__(
        self, peers: dict[bytes, Peer], by_address: PeerMap[Peer], actions: PathActions, sink: Sink, *, direct: bool
    ) -> None:
        self._peers = peers
        self._by_address = by_address
        self._actions = actions
        self._sink = sink
        self._direct = direct
        self._by_disco: dict[bytes, list[Peer]] = {}

    def add(self, peer: Peer, key: PublicKey) -> None:
        """From now on messages with this disco key are its."""
        self._by_disco.setdefault(key, []).append(peer)

    def remove(self, peer: Peer) -> None:
        """Messages with the disco key it is configured with are not its any more."""
        key = peer.config.disco_key
        others = self._by_disco[key]
        others.remove(peer)
        if not others:
            del self._by_disco[key]
        self._by_address.forget(peer)

    def receive(self, datagram: bytes, origin: Address | int, relayed_by: bytes, now: float) -> None:
        """A datagram from a UDP address (nobody relayed it), or from a region and the node key the relay names."""
        # A node without direct paths opens no socket; what is handed in as if one had received it is refused all the
        # same.
        if not self._direct and not relayed_by:
            return
        try:
            sender = disco.sender_untrusted(datagram)
            peers = self._by_disco.get(sender)
            # Several peers may claim one disco key. The box depends on that key and ours alone, so the first one's
            # opens for all.
            if not peers or peers[0].box is None:
                return
            message = disco.open_untrusted(peers[0].box, datagram)
        # Nothing is answered and nothing logged: whoever can send us datagrams could fill either.
        except (WireError, CryptoError):
            return
        # Which of several peers with one disco key pings, its own word decides: whoever has the key may speak for
        # each.
        peer = peers[0]
        if isinstance(message, disco.DiscoPing):
            claimed = self._peers.get(message.node_key)
            if claimed in peers:
                peer = claimed
            self._on_ping(peer, message, origin, now)
        elif isinstance(message, disco.DiscoPong):
            self._on_pong(peers, message, origin, now)
        # docs/protocol/disco.md: call-me-maybe is believed by relay only. The relay has proven whose node key sent
        # it; a UDP source has proven nothing yet.
        elif relayed_by:
            claimed = self._peers.get(relayed_by)
            if claimed in peers:
                self._actions.carry_out(claimed, claimed.paths.on_call_me_maybe(message.endpoints, now), now)

    def _on_ping(self, peer: Peer, ping: disco.DiscoPing, origin: Address | int, now: float) -> None:
        seen = (ping.tx_id, origin)
        # A ping that came by two ways is two pings; the same one twice from one address is a repeat by the network.
        if peer.last_ping == seen:
            return
        # The last one alone is remembered: a repeat behind another ping costs one more pong, and no harm.
        peer.last_ping = seen
        if isinstance(origin, int):
            pong = disco.DiscoPong(ping.tx_id, UdpAddress(_PSEUDO_RELAY, origin))
            # Back the way it came, not by the peer's home: the question was whether this region reaches us.
            self._sink.relay(origin, peer.config.public_key, [self._actions.seal(peer, pong)])
            return
        # The box has proved the sender. A recorded ping sent again from elsewhere would be learnt as well: it gains an
        # address from which WireGuard is looked at, and whatever comes from there has to open all the same.
        self._by_address.learn(origin, peer)
        # As large as the ping: what the peer measures is the path both ways (paths/mtu.py).
        self._sink.udp(
            [self._actions.seal(peer, disco.DiscoPong(ping.tx_id, UdpAddress(*origin), ping.payload))], origin
        )
        self._actions.carry_out(peer, peer.paths.on_ping(origin, now, ping.size), now)

    def _on_pong(self, peers: list[Peer], pong: disco.DiscoPong, origin: Address | int, now: float) -> None:
        # By relay there is no address to learn, only that the peer is alive and how far it is.
        source = None if isinstance(origin, int) else origin
        for peer in peers:
            # Twelve random bytes: only who opened our ping can name them, so the answer finds its peer by them alone.
            answer = peer.paths.on_pong(pong.tx_id, source, now, disco.ENVELOPE + pong.payload)
            if answer is False:
                continue
            if source is not None:
                # Proved by an answer to our own question, which a recorded packet cannot be.
                self._by_address.learn(source, peer)
            self._actions.settle(peer, now)
            if isinstance(answer, PingAnswered):
                self._sink.ping_answered(answer, peer.config.public_key, origin if source is None else 0)  # type: ignore[arg-type]
            return
