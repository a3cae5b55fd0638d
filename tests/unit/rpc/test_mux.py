"""Waiting of a yamux session: tasks that wait are woken by whatever ends their wait, and output is not cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from google.protobuf.message import Message

from coder.net.stream_wrapper import StreamWrapper
from coder.rpc import drpc, mux, yamux
from coder.rpc.calls import Handlers, ServerStream, Unary, open_call
from coder.rpc.errors import RpcClosed
from coder.rpc.mux import Mux, open_mux
from coder.rpc.proto import agent_pb2
from coder.rpc.session import open_session
from coder.rpc.yamux import Flag, FrameType, YamuxFrame, encode_frame

BANNER = "/coder.agent.v2.Agent/GetServiceBanner"
MAPS = "/coder.tailnet.v2.Tailnet/StreamDERPMaps"


@asynccontextmanager
async def client_of_a_script() -> AsyncIterator[tuple[Mux, trio.abc.Stream]]:
    """Yield a client's session and the transport of its peer, which the test writes."""
    ours, theirs = trio.testing.memory_stream_pair()
    async with open_mux(ours, client=True) as session:
        yield session, theirs


def control(flags: Flag, stream: int, credit: int = 0) -> bytes:
    return encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, flags, stream, credit))


@pytest.mark.parametrize("end", [Flag.RST, Flag.FIN, Flag.ACK])
async def test_ended_stream_lets_next_one_open(end: Flag, autojump_clock: trio.testing.MockClock) -> None:
    """A peer with a full backlog resets streams instead of acknowledging them."""
    async with client_of_a_script() as (session, peer), trio.open_nursery() as nursery:
        streams = [await session.open_stream() for _ in range(yamux.BACKLOG)]
        await streams[0].aclose()
        opened: list[int] = []

        async def open_another() -> None:
            opened.append((await session.open_stream()).id)

        nursery.start_soon(open_another)
        await trio.testing.wait_all_tasks_blocked()
        assert not opened
        await peer.send_all(control(end, streams[0].id))
        await trio.testing.wait_all_tasks_blocked()
        assert opened == [streams[-1].id + 2]


async def test_session_end_ends_wait_to_open() -> None:
    async with client_of_a_script() as (session, peer), trio.open_nursery() as nursery:
        for _ in range(yamux.BACKLOG):
            await session.open_stream()

        async def open_another() -> None:
            with pytest.raises(RpcClosed, match="closed by the peer"):
                await session.open_stream()

        nursery.start_soon(open_another)
        await trio.testing.wait_all_tasks_blocked()
        await peer.aclose()


async def test_reset_of_half_closed_stream_ends_read(autojump_clock: trio.testing.MockClock) -> None:
    """A reader that ended its own direction, and whose peer never ends the other."""
    async with client_of_a_script() as (session, peer), trio.open_nursery() as nursery:
        stream = await session.open_stream()
        await peer.send_all(control(Flag.ACK, stream.id))
        await stream.send_eof()

        async def answer_pings() -> None:
            reader = yamux.YamuxFrameReader()
            while True:
                for frame in reader.receive_untrusted(bytes(await peer.receive_some())):
                    if frame.type is FrameType.PING:
                        await peer.send_all(encode_frame(YamuxFrame(FrameType.PING, Flag.ACK, 0, frame.length)))

        nursery.start_soon(answer_pings)
        with trio.fail_after(mux.CLOSE_TIMEOUT + 60), pytest.raises(trio.BrokenResourceError, match="reset here"):
            await stream.receive_some()
        assert not session.is_closed
        nursery.cancel_scope.cancel()


class SlowTransport(StreamWrapper):
    """Transport that takes nothing before `gate` is set."""

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        super().__init__(stream)
        self.gate = trio.Event()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.gate.wait()
        await self._stream.send_all(data)


class SlowQuickTransport(SlowTransport):
    """The same with writes that do not wait, of which the rest is left."""

    _rest = b""

    @property
    def may_send_now(self) -> bool:
        return not self._rest

    def send_now(self, data: bytes) -> bool:
        self._rest = data
        return False

    async def send_rest(self) -> None:
        await self.send_all(self._rest)
        self._rest = b""


@pytest.mark.parametrize("kind", [SlowTransport, SlowQuickTransport])
@pytest.mark.parametrize("size", [100, 100_000])
async def test_leaving_block_waits_for_started_write(
    kind: type[SlowTransport], size: int, autojump_clock: trio.testing.MockClock
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    transport = kind(ours)

    async def open_gate() -> None:
        await trio.sleep(mux._FLUSH_TIMEOUT / 2)
        transport.gate.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_gate)
        async with open_mux(transport, client=True) as session:
            stream = await session.open_stream()
            await stream.send_all(bytes(size))
            await trio.testing.wait_all_tasks_blocked()  # the write has begun
    frames = list(yamux.YamuxFrameReader().receive_untrusted(bytes(await theirs.receive_some())))
    assert sum(len(frame.body) for frame in frames) == size


@pytest.mark.parametrize("kind", [MAPS, BANNER])
async def test_cut_answer_ends_stream(kind: str) -> None:
    """The answer to a further call on the stream would continue the half of a message."""
    text = "x" * 2 * yamux.INITIAL_WINDOW

    async def get(_: Message) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner(message=text)

    async def send_map(_: Message, send: Callable[[Message], Awaitable[None]]) -> None:
        await send(agent_pb2.ServiceBanner(message=text))

    handlers: Handlers = {
        BANNER: Unary(get, agent_pb2.GetServiceBannerRequest),
        MAPS: ServerStream(send_map, agent_pb2.GetServiceBannerRequest),
    }
    ours, theirs = trio.testing.memory_stream_pair()
    async with (
        open_mux(ours, client=True) as client,
        open_session(theirs, "server") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, handlers)
        stream, call = await client.open_stream(), drpc.IncomingCall()
        for name in (kind, BANNER):
            call.invoke(name)
            call.send_message(b"")
            call.close_send()
            await stream.send_all(call.take_output())
            await trio.testing.wait_all_tasks_blocked()  # the answer fills the window
            call.close()
        received = bytearray()
        with trio.fail_after(60):
            while data := await stream.receive_some():
                received += data
        assert len(received) == yamux.INITIAL_WINDOW
        assert list(drpc.PacketReader().receive_untrusted(bytes(received))) == []
        nursery.cancel_scope.cancel()


async def test_cancelled_send_ends_call() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with open_mux(ours, client=True) as session, trio.open_nursery() as nursery:
        nursery.start_soon(theirs.receive_some)
        kind = agent_pb2.ServiceBanner
        async with open_call(await session.open_stream(), BANNER, kind, kind) as call:
            with trio.CancelScope() as scope:
                nursery.start_soon(cancel_when_blocked, scope)
                await call.send(kind(message="x" * 2 * yamux.INITIAL_WINDOW))
            assert scope.cancelled_caught
            with pytest.raises(RpcClosed, match="cut off"):
                await call.send(kind(message="next"))
        nursery.cancel_scope.cancel()


async def cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()
