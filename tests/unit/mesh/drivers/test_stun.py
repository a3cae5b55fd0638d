"""The embedded STUN server and a round of requests, over loopback."""

import os
import shutil
import socket
from typing import Any

import pytest
import trio
import trio.testing

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.wire import stun
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.drivers.stun import StunRound, _Allowance, resolve, serve_stun
from coder.mesh.drivers.udp import DatagramSocket, Sent, equal_runs


async def read(sock: DatagramSocket) -> list[tuple[bytes, Address]]:
    received: list[tuple[bytes, Address]] = []

    def on_batch(buffer: bytearray, size: int, segment: int, source: Address) -> None:
        received.extend((bytes(buffer[at : min(at + segment, size)]), source) for at in range(0, size, segment))

    while not received:
        await trio.lowlevel.wait_readable(sock.sock)
        sock.drain(on_batch)
    return received


async def test_round_finds_observed_address() -> None:
    sock = DatagramSocket(socket.AF_INET, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        ports: Any = [await nursery.start(serve_stun, "127.0.0.1", 0) for _ in range(2)]
        round_ = StunRound(os.urandom, sock.send)
        seen: list[tuple[Address, Address]] = []

        async def reader() -> None:
            while True:
                for datagram, _ in await read(sock):
                    answer = round_.on_answer_untrusted(datagram)
                    if answer:
                        seen.append(answer)
                    assert round_.on_answer_untrusted(datagram) is None, "an answer counts once"

        nursery.start_soon(reader)
        await round_.ask([("127.0.0.1", port) for port in ports], [socket.AF_INET, socket.AF_INET6])
        assert sorted(seen) == [(("127.0.0.1", p), ("127.0.0.1", sock.port)) for p in sorted(ports)]
        nursery.cancel_scope.cancel()
    sock.close()


async def test_lost_requests_are_repeated(autojump_clock: trio.testing.MockClock) -> None:
    sent: list[float] = []
    round_ = StunRound(os.urandom, lambda data, to: sent.append(trio.current_time()))
    began = trio.current_time()
    await round_.ask([("192.0.2.1", 3478)], [socket.AF_INET])
    assert [round(at - began, 1) for at in sent] == [0.0, 0.2, 0.6, 1.4]
    assert trio.current_time() - began == 3.0


def stock_request(cookie: bytes, *attributes: bytes) -> bytes:
    body = b"".join(attributes)
    return b"\0\1" + len(body).to_bytes(2, "big") + cookie + b"twelve bytes" + body


async def test_foreign_clients_answered_up_to_rate(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """RFC 5389 without our attributes, RFC 3489 without a cookie; requests of another source are not answered."""
    source = UdpAddress("192.0.2.7", 4660)
    modern = stun.answer_any_untrusted(stock_request(b"\x21\x12\xa4\x42"), source)
    assert stun.parse_response_untrusted(modern) == stun.BindingResponse(b"twelve bytes", source)
    assert modern[20:32] == bytes.fromhex("0020000800013326e112a645"), "0x1234 ^ 0x2112 and so on"
    classic = stun.answer_any_untrusted(stock_request(b"\1\2\3\4"), source)
    assert classic == bytes.fromhex("0101000c01020304") + b"twelve bytes" + bytes.fromhex("0001000800011234c0000207")
    with pytest.raises(WireError):
        stun.answer_any_untrusted(stock_request(b"\1\2\3\4", bytes.fromhex("0003000400000006")), source)
    allowance = _Allowance()
    assert sum(allowance.take() for _ in range(1000)) == 200
    await trio.sleep(1)
    assert sum(allowance.take() for _ in range(1000)) == 100


STOCK = [["turnutils_stunclient", "-p", "PORT", "127.0.0.1"], ["stun", "127.0.0.1:PORT", "1"]]


@pytest.mark.parametrize("command", STOCK, ids=lambda command: command[0])
async def test_stock_client_gets_answer(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed (packages coturn, stun-client)")
    async with trio.open_nursery() as nursery:
        port: Any = await nursery.start(serve_stun, "127.0.0.1", 0)
        argv = [part.replace("PORT", str(port)) for part in command]
        with trio.fail_after(60):
            done = await trio.run_process(argv, capture_stdout=True, capture_stderr=True, check=False)
        assert done.returncode == 0
        assert b"127.0.0.1" in done.stdout or b"0x000000" in done.stdout
        nursery.cancel_scope.cancel()


async def test_server_answers_whole_requests_only() -> None:
    sock = DatagramSocket(socket.AF_INET, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        port: Any = await nursery.start(serve_stun, "", 0)
        foreign = stun.BindingRequest(bytes(12)).encode()[:20]
        for datagram in (b"x", foreign, stun.BindingRequest(b"twelve bytes").encode()):
            assert sock.send(datagram, ("127.0.0.1", port)) is Sent.YES
        ((answer, _),) = await read(sock)
        assert stun.parse_response_untrusted(answer) == stun.BindingResponse(
            b"twelve bytes",
            ("127.0.0.1", sock.port),  # type: ignore[arg-type]
        )
        with pytest.raises(WireError):
            StunRound(os.urandom, sock.send).on_answer_untrusted(b"no stun")
        nursery.cancel_scope.cancel()
    sock.close()


async def test_batches_with_and_without_offload() -> None:
    for offload in (True, False):
        one, two = (DatagramSocket(socket.AF_INET, host="127.0.0.1") for _ in range(2))
        if not offload:
            one.gso = two.gro = False
        batch = memoryview(b"".join(bytes([i]) * 100 for i in range(20)) + b"tail")
        assert one.send_batch(batch, 100, ("127.0.0.1", two.port)) is Sent.YES
        many = [b"a" * 10, b"b" * 10, b"c" * 7, b"d" * 30]
        assert one.send_many(many, ("127.0.0.1", two.port)) is Sent.YES
        received: list[bytes] = []
        while len(received) < 25:
            received += [datagram for datagram, _ in await read(two)]
        assert received == [bytes([i]) * 100 for i in range(20)] + [b"tail", *many]
        one.close()
        two.close()


def test_equal_runs() -> None:
    sizes = [5, 5, 3, 3, 3, 9, 2, 2]
    runs = equal_runs([bytes(size) for size in sizes])
    assert [[len(d) for d in run] for run in runs] == [[5, 5, 3], [3, 3], [9, 2], [2]]
    assert [len(run) for run in equal_runs([b"x"] * 100)] == [44, 44, 12]


async def test_unresolvable_names_are_no_servers() -> None:
    for host, port in (("x" * 300, 3478), ("127.0.0.1", 0), ("127.0.0.1", 70000)):
        assert await resolve(host, port, [socket.AF_INET, socket.AF_INET6]) == []
