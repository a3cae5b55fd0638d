"""Tries of `supervisor_tries.py` at the supervisor and at links between processes: all as a soak test, and a sample.

The judge: every process lives once and is ready, a lost one was named, its neighbours are those of before, no
descriptor, socket or process is left.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
import trio

from coder.coderd.processes.children import Child
from coder.coderd.processes.control import MAX_LINE, ControlLink, Order
from tests.attacks.supervised import Supervised, supervised
from tests.attacks.supervisor_tries import FOLDER, ORDERS, REFUSALS, REPORTS, SIGNALS, STATUSES

VICTIMS = ("api-1", "keeper")
IGNORED = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, 32, 33}
"""By default; the last two are the C library's own, which `posix_spawn` ignores."""
OF_WORKERS = {"socket.socket", "socket.bind", "socket.listen", "unlink", "mkdtemp"}
"""Calls for the sockets of workers, which the keeper has not."""
STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
EVERY = pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Supervised]:
    with supervised(monkeypatch, tmp_path) as opened:
        opened.settle()
        yield opened


def test_supervisor_meets_200_kinds() -> None:
    refusals = sum(len(numbers) for _, numbers in REFUSALS.values())
    assert len(REPORTS) + len(ORDERS) > 180
    assert refusals + len(SIGNALS) + len(STATUSES) + len(FOLDER) > 150
    assert len(set(REPORTS.values())) == len(REPORTS)
    assert len(set(ORDERS.values())) == len(ORDERS)


def test_reports_change_nothing() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for name, data in REPORTS.items():
            child = Child("api-1", 1, ours)
            for at in range(0, len(data), 1 << 16):
                child._take(data[at : at + (1 << 16)])
            assert len(child.lines._rest) <= MAX_LINE, name
            assert not child.is_ready, name
            child._take(b'\n{"kind":"failed","message":"the next one"}\n')
            assert child.failure is not None, name
            assert child.failure.message == "the next one", name


async def test_orders_stop_nothing() -> None:
    ours, theirs = socket.socketpair()
    applied: list[Order] = []
    arrived = trio.Event()

    def apply(order: Order) -> None:
        nonlocal arrived
        applied.append(order)
        arrived.set()
        arrived = trio.Event()

    link, stream = ControlLink(theirs), trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(link.follow, apply)
        for number, (name, data) in enumerate(ORDERS.items()):
            await stream.send_all(
                data + b"\n" + msgspec.json.encode(Order("siblings", lost=[UUID(int=number)])) + b"\n"
            )
            with trio.fail_after(60):
                while not applied or applied[-1].lost != [UUID(int=number)]:
                    await arrived.wait()
            assert not link.stop_requested.is_set(), name
            assert not link.retire_requested.is_set(), name
        nursery.cancel_scope.cancel()
    theirs.close()


def _judge(made: Supervised, victim: str, before: dict[str, int], descriptors: int) -> None:
    made.settle()
    now = {name: made.child(name).pid for name in before}
    assert {name for name in before if now[name] != before[name]} <= {victim}
    assert made.doors() == len(before) - 1  # the keeper has none
    assert _descriptors() <= descriptors
    assert not [line for line in made.log if "Traceback" in line]


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _pids(made: Supervised) -> dict[str, int]:
    return {name: made.child(name).pid for name in ("api-1", "relay", "edge", "loops", "keeper")}


@EVERY
def test_signals_are_named_and_replaced(made: Supervised, every: int) -> None:
    descriptors = _descriptors()
    for victim in VICTIMS:
        for number in SIGNALS[::every]:
            before, child, known = _pids(made), made.child(victim), len(made.log)
            os.kill(child.pid, number)
            if number in IGNORED or (number in STOPS and victim == "keeper"):
                os.kill(child.pid, signal.SIGKILL)  # what a stopped keeper guards goes on: it is not replaced
            elif number in STOPS:
                child.beat_at -= 100
            while child.status is None:
                made.supervisor._turn()
            _judge(made, victim, before, descriptors)
            assert [
                line for line in made.log[known:] if "a process was lost and is replaced" in line and victim in line
            ]


@EVERY
def test_refusals_are_survived(made: Supervised, every: int) -> None:
    kinds = [(point, number) for point, numbers in REFUSALS.values() for number in numbers]
    descriptors = _descriptors()
    for victim in VICTIMS:
        for point, number in kinds[::every]:
            if victim == "keeper" and point in OF_WORKERS:
                continue
            before = _pids(made)
            if point == "mkdtemp":
                shutil.rmtree(made.supervisor._folder)
            made.refuse(point, number)
            if point in {"posix_spawn", "execve", "kill"}:
                made.supervisor._reload()
            else:
                made.lose(victim)
            made.settle()
            made.refused = None
            if point == "unlink":  # the disk keeps the socket, which nothing listens on
                doors = {Path(child.socket_path) for child in made.supervisor._workers}
                for left in {*made.supervisor._folder.iterdir()} - doors:
                    left.unlink()
            if point == "mkdtemp":
                for name in ("relay", "edge", "loops", "api-1"):  # their sockets went with the folder
                    made.lose(name)
                    made.settle()
                continue
            _judge(made, victim, before, descriptors)


@pytest.mark.parametrize("kind", FOLDER)
def test_folder_is_not_trusted(made: Supervised, kind: str, tmp_path: Path) -> None:
    """Programs that clean temporary folders remove it; then another user may create one of its name."""
    folder = made.supervisor._folder
    shutil.rmtree(folder)
    other = tmp_path / "other"
    other.mkdir()
    if kind == "a file":
        folder.write_text("")
    elif kind == "a link to another":
        folder.symlink_to(other)
    elif kind == "another user's":
        folder.mkdir()
        if os.geteuid():
            pytest.skip("needs root")
        os.chown(folder, 54321, 54321)
    made.lose("relay")
    made.settle()
    path = Path(made.child("relay").socket_path)
    assert path.is_socket()
    assert path.parent != folder
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(other.iterdir()) == []
