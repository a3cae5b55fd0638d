"""Flight recorder: a kill, a full disk, a torn write; each event is sent once."""

from __future__ import annotations

import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent.platform import posix
from coder.agent.reports import flight_file, flight_recorder
from coder.agent.reports.flight_file import SLOT_SIZE, FlightFile
from coder.agent.reports.flight_recorder import INTERVAL, MAX_EVENTS, FlightRecorder, read_machine
from coder.coderd.services.agents.agent_connections import PING_TIMEOUT
from coder.domain.agents.flight_events import Sample
from coder.rpc.mux import KEEPALIVE_TIMEOUT
from tests.kit.event_loop_probes import no_threads


class Machine:
    """Machine whose clocks and addresses the test moves."""

    def __init__(self) -> None:
        self.now = Sample(1_000_000.0, 100.0, 100.0, "boot-1", 0, ("10.0.0.1",))

    def __call__(self) -> Sample:
        return self.now

    def advance(self, seconds: float, *, asleep: float = 0.0, clock: float = 0.0) -> None:
        now = self.now
        awake = now.awake + seconds - asleep
        self.now = replace(now, wall=now.wall + seconds + clock, running=now.running + seconds, awake=awake)


def advance_and_poll(machine: Machine, recorder: FlightRecorder, seconds: float) -> None:
    for _ in range(int(seconds / INTERVAL)):
        machine.advance(INTERVAL)
        recorder.unsent()


async def opened(recorder: FlightRecorder, name: str = "w-main") -> None:
    recorder.name(name)
    await recorder.open()


def kinds(recorder: FlightRecorder) -> list[str]:
    return [event.kind for event in recorder.unsent()]


async def test_killed_process_leaves_record(tmp_path: Path) -> None:
    machine = Machine()
    first = FlightRecorder(tmp_path, machine)
    await opened(first)
    first.note("connected")
    first.note("disconnected", how="closed")
    await first._write()  # and then it is killed
    machine.advance(60)
    machine.now = replace(machine.now, oom_kills=1)
    second = FlightRecorder(tmp_path, machine)
    second.note("dial_failed", how="refused")
    await opened(second)
    assert kinds(second) == ["started", "connected", "disconnected", "started", "dial_failed"]
    sent = second.unsent()
    assert sent[0].data == {"previous": "none"}
    assert sent[3].data == {"previous": "died", "same_boot": True, "last_alive": 1_000_000.0, "oom_kills": 1}
    second.mark_sent(sent[:4])
    assert kinds(second) == ["dial_failed"]
    await second.stop()
    third = FlightRecorder(tmp_path, machine)
    await opened(third)
    assert kinds(third) == ["dial_failed", "stopped", "started"]
    assert third.unsent()[-1].data["previous"] == "stopped"
    await third.stop("upgraded")
    fourth = FlightRecorder(tmp_path, machine)
    await opened(fourth)
    assert fourth.unsent()[-1].data["previous"] == "upgraded"
    other = FlightRecorder(tmp_path, machine)
    await opened(other, "w-other")
    assert other.unsent()[0].data == {"previous": "none"}, "another agent has its own record"


async def test_suspension_precedes_disconnect() -> None:
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    machine.advance(40)
    recorder.note("disconnected", how="closed")
    assert kinds(recorder) == ["stood_still", "disconnected"]
    machine.advance(INTERVAL, clock=-3600)
    assert kinds(recorder)[-1] == "clock_jumped"
    machine.advance(600, asleep=598)
    assert recorder.unsent()[-1].data == {"seconds": 600, "machine_slept": True}


@pytest.mark.parametrize("polled_before", [0, 1, 4.9])
async def test_suspension_that_outlasts_ping_is_detected(polled_before: float) -> None:
    """Wherever it begins between two polls, and whichever side gave up."""
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    recorder.note("connected")
    machine.advance(polled_before + min(PING_TIMEOUT, KEEPALIVE_TIMEOUT))
    recorder.note("disconnected", how="closed")
    assert kinds(recorder) == ["connected", "stood_still", "disconnected"]


async def test_machine_events_are_sent_again() -> None:
    """A machine in another network reports it over its new path, before the old one is missed."""
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    recorder.note("connected")
    machine.advance(5)
    machine.now = replace(machine.now, addresses=("10.9.9.9",))
    recorder.mark_sent(recorder.unsent())
    assert kinds(recorder) == ["network_changed"]
    advance_and_poll(machine, recorder, 40)
    recorder.note("disconnected", how="closed")
    assert kinds(recorder) == ["network_changed", "disconnected"]
    recorder.mark_sent(recorder.unsent())
    assert kinds(recorder) == ["network_changed"]
    advance_and_poll(machine, recorder, 60)
    recorder.mark_sent(recorder.unsent())
    assert kinds(recorder) == []
    assert recorder._detected_at == {}


async def test_survived_moves_explain_nothing() -> None:
    """Neither sent again, nor sent late."""
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    machine.now = replace(machine.now, addresses=("10.9.9.9",))
    recorder.note("disconnected", how="silent")
    before = recorder.moves
    machine.advance(40)
    machine.now = replace(machine.now, addresses=("10.8.8.8",))
    events = recorder.unsent()
    assert [event.kind for event in events] == ["network_changed", "disconnected", "stood_still", "network_changed"]
    recorder.mark_survived(before, recorder.moves)
    assert ["survived" in event.data for event in events] == [False, False, True, True]
    recorder.mark_sent(events)
    assert [event.data.get("after") for event in recorder.unsent()] == ["10.9.9.9"], (
        "the later move explains the disconnect"
    )


async def test_move_is_notified(autojump_clock: trio.testing.MockClock) -> None:
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.wait_moved, 0)
        await trio.testing.wait_all_tasks_blocked()
        recorder.note("connected")
        assert nursery.child_tasks
        machine.now = replace(machine.now, addresses=("10.9.9.9",))
        recorder.note("connected")
    # the nursery ended: the move was noticed


async def test_moves_without_waiter_count(autojump_clock: trio.testing.MockClock) -> None:
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    for number in (1, 2):
        machine.now = replace(machine.now, addresses=(f"10.9.9.{number}",))
        recorder.note("connected")
    with trio.fail_after(1):
        assert await recorder.wait_moved(0) == 2
        assert await recorder.wait_moved(1) == 2
    with trio.move_on_after(100) as waiting:
        await recorder.wait_moved(2)
    assert waiting.cancelled_caught


async def test_recorder_polls(autojump_clock: trio.testing.MockClock) -> None:
    machine = Machine()
    recorder = FlightRecorder(None, machine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.run)
        await trio.sleep(1)
        machine.now = replace(machine.now, addresses=("10.9.9.9",))
        for _ in range(20):  # notes must not keep it from polling
            recorder.note("dial_failed", how="refused")
            recorder.mark_sent(recorder.unsent()[1:])
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert kinds(recorder)[0] == "network_changed"


async def test_memory_and_file_are_bounded(tmp_path: Path) -> None:
    recorder = FlightRecorder(tmp_path, Machine())
    await opened(recorder)
    for number in range(MAX_EVENTS * 3):
        recorder.note("dial_failed", how=f"{number} " + "x" * 500)
    await recorder._write()
    assert len(recorder.unsent()) == MAX_EVENTS
    path = tmp_path / "w-main.flight"
    assert path.stat().st_size == 2 * SLOT_SIZE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept: Any = FlightFile.open_file(path).read()["events"]
    assert kept[-1]["data"]["how"].startswith(f"{MAX_EVENTS * 3 - 1} "), "the newest are kept"


async def test_full_disk_keeps_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = FlightRecorder(tmp_path, Machine())
    await opened(recorder)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(flight_file, "_put", full)
    recorder.note("connected")
    await recorder._write()
    assert kinds(recorder) == ["started", "connected"]
    await recorder.stop()
    nowhere = FlightRecorder(Path("/proc/nowhere"), Machine())
    await opened(nowhere)
    assert kinds(nowhere) == ["started"]


async def test_thread_shortage_keeps_recorder(tmp_path: Path) -> None:
    first = FlightRecorder(tmp_path, Machine())
    await opened(first)
    with no_threads():
        first.note("connected")
        await first._write()
        blind = FlightRecorder(tmp_path, Machine())
        await opened(blind, "another")
        assert blind.opened.is_set()
        await blind.stop()
    first.note("disconnected", how="closed")
    await first._write()
    second = FlightRecorder(tmp_path, Machine())
    await opened(second)
    assert {"connected", "disconnected"} <= set(kinds(second))
    await first.stop()
    await second.stop()


async def test_stop_waits_for_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = FlightRecorder(tmp_path, Machine())
    await opened(recorder)
    begun, may_go_on, failures = trio.Event(), threading.Event(), list[OSError]()
    write = FlightFile.write

    def slow(file: FlightFile, document: Any) -> None:
        trio.from_thread.run_sync(begun.set)
        may_go_on.wait(60)
        try:
            write(file, document)
        except OSError as error:
            failures.append(error)
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.run)
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(FlightFile, "write", slow)
        recorder.note("connected")
        await begun.wait()
        monkeypatch.setattr(FlightFile, "write", write)
        nursery.start_soon(recorder.stop, "upgraded")
        for _ in range(30):  # a caller that does not wait would have returned by now
            await trio.sleep(0.01)
        may_go_on.set()
        while recorder._file is not None:
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert failures == []


@pytest.mark.parametrize("waits_for", ["open_file", "write"])
async def test_silent_disk_delays_nothing(waits_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    recorder = FlightRecorder(tmp_path, machine)
    monkeypatch.setattr(flight_recorder, "INTERVAL", 0.02)
    monkeypatch.setattr(flight_recorder, "CLOSE_TIMEOUT", 0.1)
    asked, answer = threading.Event(), threading.Event()

    def silent(*_: object) -> None:
        asked.set()
        answer.wait(60)

    try:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(recorder.run)
                monkeypatch.setattr(FlightFile, waits_for, silent)
                recorder.name("w-main")
                while not asked.is_set():
                    await trio.sleep(0.01)
                machine.now = replace(machine.now, addresses=("10.9.9.9",))
                assert await recorder.wait_moved(0) == 1, "it still polls"
                recorder.note("connected")
                await recorder.stop()
                nursery.cancel_scope.cancel()
    finally:
        answer.set()
    assert [kind for kind in kinds(recorder) if kind != "started"] == ["network_changed", "connected", "stopped"]


async def test_invalid_record_is_ignored(tmp_path: Path) -> None:
    file = FlightFile.open_file(tmp_path / "w-main.flight")
    file.write({"last": {"wall": "soon"}, "events": [1, {"at": None}, {"at": 1, "kind": "connected", "data": {}}]})
    recorder = FlightRecorder(tmp_path, Machine())
    await opened(recorder)
    assert kinds(recorder) == ["connected", "started"]


def test_machine_can_be_read() -> None:
    first, second = read_machine(), read_machine()
    assert second.running >= first.running and second.boot_id == first.boot_id
    assert all(not address.startswith("127.") for address in first.addresses)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/coder-agent"),
        ({"HOME": "/h"}, "/h/.local/state/coder-agent"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/coder-agent"),
    ],
)
def test_default_folder(environ: dict[str, str], expected: str) -> None:
    assert posix.state_folder(environ) == Path(expected)
