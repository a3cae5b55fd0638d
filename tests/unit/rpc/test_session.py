"""Sessions over an in-memory connection: calls, streams, endings, pings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from coder.base.errors import DATABASE_AWAY, DATABASE_FULL, DATABASE_OUTAGES, OUTCOME_UNKNOWN, CoderError
from coder.base.retry import SECOND_LOOK
from coder.rpc import drpc, inbox, mux, mux_stream, session, yamux
from coder.rpc.calls import Bidi, Handlers, ServerStream, Unary, call_unary
from coder.rpc.errors import RpcClosed, RpcError, unimplemented
from coder.rpc.inbox import BufferedBytes
from coder.rpc.proto import agent_pb2, tailnet_pb2
from coder.rpc.serving import serve_calls
from coder.rpc.session import Session, open_session
from coder.rpc.yamux import Flag, FrameType, YamuxFrame, encode_frame

BANNER = "/coder.agent.v2.Agent/GetServiceBanner"
COORDINATE = "/coder.tailnet.v2.Tailnet/Coordinate"
MAPS = "/coder.tailnet.v2.Tailnet/StreamDERPMaps"


def a_banner(fn: Any) -> Handlers:
    return {BANNER: Unary(fn, agent_pb2.GetServiceBannerRequest)}


@asynccontextmanager
async def connected(handlers: Handlers) -> AsyncIterator[tuple[Session, Session, trio.abc.Stream]]:
    """Yield (client session, server session, client's transport), with the server serving `handlers`."""
    left, right = trio.testing.memory_stream_pair()
    async with (
        open_session(left, "client") as client,
        open_session(right, "server") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, handlers)
        yield client, server, left
        nursery.cancel_scope.cancel()


async def banner(client: Session, **fields: Any) -> agent_pb2.ServiceBanner:
    return await client.call(BANNER, agent_pb2.GetServiceBannerRequest(**fields), agent_pb2.ServiceBanner)


async def test_unary_call() -> None:
    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner(enabled=True, message="hello")

    async with connected(a_banner(get)) as (client, _, _):
        assert (await banner(client)).message == "hello"


async def test_responses_exceeding_window() -> None:
    text = "x" * (3 * 1024 * 1024)

    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner(message=text)

    async with connected(a_banner(get)) as (client, _, _):
        assert (await banner(client)).message == text


async def test_oversized_responses_are_errors() -> None:
    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner(message="x" * (4 * 1024 * 1024))

    async with connected(a_banner(get)) as (client, _, _):
        with pytest.raises(RpcError, match=r"payload was too big: 4194309 > 4194304"):
            await banner(client)


async def test_concurrent_calls_share_connection() -> None:
    async def get(request: Any) -> agent_pb2.ServiceBanner:
        await trio.lowlevel.checkpoint()
        return agent_pb2.ServiceBanner(message="m" * 100_000)

    async with connected(a_banner(get)) as (client, _, _), trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(banner, client)


@pytest.mark.parametrize(
    ("raised", "number", "text"),
    [
        (RpcError(7, "no"), 7, "no"),
        (unimplemented(), 12, "Unimplemented"),
        (CoderError("x", "agent is gone"), 0, "agent is gone"),
        (ValueError("secret"), 0, "internal error"),
        (CoderError(DATABASE_AWAY, "10.0.0.5"), 14, "the server's database does not answer"),
        (CoderError(DATABASE_FULL, "10.0.0.5"), 14, "the server's database has no room left on its disk"),
        (CoderError(OUTCOME_UNKNOWN, "nothing tells"), 2, "nothing tells"),
        (ExceptionGroup("", [CoderError(DATABASE_AWAY, "10.0.0.5")]), 14, "the server's database does not answer"),
    ],
)
async def test_handler_errors_reach_caller(raised: Exception, number: int, text: str) -> None:
    async def get(request: Any) -> None:
        raise raised

    async with connected(a_banner(get)) as (client, _, _):
        with pytest.raises(RpcError) as caught:
            await banner(client)
        assert (caught.value.number, caught.value.text) == (number, text)


async def test_patient_session_repeats_during_outage(autojump_clock: trio.testing.MockClock) -> None:
    """Other errors, and the end of the connection, end the repetitions."""
    refusals: list[Exception] = [CoderError(code, "away") for code in DATABASE_OUTAGES]
    asked: list[str] = []

    async def get(request: Any) -> agent_pb2.ServiceBanner:
        asked.append(BANNER)
        if refusals:
            raise refusals.pop()
        return agent_pb2.ServiceBanner(message="hello")

    left, right = trio.testing.memory_stream_pair()
    async with (
        open_session(left, "client", patient=True) as client,
        open_session(right, "server") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, a_banner(get))
        assert (await banner(client)).message == "hello"
        assert len(asked) == len(DATABASE_OUTAGES) + 1
        refusals += [CoderError("x", "no")]
        with pytest.raises(RpcError, match="no"):
            await banner(client)
        refusals += [CoderError(DATABASE_AWAY, "away")] * 1000
        nursery.start_soon(_close_later, server)
        with pytest.raises(RpcClosed):
            await banner(client)
        nursery.cancel_scope.cancel()


async def _close_later(server: Session) -> None:
    await trio.sleep(60)
    server.close("the server stops")


async def test_unknown_call_error_text() -> None:
    async with connected({}) as (client, _, _):
        with pytest.raises(RpcError) as caught:
            await banner(client)
        assert (caught.value.number, caught.value.text) == (0, f'protocol error: unknown rpc: "{BANNER}"')


async def test_server_stream_ends_cleanly() -> None:
    async def maps(request: Any, send: Any) -> None:
        for region in range(3):
            await send(tailnet_pb2.DERPMap(regions={region: tailnet_pb2.DERPMap.Region(region_id=region)}))

    handlers = {MAPS: ServerStream(maps, tailnet_pb2.StreamDERPMapsRequest)}
    async with (
        connected(handlers) as (client, _, _),
        client.open_stream(MAPS, tailnet_pb2.StreamDERPMapsRequest, tailnet_pb2.DERPMap) as stream,
    ):
        await stream.send(tailnet_pb2.StreamDERPMapsRequest())
        await stream.close_send()
        assert [next(iter(m.regions)) async for m in stream] == [0, 1, 2]


async def test_bidirectional_stream_ends_either_side() -> None:
    async def echo(call: Any) -> None:
        async for request in call:
            if request.HasField("disconnect"):
                await call.close()
                return
            await call.send(tailnet_pb2.CoordinateResponse(error=request.add_tunnel.id.decode()))

    handlers = {COORDINATE: Bidi(echo, tailnet_pb2.CoordinateRequest)}
    async with (
        connected(handlers) as (client, _, _),
        client.open_stream(COORDINATE, tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse) as stream,
    ):
        for text in (b"a", b"b"):
            await stream.send(tailnet_pb2.CoordinateRequest(add_tunnel=tailnet_pb2.CoordinateRequest.Tunnel(id=text)))
            assert (await stream.receive()).error.encode() == text
        await stream.send(tailnet_pb2.CoordinateRequest(disconnect=tailnet_pb2.CoordinateRequest.Disconnect()))
        with pytest.raises(trio.EndOfChannel):
            await stream.receive()
        with pytest.raises(RpcClosed):
            await stream.send(tailnet_pb2.CoordinateRequest())


async def test_leaving_call_cancels_handler() -> None:
    cancelled = trio.Event()

    async def wait(call: Any) -> None:
        try:
            await call.send(tailnet_pb2.CoordinateResponse(error="here"))
            await trio.sleep_forever()
        finally:
            cancelled.set()

    handlers = {COORDINATE: Bidi(wait, tailnet_pb2.CoordinateRequest)}
    async with connected(handlers) as (client, _, _):
        async with client.open_stream(
            COORDINATE, tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
        ) as stream:
            await stream.receive()
        with trio.fail_after(60):
            await cancelled.wait()


async def test_cancelled_caller_sends_no_close() -> None:
    started, cancelled = trio.Event(), trio.Event()

    async def get(request: Any) -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with connected(a_banner(get)) as (client, _, _), trio.open_nursery() as nursery:
        nursery.start_soon(banner, client)
        await started.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            with trio.fail_after(60):
                await cancelled.wait()


async def test_connection_end_ends_calls() -> None:
    async def get(request: Any) -> None:
        await trio.sleep_forever()

    async with connected(a_banner(get)) as (client, server, transport), trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(RpcClosed):
                await banner(client)

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        await transport.aclose()
        await server.wait_closed()
        await client.wait_closed()
        with pytest.raises(RpcClosed):
            await banner(client)
        with pytest.raises(RpcClosed):
            await client.ping()


async def test_block_exceptions_are_bare() -> None:
    left, _right = trio.testing.memory_stream_pair()
    with pytest.raises(KeyError):
        async with open_session(left, "client"):
            raise KeyError("x")


async def test_ping_measures_round_trip() -> None:
    async with connected({}) as (client, server, _):
        assert await client.ping() >= 0
        assert await server.ping() >= 0
        assert client.last_pong <= trio.current_time()


async def test_silent_peer_ends_session(autojump_clock: trio.testing.MockClock) -> None:
    left, _right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session:
        with pytest.raises(RpcClosed, match="no answer to a ping within 12 s"):
            await session.ping(timeout=12)
        assert trio.current_time() == pytest.approx(12)
        await session.wait_closed()  # our own keepalive: 30 s + 10 s
        assert trio.current_time() == pytest.approx(40)
        assert "no sign of life" in session.reason


async def test_answer_during_own_suspension_counts(autojump_clock: trio.testing.MockClock) -> None:
    """The process finds the answer and its expired deadline at once."""
    left, right = trio.testing.memory_stream_pair()
    peer = yamux.Yamux(client=False)
    async with open_session(left, "client") as session, trio.open_nursery() as nursery:

        async def answer_then_suspend() -> None:
            peer.receive_untrusted(bytes(await right.receive_some()))
            await right.send_all(peer.take_output(1 << 20))
            autojump_clock.jump(60)

        nursery.start_soon(answer_then_suspend)
        assert await session.ping(12) == pytest.approx(60)
        assert not session.is_closed


async def test_unanswered_ping_fails_after_own_suspension(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "client") as session, trio.open_nursery() as nursery:

        async def suspend() -> None:
            await right.receive_some()
            autojump_clock.jump(25)

        nursery.start_soon(suspend)
        with pytest.raises(RpcClosed, match="no answer"):
            await session.ping(12)
        assert trio.current_time() == pytest.approx(25 + SECOND_LOOK)


async def test_unacknowledged_stream_ends_session(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    answering = yamux.Yamux(client=False)

    async def pongs_only() -> None:
        async for data in right:
            answering.receive_untrusted(bytes(data))
            await right.send_all(answering.take_output(1 << 20))

    async with mux.open_mux(left, client=True) as session, trio.open_nursery() as nursery:
        nursery.start_soon(pongs_only)
        await session.open_stream()
        await session.wait_closed()
        assert "not acknowledged within 75 s" in session.reason
        nursery.cancel_scope.cancel()


async def test_half_closed_streams_are_reset(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True) as here, mux.open_mux(right, client=False) as there:
        stream = await here.open_stream()
        other = await there.accept()
        await stream.aclose()
        assert await other.receive_some() == b""
        await trio.sleep(310)
        with pytest.raises(trio.BrokenResourceError):
            await other.send_all(b"late")


async def test_senders_wait_for_credit() -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True) as here, mux.open_mux(right, client=False) as there:
        sending = await here.open_stream()
        done = trio.Event()

        async def send() -> None:
            await sending.send_all(bytes(600_000))
            await sending.send_eof()
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            receiving = await there.accept()  # the peer hears of a stream with its first data
            await trio.testing.wait_all_tasks_blocked()
            assert not done.is_set()
            received = 0
            while data := await receiving.receive_some(50_000):
                received += len(data)
            assert received == 600_000


async def test_protocol_error_sends_go_away() -> None:
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session:
        await right.send_all(b"\x07" + bytes(11))
        await session.wait_closed()
        assert "unknown frame" in session.reason
        frame = next(yamux.YamuxFrameReader().receive_untrusted(bytes(await right.receive_some())))
        assert (frame.type, frame.length) == (yamux.FrameType.GO_AWAY, 1)


async def test_sequential_calls_on_one_stream() -> None:
    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner(message="plain")

    left, right = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_calls, right, a_banner(get))
        call = drpc.IncomingCall()
        for stream in (1, 2):
            call.invoke(BANNER)
            call.send_message(b"")
            call.close_send()
            await left.send_all(call.take_output())
            events: list[Any] = []
            while len(events) < 2:
                events += call.receive_untrusted(bytes(await left.receive_some()))
            assert agent_pb2.ServiceBanner.FromString(events[0].data).message == "plain"
            assert call._stream == stream
        await left.aclose()

    left, right = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_calls, right, a_banner(get))
        reply = await call_unary(left, BANNER, agent_pb2.GetServiceBannerRequest(), agent_pb2.ServiceBanner)
        assert reply.message == "plain"


async def test_cancelled_session_flushes(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(right, client=False) as there:
        with trio.move_on_after(1):
            async with mux.open_mux(left, client=True) as here:
                stream = await here.open_stream()
                stream.send_soon()
                other = await there.accept()
                try:
                    await trio.sleep_forever()
                finally:
                    stream.abandon()
        assert trio.current_time() == pytest.approx(1)
        assert await other.receive_some() == b""


async def test_incomplete_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand streams, each with a window's worth of an incomplete 4 MiB message."""
    shared: list[BufferedBytes] = []

    class Watched(BufferedBytes):
        def __init__(self) -> None:
            super().__init__()
            shared.append(self)

    monkeypatch.setattr(session, "BufferedBytes", Watched)
    monkeypatch.setattr(inbox, "LINK_BYTES", 1 << 20)
    monkeypatch.setattr(mux, "MAX_UNREAD", 1 << 20)
    streams, most = 1500, 0
    begun = b"\x02\x01\x01\x80\x80\x80\x02" + bytes(60_000)  # a frame of 4 MiB
    async with connected({}) as (_, server, raw):
        for number in range(streams):
            frames = (
                YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, 2 * number + 1, 0),
                YamuxFrame(FrameType.DATA, Flag(0), 2 * number + 1, len(begun), begun),
            )
            await raw.send_all(b"".join(encode_frame(frame) for frame in frames))
            await trio.testing.wait_all_tasks_blocked()
            assert shared[0].size <= 1 << 20
            most = max(most, server._mux._unread)
        assert len(server._mux._streams) <= mux.MAX_HALF_CLOSED + session.MAX_CALLS + yamux.BACKLOG
    assert most <= (1 << 20) + len(begun) + mux_stream.CHUNK_OVERHEAD
    assert (shared[0].size, server._mux._unread) == (0, 0)


async def test_tiny_frames_count_overhead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mux, "MAX_UNREAD", 200_000)
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "client"), open_session(right, "server") as server:
        await left.send_all(encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, 1, 0)))
        await left.send_all(encode_frame(YamuxFrame(FrameType.DATA, Flag(0), 1, 1, b"x")) * 10_000)
        await trio.testing.wait_all_tasks_blocked()
        assert server._mux._unread == 0
        assert not server._mux._streams
        assert not server.is_closed


async def test_ended_calls_free_memory() -> None:
    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner()

    left, right = trio.testing.memory_stream_pair()
    async with (
        mux.open_mux(left, client=True) as here,
        mux.open_mux(right, client=False) as there,
        trio.open_nursery() as nursery,
    ):

        async def serve() -> None:
            while True:
                nursery.start_soon(serve_calls, await there.accept(), a_banner(get))

        nursery.start_soon(serve)
        for _ in range(50):
            await call_unary(
                await here.open_stream(), BANNER, agent_pb2.GetServiceBannerRequest(), agent_pb2.ServiceBanner
            )
        for side in (here, there):  # each write takes the ends of earlier calls along
            side.start_ping(lambda _seconds: None)
            await trio.testing.wait_all_tasks_blocked()
        for side in (here, there):
            assert not side._streams
            assert not side._half_closed
            assert not side._yamux._streams
        nursery.cancel_scope.cancel()


async def test_session_end_cancels_stalled_handlers() -> None:
    """Each stream waits for room in its inbox, and the session for one of them: no task reads the end."""
    begun = 0

    async def stalled(_call: Any) -> None:
        nonlocal begun
        begun += 1
        await trio.sleep_forever()

    left, right = trio.testing.memory_stream_pair()
    async with open_session(right, "server") as server, trio.open_nursery() as nursery:
        served = trio.Event()

        async def serve() -> None:
            await server.serve({COORDINATE: Bidi(stalled, tailnet_pb2.CoordinateRequest)})
            served.set()

        nursery.start_soon(serve)
        async with open_session(left, "client") as client, trio.open_nursery() as callers:

            async def call() -> None:
                request, answer = tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
                async with client.open_stream(COORDINATE, request, answer) as stream:
                    for _ in range(inbox.INBOX_MESSAGES + 2):
                        await stream.send(request())
                    await trio.sleep_forever()

            for _ in range(session.MAX_CALLS):
                callers.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            assert begun == session.MAX_CALLS
            callers.cancel_scope.cancel()
        with trio.fail_after(60):
            await served.wait()


async def test_end_of_a_session_calls_functions() -> None:
    calls: list[str] = []
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True) as here, mux.open_mux(right, client=False):
        here.call_at_close(lambda: calls.append(here.reason))
        assert calls == []
        here.close("enough")
        here.close("once more")
        assert calls == ["enough"]
        here.call_at_close(lambda: calls.append("at once"))
        assert calls == ["enough", "at once"]


async def test_small_reads_avoid_copies() -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True), mux.open_mux(right, client=False) as there:
        body = bytes(range(256)) * 1024
        await left.send_all(encode_frame(YamuxFrame(FrameType.WINDOW_UPDATE, Flag.SYN, 1, 0)))
        await left.send_all(encode_frame(YamuxFrame(FrameType.DATA, Flag(0), 1, len(body), body)))
        stream = await there.accept()
        read = await stream.receive_some(1000)
        whole = stream._chunks[0].obj  # type: ignore[union-attr]
        while len(read) < len(body):
            assert stream._chunks[0].obj is whole  # type: ignore[union-attr]
            read += await stream.receive_some(1000)
        assert (read, there._unread) == (body, 0)


async def test_whole_call_is_one_write_each_way() -> None:
    """Its stream's beginning goes with the request, the acknowledgement with the answer, its end with the next call."""

    async def get(request: Any) -> agent_pb2.ServiceBanner:
        await trio.testing.wait_all_tasks_blocked()  # as a handler that waits for the database
        return agent_pb2.ServiceBanner(message="hello")

    left, right = trio.testing.memory_stream_pair()
    writes: list[str] = []
    for name, stream in (("request", left), ("answer", right)):
        stream.send_stream.send_all_hook = _noting(writes, name, stream.send_stream.send_all_hook)
    async with (
        open_session(left, "client") as client,
        open_session(right, "server") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, a_banner(get))
        for _ in range(3):
            assert (await banner(client)).message == "hello"
        assert writes == ["request", "answer"] * 3
        assert len(client._mux._streams) <= 1
        nursery.cancel_scope.cancel()


def _noting(writes: list[str], name: str, deliver: Any) -> Any:
    async def note() -> None:
        writes.append(name)
        await deliver()

    return note


async def test_many_ended_calls_wait_for_no_write() -> None:
    """The server hears of their ends although the client makes no further call."""

    async def get(request: Any) -> agent_pb2.ServiceBanner:
        return agent_pb2.ServiceBanner()

    async with connected(a_banner(get)) as (client, server, _):
        async with trio.open_nursery() as nursery:
            for _ in range(session.MAX_CALLS):
                nursery.start_soon(banner, client)
        await trio.testing.wait_all_tasks_blocked()
        assert len(server._mux._streams) < session.MAX_CALLS // 2


@pytest.mark.parametrize("ending", ["reset", "close", "next call"])
async def test_end_of_whole_call_cancels_handler(ending: str) -> None:
    began, cancelled = trio.Event(), trio.Event()

    async def get(request: Any) -> agent_pb2.ServiceBanner:
        if began.is_set():
            return agent_pb2.ServiceBanner(message="second")
        began.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    left, right = trio.testing.memory_stream_pair()
    async with (
        mux.open_mux(left, client=True) as here,
        open_session(right, "server") as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(server.serve, a_banner(get))
        stream, call = await here.open_stream(), drpc.IncomingCall()

        async def invoke() -> None:
            call.invoke(BANNER)
            call.send_message(b"")
            call.close_send()
            await stream.send_all(call.take_output())

        await invoke()
        await began.wait()
        if ending == "reset":
            here._reset(stream.id)
        elif ending == "close":
            call.close_answered()
            await stream.send_all(call.take_output())
        else:
            await invoke()
            (answer, *_) = call.receive_untrusted(await stream.receive_some())
            assert answer == drpc.MessageReceived(agent_pb2.ServiceBanner(message="second").SerializeToString())
        await cancelled.wait()
        nursery.cancel_scope.cancel()


async def test_keepalive_spares_peers_that_answer_other_pings(autojump_clock: trio.testing.MockClock) -> None:
    left, right = trio.testing.memory_stream_pair()
    async with mux.open_mux(left, client=True) as here, mux.open_mux(right, client=False):
        for _ in range(20):
            await trio.sleep(10)
            assert await here.ping() == 0
        assert here._yamux._next_ping == 20
        await trio.sleep(mux.KEEPALIVE_INTERVAL + 1)
        assert here._yamux._next_ping == 21
