"""Two whole nodes in one process: real sockets on loopback, a relay in memory."""

import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any, cast

import pytest
import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.stack.errors import StackError
from coder.mesh.description import OverlayAddress
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.overlay import UdpFlow
from coder.mesh.drivers.pipe import pipe_pair
from coder.mesh.errors import UnknownPeerError, UnreachableError
from coder.mesh.node import Node, NodeConfig, PeerConfig, TcpStream, open_node
from tests.kit.network.overlay_pair import REGION, Pair, address, dial_bare, introduce, node_pair, one_region

BIG = 10_000_000


async def connect(pair: Pair, port: int, to: OverlayAddress | None = None) -> tuple[TcpStream, TcpStream]:
    """Return (one's end, two's end) of a connection from one to two."""
    listener = pair.two.tcp_listen(port)
    ours = await pair.one.tcp_connect(to or pair.addresses[1], port)
    theirs = await listener.accept()
    await listener.aclose()
    return ours, theirs


async def transfer(source: TcpStream, sink: TcpStream, size: int) -> None:
    """Send `size` random bytes and finish that direction; both ends must agree."""
    sent, received = hashlib.sha256(), hashlib.sha256()

    async def send() -> None:
        left = size
        while left:
            chunk = os.urandom(min(left, 300_000))
            sent.update(chunk)
            await source.send_all(chunk)
            left -= len(chunk)
        await source.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        total = 0
        while data := await sink.receive_some():
            received.update(data)
            total += len(data)
    assert total == size
    assert sent.digest() == received.digest()


async def become_direct(node: Node, to: IPv6Address | IPv4Address) -> None:
    with trio.fail_after(60):
        while (await node.ping(cast("Any", to))).via != "direct":
            await trio.sleep(0.01)


async def test_bulk_each_way_by_relay() -> None:
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair:
            ours, theirs = await connect(pair, 80)
            await transfer(ours, theirs, BIG)
            await transfer(theirs, ours, BIG)
            answer = await pair.one.ping(pair.addresses[1])
            assert (answer.via, answer.region, answer.region_code) == ("relay", REGION, "coder")
            (status,) = pair.one.status().peers
            assert status.path == "relayed"
            assert status.direct_bytes == 0
            assert status.relayed_bytes > BIG
            assert pair.one.self_info.endpoints == ()


async def test_bulk_each_way_by_direct_path() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            ours, theirs = await connect(pair, 80)
            await ours.send_all(b"the first byte does not wait for any probing")
            assert await theirs.receive_some()
            await become_direct(pair.one, pair.addresses[1])
            await become_direct(pair.two, pair.addresses[0])
            await transfer(ours, theirs, BIG)
            await transfer(theirs, ours, BIG)
            (status,) = pair.two.status().peers
            assert status.path == "direct"
            assert status.direct_bytes > BIG
            assert status.relayed_bytes < 1_000_000


async def test_overlay_carries_ipv4() -> None:
    """Nodes with an address of both families, dialled, pinged and written to by the IPv4 address."""
    mine, theirs = IPv4Address("100.64.0.1"), IPv4Address("100.64.0.2")
    relay = DerpServer(PrivateKey(bytes([9]) * 32))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            dial = relay.in_memory_dialer(nursery)
            async with (
                open_node(NodeConfig((address(1), mine), one_region(), dial, direct=False)) as one,
                open_node(NodeConfig((theirs,), one_region(), dial, direct=False)) as two,
            ):
                while not (one.self_info.preferred_derp and two.self_info.preferred_derp):
                    await trio.testing.wait_all_tasks_blocked()
                introduce(one, two)
                introduce(two, one)
                assert await one.wait_reachable(theirs) < 5
                assert await two.wait_reachable(mine) < 5
                assert one.status().peers[0].addresses == (theirs,)
                assert two.status().peers[0].addresses == (address(1), mine)
                ours, others = await connect(Pair(one, two, relay), 80, theirs)
                await transfer(ours, others, 300_000)
                await transfer(others, ours, 300_000)
                inbox, outbox = two.udp_bind(53), one.udp_bind()
                outbox.send(b"question", theirs, 53)
                question = await inbox.receive()
                assert question.payload == b"question"
                inbox.send(b"answer", mine, question.source_port)
                assert (await outbox.receive()).payload == b"answer"
                key = two.self_info.public_key
                for wrong in ("100.64.0.0/24", "fd7a::/64", "nonsense"):
                    assert not one.set_peer(PeerConfig(key, key, (wrong,)))
            nursery.cancel_scope.cancel()


async def test_reachability_and_peer_addresses() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            assert await pair.one.wait_reachable(pair.addresses[1]) < 5
            assert pair.one.last_handshake(pair.two.self_info.public_key) is not None
            assert pair.one.peers() == [pair.two.self_info.public_key]
            answer = await pair.one.ping(pair.two.self_info.public_key)
            assert answer.latency_s < 5
            with pytest.raises(UnknownPeerError):
                await pair.one.tcp_connect(address(77), 80)
            with pytest.raises(UnknownPeerError):
                await pair.one.wait_reachable(address(77))
            with pytest.raises(UnknownPeerError):
                await pair.one.ping(PrivateKey(bytes([7]) * 32).public)
            pair.two.remove_peer(pair.one.self_info.public_key)
            with pytest.raises(UnreachableError):
                await pair.one.ping(pair.addresses[1], timeout=0.3)
            pair.one.remove_peer(pair.two.self_info.public_key)
            assert pair.one.peers() == []


async def test_removed_peer_ends_wait_reachable() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            pair.two.remove_peer(pair.one.self_info.public_key)
            async with trio.open_nursery() as nursery:

                async def wait() -> None:
                    with pytest.raises(UnreachableError):
                        await pair.one.wait_reachable(pair.addresses[1])

                nursery.start_soon(wait)
                await trio.sleep(0.1)
                pair.one.remove_peer(pair.two.self_info.public_key)


async def test_refused_ports_and_half_close() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            with pytest.raises(UnreachableError):
                await pair.one.tcp_connect(pair.addresses[1], 9)
            ours, theirs = await connect(pair, 80)
            await ours.send_all(b"question")
            await ours.send_eof()
            assert await theirs.receive_some() == b"question"
            assert await theirs.receive_some() == b""
            await theirs.send_all(b"answer")
            await theirs.aclose()
            assert await ours.receive_some() == b"answer"
            assert await ours.receive_some() == b""
            await ours.aclose()
            with pytest.raises(trio.ClosedResourceError):
                await ours.send_all(b"x")
            ours, theirs = await connect(pair, 80)
            ours.abort()
            with pytest.raises(trio.BrokenResourceError):
                await theirs.receive_some()
            with pytest.raises(StackError):
                pair.one.tcp_listen(81), pair.one.tcp_listen(81)


async def test_slow_reader_slows_its_writer() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            ours, theirs = await connect(pair, 80)
            with trio.move_on_after(0.3):
                while True:
                    await ours.send_all(bytes(200_000))
            assert ours.stats.sent < 20_000_000
            received = 0
            while received < ours.stats.sent:
                received += len(await theirs.receive_some(100_000))


class Strange(trio.abc.HalfCloseableStream):
    """A stream that raises an unexpected error."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        raise RuntimeError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        raise RuntimeError

    async def wait_send_all_might_not_block(self) -> None: ...

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


async def test_unbound_ports_are_forwarded() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            dialled = []

            async def forward(port: int) -> trio.abc.HalfCloseableStream | None:
                dialled.append(port)
                if port == 8080:
                    near, far = pipe_pair()
                    nursery.start_soon(echo, far)
                    return near
                if port == 8081:
                    raise OSError("connection refused")
                if port == 8083:
                    raise KeyError("a mistake of the application")
                return Strange() if port == 8084 else None

            async def echo(stream: trio.abc.HalfCloseableStream) -> None:
                while data := await stream.receive_some():
                    await stream.send_all(data.upper())
                await stream.send_eof()

            pair.two.set_tcp_forward(forward)
            async with trio.open_nursery() as nursery:
                stream = await pair.one.tcp_connect(pair.addresses[1], 8080)
                await stream.send_all(b"hello")
                assert await stream.receive_some() == b"HELLO"
                await stream.send_eof()
                assert await stream.receive_some() == b""
                for refused in (8081, 8082, 8083):
                    with pytest.raises(UnreachableError):
                        await pair.one.tcp_connect(pair.addresses[1], refused)
                stream = await pair.one.tcp_connect(pair.addresses[1], 8084)
                with pytest.raises(trio.BrokenResourceError):
                    await stream.receive_some()
            assert dialled == [8080, 8081, 8082, 8083, 8084]


async def test_udp_sockets_and_forwards() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            served = pair.two.udp_bind(53)
            asking = pair.one.udp_bind()
            asking.send(b"bound?", pair.addresses[1], 53)
            datagram = await served.receive()
            assert datagram.payload == b"bound?"
            served.send(b"yes", IPv6Address(datagram.source), datagram.source_port)
            assert (await asking.receive()).payload == b"yes"

            async def forward(flow: UdpFlow) -> None:
                while (payload := await flow.receive()) != b"bye":
                    flow.send(b"%d:" % flow.port + payload)

            pair.two.set_udp_forward(forward)
            for payload in (b"one", b"two"):
                asking.send(payload, pair.addresses[1], 5353)
                answer = await asking.receive()
                assert (answer.payload, answer.source_port) == (b"5353:" + payload, 5353)
            asking.send(b"bye", pair.addresses[1], 5353)
            asking.close()
            with pytest.raises(trio.ClosedResourceError):
                await asking.receive()


async def test_self_info_changes_deliver_latest() -> None:
    with trio.fail_after(60):
        async with node_pair() as pair:
            with pair.one.self_changed() as changes:
                while not pair.one.self_info.endpoints:
                    await changes.receive()
                info = pair.one.self_info
                assert info.preferred_derp == REGION
                assert info.addresses == (address(1),)
                assert all(endpoint.port in pair.one.status().udp_ports for endpoint in info.endpoints)
            pair.one.set_derp_map(type(pair.one._config.derp_map)())
            assert pair.one.self_info.preferred_derp == 0


async def test_home_is_published_before_latencies() -> None:
    """Each state is published once: the first choice, then the nearer relay with the measurements."""
    measured = trio.Event()

    async def probe(region: DerpRegion, _node: DerpNode, /) -> float:
        await measured.wait()
        return 0.05 if region.embedded_relay else 0.01

    far = one_region().regions[REGION]
    near = replace(far, region_id=7, nodes=(replace(far.nodes[0], region_id=7),), embedded_relay=False)
    derp_map = DerpMap({7: near, REGION: replace(far, embedded_relay=True)})
    config = NodeConfig((address(1),), derp_map, dial_bare, latency_probe=probe, direct=False)
    with trio.fail_after(60):
        async with open_node(config) as node:
            with node.self_changed() as changes:
                infos = [node.self_info] if node.self_info.preferred_derp else [await changes.receive()]
                measured.set()
                infos.append(await changes.receive())
    assert [(info.preferred_derp, dict(info.derp_latency)) for info in infos] == [
        (REGION, {}),
        (7, {f"{REGION}-v4": 0.05, "7-v4": 0.01}),
    ]


async def test_connections_survive_relay_restart() -> None:
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair:
            ours, theirs = await connect(pair, 80)
            for number in range(3):
                pair.relay.disconnect_all()
                await ours.send_all(b"still here %d" % number)
                assert await theirs.receive_some() == b"still here %d" % number


async def test_invalid_peer_fields_are_ignored() -> None:
    with trio.fail_after(60):
        async with node_pair(endpoints=False) as pair:
            info = pair.two.self_info
            pair.one.set_peer(
                PeerConfig(
                    info.public_key,
                    info.disco_key,
                    (f"{pair.addresses[1]}/128",),
                    REGION,
                    ("not an endpoint", "192.0.2.1:99999"),
                    keepalive=True,
                )
            )
            await pair.one.wait_reachable(pair.addresses[1])
            good, bad = info.public_key, PublicKey(bytes(32))
            assert not pair.one.set_peer(PeerConfig(good, info.disco_key, ("fd7a::/64",), REGION))
            assert not pair.one.set_peer(PeerConfig(bad, info.disco_key, ("fd7a::7",), REGION))
            assert pair.one.peers() == [good]


async def test_trace_records_path_events() -> None:
    facts: list[tuple[str, Mapping[str, object]]] = []
    with trio.fail_after(60):
        async with node_pair(trace=lambda fact, fields: facts.append((fact, fields))) as pair:
            await pair.one.wait_reachable(pair.addresses[1])
            await become_direct(pair.one, pair.addresses[1])
    names = [fact for fact, _ in facts]
    assert {"relay", "handshake", "path", "pong"} <= set(names)
    key = pair.two.self_info.public_key.hex()
    assert any(fact == "path" and fields["state"] == "direct" and fields["peer"] == key for fact, fields in facts)


async def test_block_error_is_raised_unwrapped() -> None:
    with pytest.raises(KeyError):
        async with open_node(NodeConfig((address(1),), one_region("127.0.0.1", 9), dial_bare)):
            raise KeyError("mine")


async def test_node_failure_reaches_caller() -> None:
    """A Cancelled raised instead would be absorbed by the outer nursery, and the failure lost."""

    async def fail() -> None:
        raise RuntimeError("the node's own")

    with trio.fail_after(60), pytest.raises(BaseExceptionGroup) as caught:
        async with (
            trio.open_nursery(),
            open_node(NodeConfig((address(1),), one_region("127.0.0.1", 9), dial_bare)) as node,
        ):
            node._nursery.start_soon(fail)
            await trio.sleep_forever()
    assert caught.group_contains(RuntimeError, match="the node's own")


async def test_reader_of_replaced_socket_ends() -> None:
    """An address is removed after a datagram woke the reader and before the reader runs: its socket is closed."""
    async with open_node(NodeConfig((address(1),), one_region("127.0.0.1", 9), dial_bare)) as node:
        pump = node._pump
        old = pump.sockets[socket.AF_INET]
        await trio.testing.wait_all_tasks_blocked()

        class MoveWhenWoken(trio.abc.Instrument):
            def before_task_step(self, task: trio.lowlevel.Task) -> None:
                if pump.sockets[socket.AF_INET] is old and task.name.endswith("Pump._read"):
                    pump.reopen_sockets()

        instrument = MoveWhenWoken()
        trio.lowlevel.add_instrument(instrument)
        with trio.fail_after(60), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", ("127.0.0.1", old.port))
            while pump.sockets[socket.AF_INET] is old:
                await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(instrument)
        await trio.testing.wait_all_tasks_blocked()
        assert old.sock.fileno() == -1
