"""Upgrades: the download, the wait for quiet, and refused programs."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from coder.agent.activity import Activity
from coder.agent.reports.ordered_reports import OrderedReports
from coder.agent.reports.outbox import Outbox
from coder.agent.upgrade import upgrader
from coder.agent.upgrade.folder import locked
from coder.agent.upgrade.outcomes import UpgradeNotNowError, UpgradeRefusedError
from coder.agent.upgrade.records import MAX_ATTEMPTS, MAX_RECORDS, Records
from coder.agent.upgrade.upgrader import NewProgram, Upgrader
from coder.net.errors import NetError
from coder.net.http1 import HttpResponse
from coder.net.policy import DialPolicy


@pytest.fixture(autouse=True)
def _in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run disk calls in this thread: a jumping clock would not wait for another."""

    async def run_here(function: Any, *arguments: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    monkeypatch.setattr(upgrader, "on_disk", run_here)


class Server:
    """Server as the upgrader sees it: a version, and a program or an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.version, self.outcome, self.fetched = "v99.0.0", list[Exception | None](), 0
        self.program, self.times = b"of the server", list[float]()
        monkeypatch.setattr(upgrader, "HttpClient", lambda _policy: self._client())
        monkeypatch.setattr(upgrader, "fetch_program", self._fetch)
        monkeypatch.setattr(upgrader, "check_again", self._check)
        monkeypatch.setattr(upgrader, "DOWNLOAD_SPREAD", 0.0)
        self.checked = list[str]()
        self.check_outcome = list[Exception]()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        yield self

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.program).hexdigest()

    async def request(self, _method: str, path: str, *, expect: tuple[int, ...] = ()) -> HttpResponse:
        if path.endswith(".sha256"):
            return HttpResponse(200, {}, f"{self.digest}  coder\n".encode())
        assert path == "/api/v2/buildinfo" and not expect
        return HttpResponse(200, {}, json.dumps({"version": self.version}).encode())

    async def _fetch(self, *_: Any) -> Path:
        self.fetched += 1
        self.times.append(trio.current_time())
        if self.outcome and (problem := self.outcome.pop(0)) is not None:
            raise problem
        return Path("/fetched")

    async def _check(self, _folder: Path, _path: Path, _version: str, digest: str) -> None:
        self.checked.append(digest)
        if self.check_outcome:
            raise self.check_outcome.pop(0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


class Running:
    """Running upgrader."""

    def __init__(self, folder: Path) -> None:
        self.activity = Activity()
        self.sent = OrderedReports[int](9)
        self.upgrader = Upgrader(DialPolicy("http://x"), folder, (self.activity, Outbox({"numbers": self.sent})))
        self.found: NewProgram | None = None

    async def run(self) -> None:
        self.found = await self.upgrader.run()

    async def connect(self) -> None:
        self.upgrader.check_now()
        await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    made = Running(folder)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_upgrade_waits_for_quiet(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        with made.activity.of("SSH connections"):
            await made.connect()
            assert server.fetched == 1 and made.found is None
        await trio.testing.wait_all_tasks_blocked()
        assert made.found == NewProgram(Path("/fetched"), "v99.0.0", server.digest)


async def test_unsent_reports_delay_upgrade(
    server: Server, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Later reports would never be sent."""
    async with running(tmp_path) as made:
        made.sent.add(1)
        made.upgrader.check_now()
        await trio.sleep(3600)  # disconnected
        assert made.found is None and server.fetched == 1
        reported: list[int] = []

        async def send(number: int) -> None:
            reported.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.sent.send_loop, send)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert reported == [1] and made.found is not None


async def test_reconnect_asks_server_again(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        with made.activity.of("scripts"):
            await made.connect()
            server.version = "v0.0.1"  # it was withdrawn
            await made.connect()
        await trio.testing.wait_all_tasks_blocked()
        assert made.found is None and server.fetched == 1


async def test_late_activity_delays_upgrade(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        end = trio.Event()

        async def follow() -> None:  # one session begins at the moment another ends
            with made.activity.of("SSH connections"):
                await end.wait()

        async with trio.open_nursery() as nursery:
            with made.activity.of("scripts"):
                await made.connect()
                nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            assert made.found is None
            end.set()
        await trio.testing.wait_all_tasks_blocked()
        assert made.found is not None


PASSING = [
    NetError("timeout", "gone"),
    OSError(28, "No space left on device"),
    RecursionError(),
    AssertionError("a defect"),
    ExceptionGroup("two", [ValueError("x")]),
    UpgradeNotNowError("it is v98.0.0, and the server is v99.0.0"),
]


@pytest.mark.parametrize("problem", PASSING, ids=lambda problem: type(problem).__name__)
async def test_reconnect_keeps_retry_delay(
    problem: Exception, server: Server, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    server.outcome = [problem, problem, problem, None]
    async with running(tmp_path) as made:
        while made.found is None:
            made.upgrader.check_now()  # a connection that opens and closes
            await trio.sleep(1)
    first = upgrader.FIRST_DELAY
    gaps = [later - earlier for earlier, later in pairwise(server.times)]
    assert len(gaps) == 3 and all(
        gap == pytest.approx(first * 2**number, rel=0.2) for number, gap in enumerate(gaps)
    ), server.times
    assert not (tmp_path / "refused.json").exists()


async def test_refused_program_is_never_retried(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "of-this-agent"
    folder.mkdir()
    server.outcome = [UpgradeRefusedError("it does not run here")]
    async with running(folder) as made:
        await made.connect()
        await made.connect()
        assert server.fetched == 1
    (verdict,) = json.loads((folder / "refused.json").read_text())["refused"]
    assert (verdict["digest"], verdict["version"]) == (server.digest, "v99.0.0")
    assert verdict["reason"] == "it does not run here"
    async with running(folder) as later:  # another process
        await later.connect()
        server.version = "v99.0.1"  # the same bytes: another version name does not make them run
        await later.connect()
        assert server.fetched == 1
        server.program = b"mended, under the same version"
        await later.connect()
        assert server.fetched == 2 and later.found is not None


async def test_verdicts_are_bounded(server: Server, tmp_path: Path) -> None:
    """Replicas of two versions answer in turn."""
    programs = [str(number).encode() for number in range(MAX_RECORDS + 1)]
    server.outcome = [UpgradeRefusedError("no")] * len(programs)
    async with running(tmp_path) as made:
        for server.program in programs * 2:
            await made.connect()
        assert server.fetched == len(programs)
    kept = json.loads((tmp_path / "refused.json").read_text())["refused"]
    assert [one["digest"] for one in kept] == [hashlib.sha256(one).hexdigest() for one in programs[1:]]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"version": "v99.0.0", "reason": "of a rule before", "at": 1}', "[]", "{", '{"refused": 1}'],
)
async def test_temporary_failure_refuses_nothing(server: Server, tmp_path: Path, text: str) -> None:
    (tmp_path / "refused.json").write_text(text)
    async with running(tmp_path) as made:
        await made.connect()
        assert made.found is not None


async def test_failed_rehearsal_blocks_upgrade(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    def refused() -> None:
        tries.append(trio.current_time())
        if len(tries) < 3:
            raise OSError(28, "No space left on device")

    tries: list[float] = []
    monkeypatch.setattr(upgrader, "rehearse", refused)
    async with running(tmp_path) as made:
        made.upgrader.check_now()
        while made.found is None:
            await trio.sleep(1)
    assert len(tries) == 3


async def test_unsaved_verdict_holds_for_process(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    server.outcome = [UpgradeRefusedError("no")]
    async with running(tmp_path / "file") as made:
        await made.connect()
        await made.connect()
        assert server.fetched == 1 and made.found is None


async def test_unstartable_program_is_held_locally(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        made.upgrader.refuse(server.digest, "v99.0.0", "it could not be started: Text file busy")
        await made.connect()
        assert server.fetched == 0 and not (tmp_path / "refused.json").exists()


async def test_reconnects_download_nothing(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path) as made:
        with made.activity.of("SSH connections"):
            for _ in range(5):
                await made.connect()
            assert (server.fetched, server.checked) == (1, [])
            server.program = b"of another replica"
            await made.connect()
            assert server.fetched == 2
        await trio.testing.wait_all_tasks_blocked()
        assert made.found is not None and made.found.digest == server.digest


async def test_old_check_is_repeated(server: Server, tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running(tmp_path) as made:
        with made.activity.of("SSH connections"):
            made.upgrader.check_now()
            await trio.sleep(3 * 24 * 3600)
            assert server.checked == []
            server.check_outcome = [UpgradeNotNowError("it does not run here: no space")]
        await trio.sleep(1)
        assert made.found is None and server.checked == [server.digest] and server.fetched == 1
        await trio.sleep(2 * upgrader.FIRST_DELAY)
        assert made.found is not None and server.fetched == 2


async def test_download_turn_survives_reconnect(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(upgrader, "DOWNLOAD_SPREAD", 900.0)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    async with running(tmp_path) as made:
        began = trio.current_time()
        made.upgrader.check_now()
        for _ in range(4):
            await trio.sleep(100)
            made.upgrader.check_now()
            assert server.fetched == 0
        await trio.sleep(100)
        assert [at - began for at in server.times] == [pytest.approx(450)]


async def test_short_lived_program_is_held(
    server: Server, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The program takes over, breaks, and the service manager starts the old one."""
    for number in range(MAX_ATTEMPTS + 1):
        async with running(tmp_path) as made:
            made.upgrader.check_now()
            await trio.sleep(1)
            assert (made.found is not None) is (number < MAX_ATTEMPTS)
    made = Running(tmp_path)
    await made.upgrader.confirm_takeover(server.digest)  # an attempt that lasts
    async with running(tmp_path) as made:
        made.upgrader.check_now()
        await trio.sleep(1)
        assert made.found is not None


async def test_takeover_adopts_names_and_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    tmp_path.chmod(0o700)
    own, before = tmp_path / f"coder-{'1' * 16}", tmp_path / f"coder-{'0' * 16}"
    for path in (own, before):
        path.write_text(path.name)
    monkeypatch.setenv("CODER_SELF", str(own))
    Records(tmp_path).record_attempt("x", "v9")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Running(tmp_path).upgrader.confirm_takeover, "x")
        await trio.sleep(upgrader.PROVEN_AFTER / 2)
        assert before.read_text() == own.name and "x" in (tmp_path / "attempts.json").read_text()
        await trio.sleep(upgrader.PROVEN_AFTER)
        assert "x" not in (tmp_path / "attempts.json").read_text().replace("attempts", "")


async def test_locked_folder_still_marks_lasting(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    """Two agents of one name on a machine: the other one downloads, which may take two hours."""
    tmp_path.chmod(0o700)
    Records(tmp_path).record_attempt("x", "v9")
    with locked(tmp_path):
        await Running(tmp_path).upgrader.confirm_takeover("x")
    assert "x" not in (tmp_path / "attempts.json").read_text().replace("attempts", "")


async def test_cleanup_failure_ends_nothing(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    (tmp_path / "file").touch()
    await Running(tmp_path / "file").upgrader.confirm_takeover("x")


async def test_request_skips_spread_and_delay(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(upgrader, "DOWNLOAD_SPREAD", 900.0)
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    server.outcome = [OSError(28, "No space left on device")]
    async with running(tmp_path) as made:
        assert made.upgrader.describe()["state"] == "watching"
        await made.connect()
        assert made.upgrader.describe()["state"] == "queued"
        began = trio.current_time()
        made.upgrader.request()
        await trio.testing.wait_all_tasks_blocked()
        described = made.upgrader.describe()
        assert (described["state"], described["server_version"]) == ("failed", "v99.0.0")
        assert "No space left" in str(described["detail"])
        with made.activity.of("SSH connections"):
            made.upgrader.request()
            await trio.testing.wait_all_tasks_blocked()
            described = made.upgrader.describe()
            assert (described["state"], described["detail"]) == ("waiting", "SSH connections: 1")
        await trio.testing.wait_all_tasks_blocked()
        assert made.found is not None and made.upgrader.describe()["state"] == "restarting"
        assert trio.current_time() == began


async def test_request_keeps_refusal(server: Server, tmp_path: Path) -> None:
    server.outcome = [UpgradeRefusedError("it does not run here")]
    async with running(tmp_path) as made:
        await made.connect()
    async with running(tmp_path) as later:  # another process
        later.upgrader.request()
        await trio.testing.wait_all_tasks_blocked()
        assert server.fetched == 1 and later.found is None
        described = later.upgrader.describe()
        assert (described["state"], described["detail"]) == ("refused", "it does not run here")


async def test_request_reports_current_program(server: Server, tmp_path: Path) -> None:
    server.version = "v0.0.1"
    async with running(tmp_path) as made:
        made.upgrader.request()
        await trio.testing.wait_all_tasks_blocked()
        assert made.upgrader.describe()["state"] == "watching"
