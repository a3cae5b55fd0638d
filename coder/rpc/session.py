"""Session of RPC calls with one peer: yamux and dRPC over any stream, in one object.

The agent and the server use this module; its parts are rpc/mux.py, rpc/calls.py and rpc/serving.py. Each call opens a
new stream. The side that dialled is "client". Example:

    async with open_session(websocket, role="client") as session:
        manifest = await session.call("/coder.agent.v2.Agent/GetManifest", request, agent_pb2.Manifest)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

import trio
from google.protobuf.message import Message

from coder.base.exception_groups import single_failure
from coder.base.retry import Backoff
from coder.rpc.calls import CallStream, Handlers, Received, Sent, call_unary, open_call
from coder.rpc.errors import UNAVAILABLE, RpcClosed, RpcError
from coder.rpc.inbox import BufferedBytes
from coder.rpc.message_limits import MessageLimits
from coder.rpc.mux import KEEPALIVE_TIMEOUT, Mux, open_mux
from coder.rpc.mux_stream import MuxStream
from coder.rpc.request_limits import REQUEST_LIMITS
from coder.rpc.serving import serve_calls

MAX_CALLS = 64
"Handlers running concurrently for one peer (ours). Further streams wait unread."
_REPEATS = (0.5, 10.0)
"Seconds before the first repetition of a call during an outage, and at most before a later one."


class Session:
    """Session created by `open_session`. It lives until either side ends it; `reason` then has the cause."""

    def __init__(self, mux: Mux) -> None:
        self._mux = mux

    async def call(self, name: str, request: Message, reply: type[Received]) -> Received:
        """Make a unary call. Raises RpcError (the peer's error) or RpcClosed (the connection ended)."""
        return await call_unary(await self._mux.open_stream(), name, request, reply)

    @asynccontextmanager
    async def open_stream(
        self, name: str, request: type[Sent], reply: type[Received]
    ) -> AsyncIterator[CallStream[Sent, Received]]:
        """Open a streaming call: `send`, `receive` / `async for`, `close_send`. Leaving the block ends it."""
        async with open_call(await self._mux.open_stream(), name, request, reply) as opened:
            yield opened

    async def serve(self, handlers: Handlers, limits: MessageLimits = REQUEST_LIMITS) -> None:
        """Answer the peer's calls until the session ends; then cancel every handler.

        Messages over `limits` are answered by an error: the table covers every protocol, so no endpoint can omit it.
        """
        slots, buffered = trio.Semaphore(MAX_CALLS), BufferedBytes()
        with single_failure():
            async with trio.open_nursery() as nursery:
                # A wait for a slot does not notice the end, nor does a stream whose handler takes no more.
                self._mux.call_at_close(nursery.cancel_scope.cancel)
                while True:
                    # Before the stream is taken: a peer may have 256 untaken streams (yamux.BACKLOG).
                    if slots.value:
                        slots.acquire_nowait()
                    else:
                        await slots.acquire()
                    try:
                        stream = await self._mux.accept()
                    except trio.EndOfChannel:
                        break
                    nursery.start_soon(_serve_one, slots, stream, handlers, buffered, limits)
                nursery.cancel_scope.cancel()

    async def ping(self, timeout: float = KEEPALIVE_TIMEOUT) -> float:
        """Return the round-trip time in seconds. Raises RpcClosed when no answer came in time."""
        return await self._mux.ping(timeout)

    def start_ping(self, on_answer: Callable[[float], None]) -> None:
        """Ping without waiting: `on_answer` gets the round-trip time in seconds, if the peer answers."""
        self._mux.start_ping(on_answer)

    @property
    def last_pong(self) -> float:
        """trio time of the peer's last answer to a ping."""
        return self._mux.last_pong

    @property
    def is_closed(self) -> bool:
        return self._mux.is_closed

    @property
    def reason(self) -> str:
        return self._mux.reason

    @property
    def is_silent(self) -> bool:
        """Whether the session ended because the peer did not answer."""
        return self._mux.is_silent

    async def wait_closed(self) -> None:
        await self._mux.wait_closed()

    def close(self, reason: str, *, silent: bool = False) -> None:
        """End the session for all users; the block of `open_session` should be left next. `silent`: the peer did not
        answer."""
        self._mux.close(reason, silent=silent)


async def _serve_one(
    slots: trio.Semaphore, stream: MuxStream, handlers: Handlers, buffered: BufferedBytes, limits: MessageLimits
) -> None:
    try:
        await serve_calls(stream, handlers, buffered, limits)
    finally:
        slots.release()


class PatientSession(Session):
    """Session that repeats a call while the server's database does not answer: an outage is no refusal of the call."""

    async def call(self, name: str, request: Message, reply: type[Received]) -> Received:
        """Make a unary call, until the peer has its database. Raises RpcError for other errors, and RpcClosed."""
        backoff = Backoff(*_REPEATS, jitter=0.5)
        while True:
            try:
                return await super().call(name, request, reply)
            except RpcError as error:
                if error.number != UNAVAILABLE:
                    raise
            await trio.sleep(backoff.next_delay())


@asynccontextmanager
async def open_session(
    stream: trio.abc.Stream, role: Literal["client", "server"], *, patient: bool = False, keepalive: bool = True
) -> AsyncIterator[Session]:
    """Run a session on `stream`, which is closed at the end. `patient`: as `PatientSession`. Without `keepalive` the
    caller pings the peer, and closes a silent session.

    The end of the connection does not cancel the block: calls raise RpcClosed, `wait_closed` returns.
    """
    async with open_mux(stream, client=role == "client", keepalive=keepalive) as mux:
        yield PatientSession(mux) if patient else Session(mux)


__all__ = ["PatientSession", "RpcClosed", "Session", "open_session"]
