"""Tasks of a server connection that need no server: pings after the machine has moved."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent import connection as agent_connection
from coder.agent.connection import MOVED_TIMEOUT, ServerConnection
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.domain.agents.flight_events import Sample
from coder.rpc.errors import RpcClosed
from coder.rpc.mux import KEEPALIVE_TIMEOUT
from coder.rpc.session import Session, open_session


class Machine:
    """Machine whose addresses `move` changes; the recorder finds them at its next poll."""

    def __init__(self) -> None:
        self.now = Sample(1_000_000.0, 100.0, 100.0, "boot", 0, ("10.0.0.1",))
        self.recorder = FlightRecorder(None, lambda: self.now)

    def move(self, address: str) -> None:
        self.now = replace(self.now, addresses=(address,))
        self.recorder.note("connected")


@pytest.mark.parametrize("moves_while_it_dials", [0, 1])
async def test_every_move_sends_ping(moves_while_it_dials: int, autojump_clock: trio.testing.MockClock) -> None:
    """Also a move during a ping, and one between the start and the end of a dial."""
    machine, asked = Machine(), list[float]()
    agent: Any = SimpleNamespace(recorder=machine.recorder)
    connection = ServerConnection(agent, Any)  # type: ignore[arg-type]

    async def ping(patience: float) -> None:
        asked.append(trio.current_time())
        assert patience == MOVED_TIMEOUT
        await trio.sleep(3)

    session: Any = SimpleNamespace(ping=ping)
    for _ in range(moves_while_it_dials):
        machine.move("10.0.0.2")
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection._ping_after_moves, session)
        for second in (10, 1, 1):  # the last two during one ping
            await trio.sleep(second)
            machine.move(f"10.1.{second}.{len(asked) + int(trio.current_time() - began)}")
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    wanted = [0.0] * moves_while_it_dials + [10.0, 13.0]
    assert [round(at - began, 3) for at in asked] == wanted
    moves = [event for event in machine.recorder.unsent() if event.kind == "network_changed"]
    assert len(moves) == 3 + moves_while_it_dials
    assert all(event.data.get("survived") is True for event in moves)


async def test_suspended_machine_gets_usual_timeout(autojump_clock: trio.testing.MockClock) -> None:
    machine, asked = Machine(), list[float]()
    connection = ServerConnection(SimpleNamespace(recorder=machine.recorder), Any)  # type: ignore[arg-type]

    async def ping(patience: float) -> None:
        asked.append(patience)
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection._ping_after_moves, SimpleNamespace(ping=ping))  # type: ignore[arg-type]
        await trio.sleep(1)
        machine.now = replace(machine.now, running=200.0, wall=machine.now.wall + 100, awake=200.0)
        machine.recorder.unsent()
        await trio.sleep(10)
        machine.move("10.0.0.2")
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert asked == [KEEPALIVE_TIMEOUT, MOVED_TIMEOUT]
    assert all(event.data["survived"] is True for event in machine.recorder.unsent() if event.kind != "connected")


async def test_unanswered_ping_after_move_is_silence(autojump_clock: trio.testing.MockClock) -> None:
    machine = Machine()
    connection = ServerConnection(SimpleNamespace(recorder=machine.recorder), Any)  # type: ignore[arg-type]
    left, _silent = trio.testing.memory_stream_pair()
    async with open_session(left, "client") as session:
        machine.move("10.0.0.2")
        with pytest.raises(RpcClosed, match="no answer"):
            await connection._ping_after_moves(session)
        assert session.is_closed and session.is_silent


@pytest.mark.parametrize("silent", [True, False])
async def test_end_of_connection_tells_silence(
    silent: bool, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The session's own keepalive fails, or the peer closes the connection."""
    left, right = trio.testing.memory_stream_pair()

    async def connect(*_: object) -> trio.abc.Stream:
        return left

    async def serve(_: object, session: Session, __: object) -> None:
        await session.wait_closed()
        raise trio.BrokenResourceError(session.reason)

    monkeypatch.setattr(agent_connection, "connect_websocket", connect)
    monkeypatch.setattr(ServerConnection, "_serve", serve)
    machine = Machine()
    agent: Any = SimpleNamespace(
        recorder=machine.recorder, exchange_token=trio.lowlevel.checkpoint, config=SimpleNamespace(policy=None)
    )
    connection = ServerConnection(agent, Any)  # type: ignore[arg-type]
    if not silent:
        await right.aclose()
    with pytest.raises(trio.BrokenResourceError):
        await connection.run(lambda _: None)
    assert connection.got_no_answer is silent
