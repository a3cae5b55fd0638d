"""The supervisor of `coder server --processes N`: forks the processes, replaces those that are lost, drains, reloads.

It has one thread and no event loop, so it can fork at any time; children share its memory. Order: sockets, the keeper
of the built-in PostgreSQL, migrations, workers; the end is in the reverse order. A worker that ends, or whose loop
stands still for `STALL` seconds, is replaced, and named in the log, the health report and a metric.

Not here: duties (`layout.py`), when a lost process is replaced (`losses.py`), code of the processes (`forked.py`),
executing another program (`reload.py`).
"""

from __future__ import annotations

import contextlib
import gc
import selectors
import shutil
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from coder.appproxy.http.overload import OverloadSign
from coder.appproxy.http.shared_counts import SharedCounts
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.app import ProvisionerFactory, prepare_application
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.server.quart_fixes import Application
from coder.coderd.processes import reload
from coder.coderd.processes.children import Child, Door, fork, reap_orphans
from coder.coderd.processes.control import ControlLink, Order
from coder.coderd.processes.forked import SYSTEM_REFUSED, run_keeper, run_migrations, run_worker
from coder.coderd.processes.layout import ProcessSpec, connections_of, processes_of
from coder.coderd.processes.losses import Losses
from coder.coderd.processes.signals import handling_signals, signals_blocked, take_arrived
from coder.coderd.processes.sockets import bind_or_keep, new_folder, open_door, remove_door
from coder.coderd.services.foundation.this_process import INSTANCES, Sibling, ThisProcess, instance_id
from coder.net.aws_login import with_login

STALL = 10.0
"""Seconds without a heartbeat after which a process is killed."""
START_TIMEOUT = 180.0
"""Seconds for a process to start: it may wait 30 s for its database, on a busy machine."""
STOP_TIMEOUT = 60.0
"""Seconds for a process to drain: requests have 10, deferred work 10, running jobs 10 to be interrupted in order."""
RETIRE_TIMEOUT = 3600.0
"""Seconds for the jobs of built-in daemons, after a successor of their process has started."""
KEEPER_STOP_TIMEOUT = KEEPER_STALL = 60.0  # a keeper that stands still does harm only when PostgreSQL has ended
_TICK = 1.0
_log = get_logger("supervisor")


class _StopRequestedError(Exception):
    """SIGTERM or SIGINT arrived while the supervisor waited for something."""


class Supervisor:
    """Processes of one server. `run` returns after an orderly stop."""

    def __init__(
        self,
        config: ServerConfig,
        factory: ProvisionerFactory | None,
        announce: Callable[[str], None],
        preload: Callable[[], None],
        inherited: reload.State | None = None,
    ) -> None:
        self._inherited = inherited
        self._config, self._factory, self._announce, self._preload = config, factory, announce, preload
        self._specs = processes_of(config.processes)
        self._workers: list[Child] = []
        self._keeper: Child | None = None
        self._database_url = with_login(config.postgres_url.reveal(), config.postgres_auth)
        self._sockets, self._kept_because = bind_or_keep(config, inherited.sockets if inherited is not None else ())
        self._folder, self._machine, self._next_number = Path(), uuid4(), 0
        self._counts = SharedCounts(len(self._specs), 2 * len(self._specs))
        self._overload = OverloadSign()
        self._tables: dict[int, int] = {}
        self._losses = Losses()
        self._shown: set[str] = set()
        "Names of ready processes at the last broadcast."
        self._is_up = self._is_stopping = self._reload_requested = False
        self._turned_at = time.monotonic()
        self._application: Application
        self._selector = selectors.DefaultSelector()
        self._wakeups: tuple[socket.socket, socket.socket] | None = None
        self._ends_on_hangup = sys.stdin is not None and sys.stdin.isatty()

    def run(self) -> None:
        """Run until SIGINT or SIGTERM. Raises CoderError when the server cannot start, or its database is lost."""
        with handling_signals() as self._wakeups:
            self._selector.register(self._wakeups[0], selectors.EVENT_READ)
            try:
                if self._inherited is None:
                    self._folder = new_folder()
                    self._start()
                else:
                    self._take_over(self._inherited)
                while not self._is_stopping:
                    self._turn()
                    if self._reload_requested and not self._is_stopping:
                        self._reload()
            except _StopRequestedError:
                pass
            finally:
                self._stop()

    # ---- starting

    def _start(self) -> None:
        self._load()
        if not self._database_url:
            self._start_keeper()
        self._migrate()
        for spec in self._specs:
            self._fork_worker(spec)
        self._wait(lambda: all(child.is_ready for child in self._workers), self._workers)
        self._is_up = True
        self._broadcast()
        for bound in self._sockets:
            self._announce(f"Started HTTP listener at {bound.url}")
        first = self._workers[0].report
        self._announce(f"\nView the Web UI: {first.access_url if first is not None else ''}")

    def _load(self) -> None:
        """Load what all processes use, so that they share its memory."""
        self._preload()
        self._application = prepare_application(self._config)
        sys._clear_type_cache()  # each entry that a process replaces would give it a copy of a shared page
        gc.collect()
        gc.freeze()

    def _start_keeper(self) -> None:
        keeper = self._fork_keeper()
        self._wait(lambda: keeper.is_ready, [keeper])
        self._database_url = keeper.report.database_url if keeper.report is not None else ""

    def _fork_keeper(self) -> Child:
        async def run(link: ControlLink) -> None:
            await run_keeper(link, self._config)

        keeper = self._keeper = self._fork("keeper", run)
        self._losses.due.pop("keeper", None)
        return keeper

    def _migrate(self) -> None:
        async def run(link: ControlLink) -> None:
            connections = self._config.postgres_conn_max_open + len(self._specs)  # one of each process listens
            await run_migrations(link, self._database_url, connections)

        child = self._fork("migrations", run)
        try:
            self._wait(lambda: child.status is not None, [], also=child)
        except BaseException:
            child.signal(signal.SIGKILL)  # PostgreSQL undoes what it had begun
            raise
        if child.status:
            raise child.failure or CoderError("start_failed", f"the migrations {child.describe_end()[1]}")

    def _fork(self, name: str, run: Callable[[ControlLink], Awaitable[None]], door: Door | None = None) -> Child:
        """Fork and watch a process, without the control of others, or they would outlive us. Raises CoderError."""
        others = [*self._workers, *([self._keeper] if self._keeper is not None else [])]
        private = [*(self._wakeups or ()), *(child.control for child in others if child.status is None)]
        try:
            child = fork(name, run, private, door)
        except OSError as error:
            raise CoderError("start_failed", f"the process {name} cannot be started: {error.strerror}") from error
        try:
            self._selector.register(child.control, selectors.EVENT_READ, child)
        except OSError as error:
            child.kill_unwatched()
            raise CoderError("start_failed", f"the process {name} cannot be watched: {error.strerror}") from error
        return child

    def _fork_worker(self, spec: ProcessSpec) -> Child:
        """Fork a worker. Raises CoderError when the system has no process, descriptor or room on the disk left."""
        number, self._next_number = self._next_number, (self._next_number + 1) % INSTANCES
        listener, path, self._folder = open_door(self._folder, number)
        with listener:
            try:
                return self._fork_at(spec, number, listener, path)
            except CoderError:
                remove_door(str(path))
                raise

    def _fork_at(self, spec: ProcessSpec, number: int, listener: socket.socket, path: Path) -> Child:
        table = self._tables[spec.slot] = (self._tables.get(spec.slot, -1) + 1) % 2
        count = len(self._specs)
        connections = connections_of(spec, self._config.processes, self._config.postgres_conn_max_open)
        waits_for_ports = any(other.name == spec.name and other.status is None for other in self._workers)

        async def run(link: ControlLink) -> None:
            process = ThisProcess(
                spec.name,
                instance_id(self._machine, number),
                spec.duties,
                count,
                listener=listener,
                counts=self._counts.for_table(2 * spec.slot + table),
                overload=self._overload,
                ports_free=link.ports_free,
                retiring=link.retire_requested,
            )
            if not waits_for_ports:
                link.ports_free.set()
            url, shared = self._database_url, self._application
            await run_worker(link, self._config, url, self._sockets, self._factory, process, connections, shared)

        child = self._fork(spec.name, run, Door(number, str(path), tuple(sorted(spec.duties))))
        child.waits_for_ports = waits_for_ports
        self._workers.append(child)
        self._losses.due.pop(spec.name, None)
        return child

    # ---- turning

    def _wait(self, condition: Callable[[], bool], needed: list[Child], also: Child | None = None) -> None:
        """Turn until the condition holds. Raises the failure of a needed process, or CoderError after a timeout."""
        until = time.monotonic() + START_TIMEOUT
        while not condition():
            if self._is_stopping:
                raise _StopRequestedError
            for child in needed:
                if child.status is not None:
                    raise child.failure or CoderError("start_failed", f"{child.name}: {child.describe_end()[1]}")
            if time.monotonic() > until:
                raise CoderError("start_failed", f"the server did not start within {START_TIMEOUT:.0f} s")
            self._turn(also)

    def _turn(self, also: Child | None = None) -> None:
        """Wait for an event or a second, then deal with what happened."""
        waited_from = time.monotonic()
        for key, _ in self._selector.select(_TICK):
            if isinstance(key.data, Child):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)
            elif self._wakeups is not None:
                self._wakeups[0].recv(1 << 16)
        self._receive_signals()
        now = time.monotonic()
        if now - min(self._turned_at, waited_from) > STALL / 2:
            self._excuse()  # the machine, or we, stood still: heartbeats had no chance
        self._turned_at = now
        children = [*self._workers, *filter(None, (self._keeper, also))]
        for child in children:
            with contextlib.suppress(KeyError, ValueError):
                if child.status is not None or not child.reap():
                    continue
                self._selector.unregister(child.control)
        reap_orphans([child.pid for child in children])
        self._replace_ended()
        for child in self._workers:
            child.end_overdue(now, STALL, START_TIMEOUT)
        if self._keeper is not None and self._keeper.is_ready and not self._config.ephemeral:
            self._keeper.end_overdue(now, KEEPER_STALL, START_TIMEOUT)

    def _receive_signals(self) -> None:
        for number in take_arrived():
            if number == signal.SIGHUP and not self._ends_on_hangup:
                self._reload_requested = True
            elif number in {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} and not self._is_stopping:
                self._is_stopping = True
                self._announce(f"{signal.Signals(number).name} received, shutting down")

    def _excuse(self) -> None:
        for child in [*self._workers, *filter(None, (self._keeper,))]:
            child.beat_at = time.monotonic()

    def _replace_ended(self) -> None:
        ended = [child for child in self._workers if child.status is not None]
        if not self._is_up or self._is_stopping:
            return
        for child in ended:
            self._workers.remove(child)
            remove_door(child.socket_path)
            if child.is_leaving:
                continue
            if any(other.name == child.name and not other.is_leaving for other in self._workers):
                continue  # a successor that did not start: the former one goes on
            self._losses.note_instance(instance_id(self._machine, child.number))
            self._losses.record(child, is_replaced=any(spec.name == child.name for spec in self._specs))
        if ended:
            self._broadcast()
        for child in self._workers:
            if child.waits_for_ports and [other.name for other in self._workers].count(child.name) == 1:
                child.free_ports()
        if self._keeper is not None:
            self._check_keeper(self._keeper)
        for spec in self._specs:
            if self._losses.is_due(spec.name):
                self._try_to_start(spec.name, partial(self._fork_worker, spec))
        ready = {child.name for child in self._workers if child.is_ready}
        if ready != self._shown:
            self._broadcast()

    def _try_to_start(self, name: str, start: Callable[[], object]) -> None:
        """Start a process that is due; when the system refuses, it is due again later."""
        try:
            start()
        except CoderError as error:
            self._losses.postpone(name)
            _log.error("a process cannot be started, which is tried again", process=name, error=error)

    def _check_keeper(self, keeper: Child) -> None:
        """Replace a lost keeper. Raises CoderError when the database cannot be started again."""
        if keeper.status is None:
            if keeper.report is not None and keeper.report.database_url not in {"", self._database_url}:
                raise CoderError("postgres_failed", "the built-in PostgreSQL came back at another address")
            return
        if keeper.failure is not None and keeper.failure.code != SYSTEM_REFUSED:
            raise keeper.failure
        if "keeper" not in self._losses.due:
            self._losses.record(keeper, is_replaced=True)
            self._broadcast()
        if self._losses.is_due("keeper"):
            self._try_to_start("keeper", self._fork_keeper)

    def _broadcast(self) -> None:
        """Send all processes what they have to know of each other."""
        self._shown = {child.name for child in self._workers if child.is_ready}
        living = [
            Sibling(child.name, instance_id(self._machine, child.number), child.socket_path, child.duties)
            for child in self._workers
            if child.is_ready and not child.is_leaving and child.status is None
        ]
        losses = self._losses
        order = Order("siblings", living, losses.instances, losses.incidents, losses.restarts)
        for child in self._workers:
            child.send(order)

    # ---- replacing all

    def _reload(self) -> None:
        """Execute the program again, which keeps sockets and processes and then replaces these."""
        self._reload_requested = False
        _log.info("SIGHUP received: checking the program and its settings")
        trial = reload.start_trial({bound.address for bound in self._sockets})
        if trial is None:
            return
        self._watch_pid(trial)
        if self._is_stopping:
            trial.signal(signal.SIGKILL)
            return
        if trial.status != 0:
            _log.error("the program on disk does not start; nothing is changed", cause=trial.describe_end()[1])
            return
        state = reload.State(
            machine=str(self._machine),
            next_number=self._next_number,
            folder=str(self._folder),
            database_url=self._database_url,
            sockets=[(bound.url, bound.address, bound.socket.fileno()) for bound in self._sockets],
            workers=[reload.inherited(child) for child in self._workers if child.status is None],
            keeper=reload.inherited(self._keeper) if self._keeper is not None else None,
            lost=[str(lost) for lost in self._losses.instances],
            incidents=self._losses.incidents,
            restarts=self._losses.restarts,
        )
        with signals_blocked():
            reload.execute(state)  # returns only when it failed

    def _watch_pid(self, trial: Child) -> None:
        until = time.monotonic() + reload.TRIAL_TIMEOUT
        # A lost keeper is replaced first: the next program could not take it over.
        while (trial.status is None or (self._keeper and self._keeper.status is not None)) and not self._is_stopping:
            self._turn(trial)
            if time.monotonic() > until:
                trial.signal(signal.SIGKILL)

    def _take_over(self, state: reload.State) -> None:
        """Continue the work of the program that executed this one."""
        self._machine, self._next_number = UUID(state.machine), state.next_number
        self._folder = Path(state.folder)
        self._losses.inherit(state.lost, state.incidents, state.restarts)
        old = [reload.adopt(child) for child in state.workers]
        self._workers = list(old)
        self._keeper = reload.adopt(state.keeper) if state.keeper is not None else None
        for child in [*old, *([self._keeper] if self._keeper is not None else [])]:
            self._selector.register(child.control, selectors.EVENT_READ, child)
        self._database_url = self._database_url or state.database_url
        self._load()
        self._is_up = True
        self._broadcast()
        try:
            if self._kept_because is not None:
                raise self._kept_because
            self._migrate()
            for spec in self._specs:
                self._succeed(spec, [child for child in old if child.name == spec.name])
        except CoderError as error:
            _log.error("the processes could not be replaced; those of before go on", error=error)
            self._replace_missing()
            return
        names = {spec.name for spec in self._specs}
        self._drain([child for child in old if child.name not in names])
        _log.info("all processes were replaced")

    def _replace_missing(self) -> None:
        """Plan the start of processes that were lost before the takeover, whose rest the former program forgot."""
        for spec in self._specs:
            if all(child.name != spec.name or child.is_leaving for child in self._workers):
                self._losses.due.setdefault(spec.name, time.monotonic())

    def _succeed(self, spec: ProcessSpec, old: list[Child]) -> None:
        """Replace a process: its successor first, so that its duties are never without a process. Raises CoderError
        when the successor does not start."""
        child = self._fork_worker(spec)
        self._wait(lambda: child.is_ready, [child])
        self._broadcast()
        retiring = [former for former in old if spec.retires and former.knows_retiring]
        for former in retiring:
            former.ask_to_retire(RETIRE_TIMEOUT)
        self._drain([former for former in old if former not in retiring])

    def _drain(self, children: list[Child]) -> None:
        for child in children:
            child.ask_to_stop(STOP_TIMEOUT)
        self._broadcast()
        while any(child.status is None for child in children):
            if self._is_stopping:
                raise _StopRequestedError
            self._turn()

    # ---- stopping

    def _stop(self) -> None:
        self._is_stopping = True
        for child in self._workers:
            child.ask_to_stop(STOP_TIMEOUT)
        while any(child.status is None for child in self._workers):
            self._turn()
        if self._keeper is not None and self._keeper.status is None:
            self._keeper.send(Order("stop"))
            self._keeper.signal(signal.SIGCONT)  # a stopped process would not read it
            until = time.monotonic() + KEEPER_STOP_TIMEOUT
            while self._keeper.status is None:
                self._turn()
                if time.monotonic() > until:
                    self._keeper.signal(signal.SIGKILL)
        for bound in self._sockets:
            bound.socket.close()
        self._selector.close()
        if self._folder != Path():
            shutil.rmtree(self._folder, ignore_errors=True)
