"""Each fault of each process during the main flows: build, log stream, SSH session, writes (docs/reliability.md).

A whole deployment in network namespaces; every case leaves it as it found it, so they share one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.kit.network.namespace_deployment import PROCESSES, descendants, name_of, open_deployment
from tests.kit.network.network_namespaces import missing_tools
from tests.system.faults.main_flows import FAKED, SOON, Flows, Scene, signal_all

TERRAFORM = shutil.which("terraform") or ""
MISSING = missing_tools() or ("" if TERRAFORM else "terraform is not installed")
pytestmark = [pytest.mark.system, pytest.mark.soak, pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")]
WORKERS = tuple(name for name in PROCESSES if name not in {"keeper", "api-2"})
A_WHILE = 40
"""Writes that are tried before a fault ends: some ten seconds."""
LOSS = 10
"""Percent of the packets that are lost, in each direction; the others wait for their repetition."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with open_deployment({"CODER_PROCESSES": "2"}, {"daemon": "10.77.0.4"}) as deployment:
        found = Scene(deployment)
        found.prepare()
        deployment.world.drop_udp()  # every packet of a session passes the relay
        yield found


@dataclass(frozen=True)
class Fault:
    """A fault of a process; `cause` is what the log of a role says about it."""

    process: str
    name: str
    inject: Callable[[Scene, Flows], None]
    log: str = "server.log"
    cause: str = ""

    @property
    def id(self) -> str:
        return f"{self.process}-{self.name}"


def _pid(scene: Scene, name: str) -> int:
    return scene.deployment.server_processes()[name]


def _wait_replaced(scene: Scene, name: str, before: int) -> None:
    def replaced() -> bool:
        return scene.deployment.server_processes().get(name, before) != before and scene.deployment.answers()

    scene.deployment.wait(replaced, SOON, f"{name} was not replaced")


def _signalled(name: str, number: signal.Signals) -> Callable[[Scene, Flows], None]:
    """A worker gets a signal, and the supervisor replaces it."""

    def inject(scene: Scene, _flows: Flows) -> None:
        before = _pid(scene, name)
        os.kill(before, number)
        _wait_replaced(scene, name, before)

    return inject


@contextlib.contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    signal_all(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(pids, signal.SIGCONT)


def _stop_server(scene: Scene, flows: Flows) -> None:
    """All processes but the database."""
    assert scene.deployment.server is not None
    pids = [scene.deployment.server.pid, *(_pid(scene, name) for name in PROCESSES)]
    with stopped(pids):
        flows.wait_writes(10)


def _stop_supervisor(scene: Scene, flows: Flows) -> None:
    assert scene.deployment.server is not None
    with stopped([scene.deployment.server.pid]):
        flows.wait_writes(A_WHILE)


def _postgres(scene: Scene) -> list[int]:
    return [pid for pid in descendants(_pid(scene, "keeper")) if name_of(pid).startswith("postgres")]


def _stop_database(scene: Scene, _flows: Flows) -> None:
    """Until load balancers are told."""
    with stopped(_postgres(scene)):
        scene.deployment.wait(lambda: not scene.deployment.answers(), SOON, "the server does not say it")
    scene.deployment.wait(scene.deployment.answers, SOON, "the server does not return")


def _kill_backend(scene: Scene, _flows: Flows) -> None:
    """As the kernel does where memory is short: PostgreSQL then starts all of its processes again."""
    postmaster = min(_postgres(scene))
    backend = next(pid for pid in _postgres(scene) if b"coder" in Path(f"/proc/{pid}/cmdline").read_bytes()[:40])
    assert backend != postmaster
    os.kill(backend, signal.SIGKILL)
    scene.deployment.wait(scene.deployment.answers, SOON, "the server does not return")


def _end_listeners(scene: Scene, flows: Flows) -> None:
    """What is posted until the processes listen again is lost."""

    async def end() -> int:
        sockets = next((scene.deployment.folder / "srv").rglob(".s.PGSQL.5432")).parent
        connection = await asyncpg.connect(f"postgresql://coder@/coder?host={sockets}")
        ended = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND (query LIKE 'LISTEN%' OR query = 'SELECT 1')"
        )
        await connection.close()
        return int(ended)

    assert asyncio.run(end()) > 0
    flows.wait_writes(5)


@contextlib.contextmanager
def few_descriptors(pids: list[int]) -> Iterator[None]:
    """Let processes open nothing that they have not open already."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def _exhausted(name: str) -> Callable[[Scene, Flows], None]:
    def inject(scene: Scene, flows: Flows) -> None:
        with few_descriptors([_pid(scene, name)]):
            flows.wait_writes(A_WHILE)

    return inject


def _exhaust_daemon(scene: Scene, flows: Flows) -> None:
    """Its connection breaks meanwhile, and it cannot open another."""
    assert scene.daemon is not None
    before = scene.size("daemon.log")
    with few_descriptors([scene.daemon.pid]):
        _restart_connections(scene)
        scene.wait_said("daemon.log", "not connected.*Too many open files", before)
        flows.wait_writes(10)


def _restart_connections(scene: Scene) -> None:
    """End the processes that have connections."""
    for name in ("api-1", "api-2"):
        before = _pid(scene, name)
        os.kill(before, signal.SIGKILL)
        _wait_replaced(scene, name, before)


def _stop_daemon(scene: Scene, flows: Flows) -> None:
    assert scene.daemon is not None
    with stopped([scene.daemon.pid]):
        flows.wait_writes(2 * A_WHILE)


def _set_clock(scene: Scene, flows: Flows) -> None:
    """Of the daemon's machine, a day ahead and a day back."""
    if FAKED is None:
        pytest.skip("the package faketime is not installed")
    for seconds in (86_400, -86_400, 0):
        scene.set_clock(seconds)
        flows.wait_writes(A_WHILE // 2)


def _cut_off(host: str) -> Callable[[Scene, Flows], None]:
    def inject(scene: Scene, flows: Flows) -> None:
        scene.deployment.world.unplug(host)
        try:
            flows.wait_writes(2 * A_WHILE if host == "daemon" else 10)
        finally:
            scene.deployment.world.unplug(host, plugged=True)

    return inject


def _lossy(host: str) -> Callable[[Scene, Flows], None]:
    def inject(scene: Scene, flows: Flows) -> None:
        scene.deployment.world.lose_packets(host, LOSS)
        try:
            flows.wait_writes(A_WHILE)
        finally:
            scene.deployment.world.lose_packets(host, 0)

    return inject


REPLACED = "a process was lost and is replaced.*{}"
STALLED = "a process stands still and is killed.*{}"
FAULTS = (
    *(Fault(name, "killed", _signalled(name, signal.SIGKILL), cause=REPLACED.format(name)) for name in WORKERS),
    *(Fault(name, "stopped", _signalled(name, signal.SIGSTOP), cause=STALLED.format(name)) for name in WORKERS),
    *(Fault(name, "descriptors", _exhausted(name)) for name in WORKERS),
    Fault("supervisor", "stopped", _stop_supervisor),
    Fault("server", "stopped", _stop_server),
    Fault("server", "cut", _cut_off("srv")),
    Fault("server", "loss", _lossy("srv")),
    Fault("database", "stopped", _stop_database, cause="the database does not answer"),
    Fault("database", "memory", _kill_backend, cause="the database does not answer"),
    Fault("database", "listeners", _end_listeners, cause="the listening connection was lost"),
    Fault("daemon", "stopped", _stop_daemon),
    Fault("daemon", "cut", _cut_off("daemon")),
    Fault("daemon", "loss", _lossy("daemon")),
    Fault("daemon", "clock", _set_clock),
    Fault("daemon", "descriptors", _exhaust_daemon, "daemon.log", "Too many open files"),
    Fault("agent", "loss", _lossy("agent")),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_flows_survive(scene: Scene, fault: Fault) -> None:
    before, of_server = scene.size(fault.log), scene.size("server.log")
    with scene.flows() as flows:
        fault.inject(scene, flows)
    if fault.cause:
        scene.wait_said(fault.log, fault.cause, before)
    said = (scene.deployment.folder / "server.log").read_bytes()[of_server:].decode(errors="replace")
    assert not re.search(r"internal error|Traceback", said), said[-3000:]
