"""The relay: forwards packets between nodes without a direct path.

Lives here: serving a connection after its HTTP upgrade, writing to receivers at once (`_deliver`) or when their sockets
are free again (`_write`, which closes connections that take nothing), and notices about clients that leave.
derp_server_client.py has a client's queues, in derp_server_queue.py's order; HTTP is the caller's; frames are
`core/wire/derp.py`. The relay routes by public key and cannot read the packets. Obeys docs/protocol/derp.md, "What a
relay does"; `tests/data/wire/derp.json` is the recorded conversation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from hmac import compare_digest
from random import random

import trio

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.core.wire import derp, derp_info, derp_reader
from coder.mesh.core.wire.disco import MAGIC as DISCO_MAGIC
from coder.mesh.drivers.derp_server_client import (
    ConnectedClient,
    FindKnown,
    FrameTurns,
    RelayCounters,
    RelayPresence,
    UnknownClients,
)
from coder.mesh.drivers.framing import (
    HEADER_SIZE,
    KEY_END,
    MAX_PACKET_BODY,
    READ_SIZE,
    FrameBuffer,
    RelayLink,
    limit_unsent,
)
from coder.mesh.drivers.pipe import pipe_pair
from coder.mesh.drivers.transport import DerpDialer, DerpTransport

LOGIN_TIMEOUT = 10.0
WRITE_TIMEOUT = 2.0
KEEPALIVE = 60.0
KEEPALIVE_JITTER = 5.0
BUSY_READ = 32 * 1024
"""Bytes read between two pauses."""
DIRECT_RECEIVERS = 8
"""Ours: receivers to whom a reader writes itself; if there are more, their writers do, so that its turn stays short."""
MIN_RECIPIENTS = 1024
"""Ours: a sender's memory of its receivers is cleaned of old ones when it grows beyond this and the connected ones."""

_MESH_FRAMES = {derp.WATCH_CONNS, derp.FORWARD_PACKET, derp.CLOSE_PEER}
_IGNORED_FRAMES = {derp.KEEP_ALIVE, derp.PONG}
"""Known frames without an effect here."""

Forward = Callable[[bytes, bytes, int], bool]
"""(destination key, RecvPacket frames, packets): sends them to the relay of the destination; False: it cannot."""


class DerpServer:
    """A relay. Create one per process, hand it upgraded streams, keep its private key across restarts.

    `mesh_key` (hex) admits other relays with the same key; `rate` limits each client's sending, in bytes a second after
    a `burst` (default: two seconds' worth); 0 sets no limit. With `find_known` the clients whose keys no coordinator
    knows have limits of their own (derp_server_client.py).
    """

    def __init__(
        self,
        private_key: PrivateKey,
        *,
        mesh_key: str = "",
        rate: int = 0,
        burst: int = 0,
        random_bytes: Callable[[int], bytes] = os.urandom,
        find_known: FindKnown | None = None,
    ) -> None:
        self.public_key = private_key.public
        self.counters = RelayCounters()
        self._private = private_key
        self._mesh_key = mesh_key
        self._rate = rate
        self._burst = burst or 2 * rate
        self._watchers: dict[ConnectedClient, None] = {}
        self._elsewhere: dict[bytes, Forward] = {}
        """Keys at other relays of the mesh."""
        self._random = random_bytes
        self._unknown = UnknownClients(find_known) if find_known is not None else None
        self._turns = FrameTurns()
        self._ready: dict[ConnectedClient, None] = {}
        """Receivers of packets that the reader of now has queued."""
        self._clients: dict[bytes, list[ConnectedClient]] = {}
        """Connections by key; the last of a list is the one that wrote last, and receives."""

    @property
    def tells_keys(self) -> bool:
        """Whether the relay distinguishes keys that a coordinator knows from others."""
        return self._unknown is not None

    def is_connected(self, key: PublicKey) -> bool:
        """Return whether a node with this key is connected."""
        return key in self._clients

    def presence(self) -> RelayPresence:
        """Count and return the connected clients."""
        homes = sum(client.preferred for peers in self._clients.values() for client in peers)
        elsewhere = len(self._elsewhere.keys() - self._clients.keys())
        return RelayPresence(len(self._clients), elsewhere, homes, len(self._watchers))

    def traffic(self) -> list[tuple[PublicKey, int, int]]:
        """Return (key, bytes sent to it, bytes received from it) of each open connection."""
        return [(client.key, client.bytes_out, client.bytes_in) for peers in self._clients.values() for client in peers]

    def disconnect_all(self) -> None:
        """Close every connection (the server shuts down)."""
        for clients in self._clients.values():
            for client in clients:
                client.scope.cancel()

    def in_memory_dialer(self, nursery: trio.Nursery) -> DerpDialer:
        """Return a dialer for a node in this process: no HTTP, no sockets; the nursery serves the connections."""

        async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
            await trio.lowlevel.checkpoint()
            client_end, server_end = pipe_pair()
            nursery.start_soon(self.serve_connection, server_end)
            return DerpTransport(client_end)

        return dial

    async def serve_connection(
        self,
        stream: trio.abc.Stream,
        leftover: bytes = b"",
        *,
        source: Hashable = None,
        on_known: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve DERP on a stream whose upgrade has been answered; return when the connection has ended.

        `leftover` are bytes that arrived together with the HTTP request. `source` (an address) has a share of the
        clients with unknown keys; None is a node of this process. `on_known` is called when a coordinator knows the
        key. The stream is closed in any case.
        """
        self.counters.connections += 1
        self.counters.current += 1
        limit_unsent(stream)
        try:
            inbox = FrameBuffer(stream, leftover)
            client = None
            with trio.move_on_after(LOGIN_TIMEOUT):
                client = await self._log_in(stream, inbox, source, on_known)
            if client is not None:
                client.link = inbox.link = RelayLink.of(stream)
                await self._serve(client, inbox)
        except (WireError, CryptoError, trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass  # the peer violated the protocol or left: only its connection ends
        finally:
            self.counters.current -= 1
            await trio.aclose_forcefully(stream)

    # -- one connection ---------------------------------------------------------------------------------------------
    async def _log_in(
        self, stream: trio.abc.Stream, inbox: FrameBuffer, source: Hashable, on_known: Callable[[], None]
    ) -> ConnectedClient:
        await stream.send_all(derp.ServerKey(self.public_key).encode())
        sealed = await inbox.frame()
        if not isinstance(sealed, derp.SealedClientInfo):
            raise WireError("unexpected_frame", "the first frame of a client is its info")
        shared = SharedBox(self._private, sealed.key)
        info = derp_info.open_client_info_untrusted(shared, sealed)
        limits = derp_info.ServerInfo(rate_bytes_per_second=self._rate, rate_burst_bytes=self._burst)
        answer = derp_info.seal_server_info(shared, self._random(NONCE_SIZE), limits)
        mesh = bool(self._mesh_key) and compare_digest(info.mesh_key.encode(), self._mesh_key.encode())
        client = ConnectedClient(sealed.key, stream, mesh=mesh, burst=self._burst, source=source, on_known=on_known)
        if self._unknown is None:
            client.is_known = True
        if client.is_known:
            on_known()
        elif self._unknown is not None and not await self._unknown.admit(client):
            self.counters.refused += 1
            raise WireError("too_many_clients", "too many clients with unknown keys from one source")
        # Sent once the client is registered, before anything else: a client that has read it can receive from others.
        client.put_control(answer.encode())
        return client

    async def _serve(self, client: ConnectedClient, inbox: FrameBuffer) -> None:
        # No checkpoint since it was admitted: it is forgotten below whatever happens.
        others = self._clients.setdefault(client.key, [])
        others.append(client)
        if len(others) == 1:
            self._notify_watchers(derp.PeerPresent(client.key).encode())
        try:
            async with trio.open_nursery() as nursery:
                client.scope = nursery.cancel_scope  # one of its own would be a kilobyte more
                nursery.start_soon(self._write, client)
                await self._read(client, inbox)
                nursery.cancel_scope.cancel()
        except* (WireError, CryptoError, trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass  # as in serve_connection; a nursery reports them as a group
        finally:
            self._remove(client)

    async def _read(self, client: ConnectedClient, inbox: FrameBuffer) -> None:
        buffer = inbox.buffer
        while True:
            limit = await self._turns.take()
            try:
                used, spent, is_more = self._process_frames(client, buffer, limit)
            finally:
                self._deliver()
            self._turns.spend(spent)
            del buffer[:used]
            client.bytes_in += used
            if not client.is_known and self._unknown is not None:
                work = max(spent, inbox.take_records(), 1)  # a read or a record of one byte costs as much as a frame
                self.counters.throttled += await self._unknown.hold(client, work, used)
            if self._rate and not client.mesh:
                await self._hold_to_rate(client, used)
            if is_more:
                await trio.lowlevel.checkpoint()
                continue
            most = READ_SIZE
            if client.busy is not None:
                await client.busy.wait_for_drain(client.key)
                client.busy, most = None, BUSY_READ
            if not await inbox.more(most):
                return

    async def _hold_to_rate(self, client: ConnectedClient, used: int) -> None:
        """Delay reading the client's next bytes until its allowance covers the last ones; TCP slows it down."""
        seconds = client.rate_delay(used, self._rate)
        if seconds:
            self.counters.throttled += 1
            await trio.sleep(seconds)

    def _process_frames(self, client: ConnectedClient, buffer: bytearray, limit: int) -> tuple[int, int, bool]:
        """Process at most `limit` frames; a run of packets to one peer is forwarded as one piece, and counts once.

        Returns (bytes used, frames counted, whether it stopped at the limit).
        """
        at, size, left = 0, len(buffer), limit
        run_start = run_packets = length = 0
        run_to = head = new_head = b""
        starts_with = buffer.startswith
        while left and size - at >= HEADER_SIZE:
            if run_packets and starts_with(head, at) and not starts_with(DISCO_MAGIC, at + KEY_END):
                # As the frame before: this loop sees every packet that is relayed.
                end = at + HEADER_SIZE + length
                if end > size:
                    break
                buffer[at : at + KEY_END] = new_head
                run_packets += 1
                at = end
                continue
            kind, length = derp.HEADER.unpack_from(buffer, at)
            if length > MAX_PACKET_BODY:
                raise WireError("frame_too_long")
            end = at + HEADER_SIZE + length
            if end > size:
                break
            if kind == derp.SEND_PACKET and length >= 32:
                to = bytes(buffer[at + HEADER_SIZE : at + KEY_END])
                is_disco = starts_with(DISCO_MAGIC, at + KEY_END)
                if to != run_to or is_disco:
                    left -= 1
                    self._forward(client, run_to, buffer, run_start, at, run_packets)
                    run_start, run_to, run_packets = at, to, 0
                # SendPacket and RecvPacket differ in the type and in the key, so the bytes are reused.
                head = bytes(buffer[at : at + KEY_END])
                new_head = derp.HEADER.pack(derp.RECV_PACKET, length) + client.key
                buffer[at : at + KEY_END] = new_head
                run_packets += 1
                if is_disco:
                    self._forward(client, to, buffer, at, end, 1, disco=True)
                    run_to, run_packets = b"", 0
            else:
                left -= 1
                self._forward(client, run_to, buffer, run_start, at, run_packets)
                run_to, run_packets = b"", 0
                self._on_frame(client, kind, bytes(buffer[at + HEADER_SIZE : end]))
            at = end
        self._forward(client, run_to, buffer, run_start, at, run_packets)
        return at, limit - left, not left

    def _forward(
        self,
        client: ConnectedClient,
        to: bytes,
        buffer: bytearray,
        start: int,
        end: int,
        packets: int,
        *,
        disco: bool = False,
    ) -> None:
        if not packets:
            return
        frames = bytes(memoryview(buffer)[start:end])
        counters = self.counters
        counters.received += packets
        counters.received_disco += packets * disco
        counters.bytes_received += len(frames)
        peers = self._clients.get(client.key)
        if peers is not None and peers[-1] is not client:  # the connection that wrote last is the active one
            peers.remove(client)
            peers.append(client)
        targets = self._clients.get(to)
        if targets is None:
            forward = self._elsewhere.get(to)
            if forward is not None and forward(to, frames, packets):
                counters.forwarded_out += packets
                return
            counters.dropped_unknown += packets
            counters.dropped_disco += packets * disco
            if disco and client.may_notify_gone(trio.current_time()):
                counters.notified_not_here += 1
                client.put_control(derp.PeerGone(PublicKey(to), derp.GONE_NOT_HERE).encode())
            return
        target = targets[-1]
        client.recipients.add(target.key)
        if len(client.recipients) > 2 * len(self._clients) + MIN_RECIPIENTS:
            client.recipients &= self._clients.keys()
        queue = target.disco if disco else target.data
        dropped = queue.push(client.key, packets, frames)
        counters.dropped_queue += dropped
        counters.dropped_disco += dropped * disco
        self._ready[target] = None
        if target.data.is_crowded_by(client.key):
            client.busy = target

    def _on_frame(self, client: ConnectedClient, kind: int, body: bytes) -> None:
        if kind == derp.PING:
            self.counters.pings += 1
            client.put_control(derp.DerpPong(body[:8]).encode())
        elif kind == derp.NOTE_PREFERRED:
            self._set_home(client, body[:1] == b"\1")
        elif kind == derp.SEND_PACKET:
            raise WireError("short_frame")
        elif kind in _MESH_FRAMES:
            if not client.mesh:
                raise WireError("not_permitted")
            self._on_mesh_frame(client, kind, body)
        elif kind not in _IGNORED_FRAMES:
            self.counters.unknown_frames += 1

    def _set_home(self, client: ConnectedClient, here: bool) -> None:
        if here != client.preferred:
            client.preferred = here
            self.counters.moves_in += here
            self.counters.moves_out += not here

    # -- the mesh of relays -----------------------------------------------------------------------------------------
    def add_remote_peer(self, key: bytes, forward: Forward) -> None:
        """Record a peer of another relay; packets for it go there while it is not connected here."""
        self._elsewhere[key] = forward

    def remove_remote_peer(self, key: bytes, forward: Forward) -> None:
        """Forget a peer that left the other relay, or whose relay was lost."""
        if self._elsewhere.get(key) == forward:  # not `is`: each access to a method makes another object
            del self._elsewhere[key]

    def _on_mesh_frame(self, client: ConnectedClient, kind: int, body: bytes) -> None:
        if kind == derp.WATCH_CONNS:
            self._watchers[client] = None
            for clients in self._clients.values():
                client.put_control(derp.PeerPresent(clients[-1].key).encode())
            return
        frame = derp_reader.parse_untrusted(kind, body)
        if isinstance(frame, derp.ClosePeer):
            for peer in self._clients.get(frame.key, ()):
                peer.scope.cancel()
        elif isinstance(frame, derp.ForwardPacket):
            # A forwarded packet is never forwarded again: two relays with a wrong entry would forward it in a loop.
            self.counters.forwarded_in += 1
            targets = self._clients.get(frame.destination)
            disco = frame.packet.startswith(DISCO_MAGIC)
            if targets is None:
                self.counters.dropped_unknown += 1
                self.counters.dropped_disco += disco
                return
            queue = targets[-1].disco if disco else targets[-1].data
            packet = derp.encode_recv_packet(frame.source, frame.packet)
            dropped = queue.push(frame.source, 1, packet)
            self.counters.dropped_queue += dropped
            self.counters.dropped_disco += dropped * disco
            self._ready[targets[-1]] = None

    def _notify_watchers(self, frame: bytes) -> None:
        for watcher in self._watchers:
            watcher.put_control(frame)

    async def _write(self, client: ConnectedClient) -> None:
        keepalive_at = trio.current_time() + KEEPALIVE + random() * KEEPALIVE_JITTER
        while True:
            with trio.move_on_at(keepalive_at):
                await client.wake.wait()
            client.wake = trio.Event()
            now = trio.current_time()
            if now >= keepalive_at:
                client.put_control(derp.KeepAlive().encode())
                keepalive_at = now + KEEPALIVE + random() * KEEPALIVE_JITTER
            while True:
                packets, frames = 0, b""
                if client.link is None or not client.link.is_full:
                    packets, frames = client.take()
                    if not frames:
                        break
                if client.link is not None:
                    is_taken = await client.link.send_steadily(frames, WRITE_TIMEOUT)
                else:
                    with trio.move_on_after(WRITE_TIMEOUT) as timer:
                        await client.stream.send_all(frames)
                    is_taken = not timer.cancelled_caught
                if not is_taken:
                    self.counters.slow_closed += 1
                    client.scope.cancel()
                    return
                self._count_written(client, packets, len(frames))

    def _deliver(self) -> None:
        """Write what a reader has queued for few receivers at once; their writers do what remains."""
        ready = self._ready
        is_direct = len(ready) <= DIRECT_RECEIVERS
        for client in ready:
            if client.link is None or client.link.is_full or not is_direct:
                client.wake.set()
                continue
            packets, frames = client.take()
            try:
                is_written = client.link.write_now(frames)
            except OSError:
                client.scope.cancel()  # it has left: the sender goes on
                continue
            self._count_written(client, packets, len(frames))
            if not is_written or client.has_more:
                client.wake.set()
        ready.clear()

    def _count_written(self, client: ConnectedClient, packets: int, size: int) -> None:
        client.wrote_at = trio.current_time()
        if client.drained:
            client.drained.unpark_all()
        self.counters.sent += packets
        self.counters.bytes_sent += size
        client.bytes_out += size

    def _remove(self, client: ConnectedClient) -> None:
        self._watchers.pop(client, None)
        if self._unknown is not None:
            self._unknown.forget(client)
        clients = self._clients[client.key]
        clients.remove(client)
        if clients:
            clients[-1].recipients |= client.recipients
            return
        del self._clients[client.key]
        notice = derp.PeerGone(client.key, derp.GONE_DISCONNECTED).encode()
        for key in client.recipients:
            for recipient in self._clients.get(key, ()):
                if recipient not in self._watchers:
                    self.counters.notified_disconnected += 1
                    recipient.put_control(notice)
        self._notify_watchers(notice)
