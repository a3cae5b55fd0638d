"""Containers on the agent's machine: listed for the API; dev containers built, followed, and each given a sub-agent.

One task polls every few seconds as long as an engine is installed; each running dev container has a supervisor task.
Rules without I/O are in `entries.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from uuid import UUID

import trio

from coder.agent.config import DevcontainerSettings
from coder.agent.devcontainers.builder import CLI_MISSING, Built, build, find_devcontainer_cli, read_configuration
from coder.agent.devcontainers.commands import CommandError, run_command
from coder.agent.devcontainers.engine import ContainerRow, Listing, find_engine, list_containers
from coder.agent.devcontainers.entries import (
    Busy,
    Devcontainer,
    apply_declared,
    apply_listing,
    declared,
    id_of_folder,
    warn_foreign,
)
from coder.agent.devcontainers.projects import descriptions, find_projects
from coder.agent.devcontainers.sub_agent_reconciler import SubAgentReconciler
from coder.agent.devcontainers.sub_agent_supervisor import SubAgentSupervisor
from coder.agent.devcontainers.sub_agents import SubAgent, SubAgentClient
from coder.agent.disk import DISK_TIMEOUT, Threads, on_disk
from coder.agent.shared_poll import SharedPoll
from coder.agent.state import AgentState, DevcontainerBusyError
from coder.agent.upgrade.handover import KeptContainer
from coder.agent.workspace import environment
from coder.agent.workspace.logs import MAX_LINE, LogQueue
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.rpc.proto import agent_pb2

log = get_logger("agent.devcontainers")

INTERVAL, IDLE_INTERVAL = 10.0, 30.0
"""Seconds (ours) between two polls, and between two polls as long as no dev container is known."""
FRESHNESS = 1.0
"""Seconds (ours) that a poll's result is fresh enough for a reader."""
CLEANUP_TIMEOUT = 10.0
REMOVE_TIMEOUT = 15.0
"""Seconds (ours) for listing leftover sub-agents, and for an engine to remove a container."""
_AGE_THREADS, _PROJECT_THREADS = Threads(2), Threads(1)
"""Threads of their own: folders that do not answer hold none of the shared threads."""
_Level = agent_pb2.Log.Level


class Devcontainers:
    """Containers of one agent process; `start` opens the table, then the task of `run` polls."""

    def __init__(self, state: AgentState, logs: LogQueue, settings: DevcontainerSettings) -> None:
        self._state, self._logs, self._settings = state, logs, settings
        self.calls = SubAgentClient()
        self.watchers = 0
        self._known: dict[str, Devcontainer] = {}
        self._supervisors: dict[str, SubAgentSupervisor] = {}
        self._listing = Listing(())
        self._poll: SharedPoll[Listing] = SharedPoll()
        self._applying = trio.Lock()
        "Serializes polls and their application, so that the later one wins."
        self._foreign: list[ContainerRow] = []
        self._reconciler = SubAgentReconciler(state, self.calls, self._known.values, self._renew)
        self._opened, self._changed, self._wake = trio.Event(), trio.Event(), trio.Event()
        self._nursery: trio.Nursery | None = None
        self._started = self._auto_start_projects = False

    # ---- API

    async def fresh_listing(self) -> JsonObject:
        """Return the API's answer by a fresh poll."""
        await self.refresh(since=trio.current_time() - FRESHNESS)
        return self.cached_listing()

    def cached_listing(self) -> JsonObject:
        """Return the API's answer by the latest poll."""
        rows: JsonObject = {
            "devcontainers": [
                devcontainer.to_api()
                for devcontainer in sorted(self._known.values(), key=lambda devcontainer: devcontainer.folder)
            ],
            "containers": [row.to_api() for row in self._listing.containers],
        }
        warnings = [*self._listing.warnings, *warn_foreign(self._foreign)]
        return rows | ({"warnings": warnings} if warnings else {})

    def next_change(self) -> trio.Event:
        """Return the event that is set at the next poll or change. Take it before reading the state."""
        return self._changed

    @contextmanager
    def watched(self) -> Iterator[None]:
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1

    # ---- lifecycle

    async def run(self) -> None:
        """Poll until cancelled; then the sub-agents exit, and the server keeps their records."""
        await self._opened.wait()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._reconciler.run)
            if self._settings.discover:
                nursery.start_soon(self._contained, "discovering projects", self._discover)
            while True:
                self._wake = trio.Event()
                await self._contained("polling dev containers", self._poll_if_needed)
                with trio.move_on_after(INTERVAL if self._known else IDLE_INTERVAL):
                    await self._wake.wait()

    async def start(self, kept: Sequence[KeptContainer] | None = None) -> bool:
        """Apply the template's declarations and build them concurrently. Returns False when a build failed.

        With `kept`, the state of the previous program, running containers are only continued. Project discovery runs
        separately and delays nothing.
        """
        build_now = kept is None
        self._started, self._auto_start_projects = True, build_now and self._settings.autostart
        self._take_declared()
        for before in kept or ():
            devcontainer = self._entry_of(before.folder, before.config)
            devcontainer.built = Built(before.container_id, before.remote_user, before.workspace_folder)
        self.calls.mark_stale()  # the previous agent left its sub-agents
        with trio.move_on_after(CLEANUP_TIMEOUT):
            try:
                await self._reconciler.reconcile()
            except CommandError as error:
                log.warn("cleaning up an earlier agent's sub-agents failed", error=error)
        await self._contained("polling dev containers", self.refresh)
        requested = (
            [devcontainer for devcontainer in self._known.values() if devcontainer.declared] if build_now else []
        )
        self._opened.set()
        async with trio.open_nursery() as nursery:
            for devcontainer in requested:
                nursery.start_soon(self._build, devcontainer, False)
        self._wake.set()
        return not any(devcontainer.error for devcontainer in requested)

    def handover_state(self) -> list[KeptContainer]:
        """Return the state that the next program of this process cannot find out."""
        return [
            KeptContainer(
                devcontainer.folder,
                devcontainer.built.container_id,
                devcontainer.built.remote_user,
                devcontainer.built.workspace_folder,
                devcontainer.config,
            )
            for devcontainer in self._known.values()
            if devcontainer.built is not None
        ]

    def reset_sub_agents(self) -> None:
        """Reset the sub-agents after the server created another agent record: the old ones are orphans and are created
        again from this build's template. Newly declared dev containers are listed; like start scripts, nothing is
        built a second time."""
        for devcontainer in self._known.values():
            self._stop_supervisor(devcontainer)
            devcontainer.agent, devcontainer.request_bytes = None, b""
        if self._started:
            self._take_declared()
        self._notify()
        self._wake.set()

    @property
    def _root(self) -> Path:
        return self._state.directory or self._state.identity.home

    def _entry_of(self, folder: str, config: str = "") -> Devcontainer:
        return self._known.setdefault(folder, Devcontainer(id_of_folder(folder), Path(folder).name, folder, config))

    def _take_declared(self) -> None:
        if self._state.manifest is not None:
            apply_declared(self._known, declared(self._state.manifest, self._root, self._state.identity.home))

    def _renew(self, devcontainer: Devcontainer, agent: SubAgent | None) -> None:
        devcontainer.agent = agent
        if agent is None:
            devcontainer.request_bytes = b""
        self._stop_supervisor(devcontainer)
        self._wake.set()

    async def refresh(self, since: float | None = None) -> None:
        """Poll and apply the result: running containers get a sub-agent, stopped ones lose it.

        A poll of another caller counts when it began after `since` (seconds of trio's clock; by default none does).
        """
        requested = trio.current_time() if since is None else since
        async with self._applying:
            with self._poll.watched():
                self._listing = await self._poll.after(requested, self._list)
            await self._apply(self._listing)

    async def _contained(self, action: str, step: Callable[[], Awaitable[None]]) -> None:
        """Run `step`; a defect of ours must not end the agent."""
        try:
            await step()
        except Exception as error:
            log.error(f"{action} failed", error=error)

    async def _poll_if_needed(self) -> None:
        if self._known or await self._engine() is not None:
            await self._poll_dev_containers()

    async def _poll_dev_containers(self) -> None:
        """Poll dev containers only, while no reader asks for more: this costs one short command on a machine with many
        other containers."""
        env = environment.query_environment(self._state)
        async with self._applying:
            await self._apply(await list_containers(await self._engine(), env, only_dev=True))

    async def _apply(self, listing: Listing) -> None:
        before = set(self._known)
        self._foreign = apply_listing(self._known, listing)
        removed = before - self._known.keys()
        for devcontainer in list(self._known.values()):  # a caller may start or end a build meanwhile
            devcontainer.dirty = await self._is_dirty(devcontainer)
        self._update_supervisors()
        if removed:
            self.calls.mark_stale()  # their sub-agents are orphans now
        self._notify()

    async def _list(self) -> Listing:
        return await list_containers(await self._engine(), environment.query_environment(self._state))

    async def _engine(self) -> str | None:
        return await find_engine(environment.query_environment(self._state))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _is_dirty(self, devcontainer: Devcontainer) -> bool:
        """Return whether the description is younger than the container."""
        if devcontainer.container is None:
            return False
        try:
            created = datetime.fromisoformat(devcontainer.container.created_at).timestamp()
            with trio.move_on_after(DISK_TIMEOUT):
                return (
                    await on_disk(_changed_at, Path(devcontainer.folder), devcontainer.config, limiter=_AGE_THREADS)
                    > created
                )
        except (ValueError, OverflowError, OSError):
            pass
        return False

    async def _discover(self) -> None:
        with trio.move_on_after(DISK_TIMEOUT):
            try:
                result: Sequence[tuple[str, str]] = await on_disk(find_projects, self._root, limiter=_PROJECT_THREADS)
            except OSError:
                return
            for folder, config in result:
                self._entry_of(folder, config).discovered = True
        self._wake.set()
        if not self._auto_start_projects:
            return
        for devcontainer in list(self._known.values()):
            requested = (
                devcontainer.discovered
                and not devcontainer.declared
                and devcontainer.is_idle
                and await self._auto_starts(devcontainer)
            )
            if requested and devcontainer.is_idle:  # a caller may have started it meanwhile
                self._spawn(devcontainer, rebuild=False)

    async def _auto_starts(self, devcontainer: Devcontainer) -> bool:
        try:
            env = environment.query_environment(self._state)
            return (await read_configuration(devcontainer.folder, devcontainer.config, env)).auto_start
        except CommandError as error:
            log.debug("a description could not be read", folder=devcontainer.folder, error=error)
            return False

    # ---- building

    def recreate(self, ident: UUID) -> bool:
        """Begin to rebuild it, or to start one that has never run. Returns False when the id is unknown.

        Raises DevcontainerBusyError.
        """
        devcontainer = self._by_id(ident)
        if devcontainer is None:
            return False
        if devcontainer.busy or self._nursery is None:  # before the start scripts have run, it is built anyway
            raise DevcontainerBusyError(devcontainer.busy or "starting")
        self._spawn(devcontainer, rebuild=True)
        return True

    async def delete(self, ident: UUID) -> bool:
        """Remove its container and its sub-agent. Returns False when the id is unknown.

        Raises DevcontainerBusyError, CommandError.
        """
        devcontainer = self._by_id(ident)
        if devcontainer is None:
            return False
        if devcontainer.busy:
            raise DevcontainerBusyError(devcontainer.busy)
        with self._busy(devcontainer, "deleting"):
            await self._forget_agent(devcontainer)
            engine = await self._engine()
            if devcontainer.container is not None and engine is not None:
                env = environment.query_environment(self._state)
                argv = [engine, "rm", "--force", devcontainer.container.id]
                result = await run_command(argv, env, seconds=REMOVE_TIMEOUT, max_output=1 << 16)
                result.require("Removing the container")
            devcontainer.container, devcontainer.built, devcontainer.error = None, None, ""
        await self.refresh()
        return True

    def _by_id(self, ident: UUID) -> Devcontainer | None:
        return next((devcontainer for devcontainer in self._known.values() if devcontainer.id == ident), None)

    def _spawn(self, devcontainer: Devcontainer, *, rebuild: bool) -> None:
        devcontainer.busy = "starting"  # before the next poll
        self._notify()
        if self._nursery is not None:
            self._nursery.start_soon(self._build, devcontainer, rebuild)

    @contextmanager
    def _busy(self, devcontainer: Devcontainer, word: Busy) -> Iterator[None]:
        devcontainer.busy = word
        self._notify()
        try:
            yield
        finally:
            devcontainer.busy = ""
            self._notify()

    async def _build(self, devcontainer: Devcontainer, rebuild: bool) -> None:
        with self._busy(devcontainer, "starting"), self._state.activity.of("dev containers being built"):
            devcontainer.error = devcontainer.agent_error = ""
            lines = _Lines(self._logs, devcontainer)
            try:
                env = environment.command_environment(self._state)
                await find_devcontainer_cli(env)
                if rebuild:
                    await self._forget_agent(devcontainer)
                devcontainer.built = await build(
                    devcontainer.folder, devcontainer.config, env, lines.add_chunk, remove_existing=rebuild
                )
            except CommandError as error:
                devcontainer.error = str(error)
                if str(error) == CLI_MISSING:
                    devcontainer.error = f"{devcontainer.name} was not started: {error}"
                lines.end()
                self._logs.add(devcontainer.log_source, devcontainer.error, _Level.ERROR)
                log.warn(
                    "a dev container could not be built",
                    name=devcontainer.name,
                    folder=devcontainer.folder,
                    error=devcontainer.error,
                )
            except Exception as error:  # a defect of ours, which must not end the agent
                devcontainer.error = f"Building it failed: {type(error).__name__}"
                log.error("building a dev container failed", name=devcontainer.name, error=error)
            lines.end()
        failure = devcontainer.error
        await self._contained("polling dev containers", self.refresh)
        if failure and not devcontainer.running:
            devcontainer.error = failure

    # ---- sub-agents

    def _update_supervisors(self) -> None:
        """Start a supervisor for each running container, once the previous one of that folder has ended: each folder
        has at most one sub-agent."""
        for folder, supervisor in list(self._supervisors.items()):
            devcontainer = self._known.get(folder)
            if devcontainer is None or devcontainer.running_container_id != supervisor.container:
                if (
                    devcontainer is not None
                    and not devcontainer.running_container_id
                    and not devcontainer.busy
                    and not supervisor.is_stopping
                ):
                    self._logs.add(
                        devcontainer.log_source, f"The container of {devcontainer.name} has stopped.", _Level.WARN
                    )
                supervisor.stop()
            if supervisor.is_stopping and supervisor.ended.is_set():
                del self._supervisors[folder]
        for devcontainer in list(self._known.values()):
            if (
                devcontainer.running_container_id
                and devcontainer.folder not in self._supervisors
                and self._nursery is not None
            ):
                supervisor = SubAgentSupervisor(
                    self._state, self.calls, devcontainer, devcontainer.running_container_id, self._notify
                )
                self._supervisors[devcontainer.folder] = supervisor
                self._nursery.start_soon(self._supervise, supervisor)

    async def _supervise(self, supervisor: SubAgentSupervisor) -> None:
        await supervisor.run()
        self._wake.set()  # a successor may be due

    def _stop_supervisor(self, devcontainer: Devcontainer) -> None:
        if (supervisor := self._supervisors.get(devcontainer.folder)) is not None:
            supervisor.stop()

    async def _forget_agent(self, devcontainer: Devcontainer) -> None:
        """Delete the sub-agent's record. Raises CommandError when the server cannot be reached."""
        if (supervisor := self._supervisors.get(devcontainer.folder)) is not None:
            supervisor.stop()
            await supervisor.ended.wait()  # it may be about to receive a sub-agent that the server has created
        if devcontainer.agent is not None and devcontainer.agent.id != devcontainer.preset:
            await self.calls.delete(devcontainer.agent.id)
        devcontainer.agent, devcontainer.request_bytes = None, b""


class _Lines:
    """Output of a program, split into log lines of one dev container; overlong lines become several.

    The log source may change meanwhile, to the next build's.
    """

    def __init__(self, logs: LogQueue, devcontainer: Devcontainer) -> None:
        self._logs, self._devcontainer, self._rest = logs, devcontainer, b""

    async def add_chunk(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._add(line)
        while len(self._rest) > MAX_LINE:
            self._add(self._rest[:MAX_LINE])
            self._rest = self._rest[MAX_LINE:]

    def end(self) -> None:
        if self._rest:
            self._add(self._rest)
        self._rest = b""

    def _add(self, line: bytes) -> None:
        for first in range(0, max(len(line), 1), MAX_LINE):
            text = line[first : first + MAX_LINE].decode("utf-8", "replace")
            self._logs.add(self._devcontainer.log_source, text.rstrip("\r"), _Level.INFO)


def _changed_at(folder: Path, config: str) -> float:
    """Return the time when a description was last written, in seconds since 1970; 0 without one."""
    result = [folder / config] if config else descriptions(folder)
    return result[0].stat().st_mtime if result else 0.0
