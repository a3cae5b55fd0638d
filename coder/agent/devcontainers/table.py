"""The containers beside an agent: listed for who asks, dev containers built, followed, and each given an agent.

One task looks every few seconds as long as an engine is there; a dev container that runs has a task that keeps its
agent. Rules without I/O are in `entries.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import trio

from coder.agent.config import DevcontainerSettings
from coder.agent.devcontainers.attendant import Attendant
from coder.agent.devcontainers.builder import NO_BUILDER, Built, build, find_builder, read_configuration
from coder.agent.devcontainers.commands import CommandError, ask
from coder.agent.devcontainers.engine import ContainerRow, Listing, find_engine, list_containers
from coder.agent.devcontainers.entries import (
    Busy,
    Devcontainer,
    declared,
    explain_strangers,
    known_as,
    take_declared,
    take_listing,
)
from coder.agent.devcontainers.in_step import InStep
from coder.agent.devcontainers.projects import descriptions, find_projects
from coder.agent.devcontainers.sub_agents import SubAgent, SubAgentCalls
from coder.agent.disk import LOOK_TIME, Threads, on_disk
from coder.agent.shared_look import SharedLook
from coder.agent.state import AgentState, DevcontainerBusyError
from coder.agent.upgrade.handover import KeptContainer
from coder.agent.workspace import environment
from coder.agent.workspace.logs import MAX_LINE, LogQueue
from coder.base.log import get_logger
from coder.rpc.proto import agent_pb2

log = get_logger("agent.devcontainers")

INTERVAL, IDLE_INTERVAL = 10.0, 30.0
"""Ours: seconds between two looks, and as long as no dev container is known."""
SHARED = 1.0
"""Ours: seconds a look is good for whoever only wants to see."""
CLEAN_TIME = 10.0
END_TIME = 15.0
"""Ours: seconds for asking which sub-agents were left behind, and for an engine to remove a container."""
_AGE_THREADS, _PROJECT_THREADS = Threads(2), Threads(1)
"""Folders that do not answer take none of other looks' threads."""
_Level = agent_pb2.Log.Level


class Devcontainers:
    """Of one agent process; `start` opens it, after which the task of `run` looks."""

    def __init__(self, state: AgentState, logs: LogQueue, settings: DevcontainerSettings) -> None:
        self._state, self._logs, self._settings = state, logs, settings
        self.calls = SubAgentCalls()
        self.watchers = 0
        self._known: dict[str, Devcontainer] = {}
        self._attendants: dict[str, Attendant] = {}
        self._listing = Listing(())
        self._look: SharedLook[Listing] = SharedLook()
        self._applying = trio.Lock()
        "Of two looks the later one is believed."
        self._strangers: list[ContainerRow] = []
        self._in_step = InStep(state, self.calls, self._known.values, self._renew)
        self._opened, self._changed, self._poke = trio.Event(), trio.Event(), trio.Event()
        self._nursery: trio.Nursery | None = None
        self._started = self._starts_projects = False

    # ---- what others see

    async def shown(self) -> dict[str, Any]:
        """The answer of the API, by a look of now."""
        await self.refresh(since=trio.current_time() - SHARED)
        return self.as_known()

    def as_known(self) -> dict[str, Any]:
        """The same by the latest look."""
        rows: dict[str, Any] = {
            "devcontainers": [one.shown() for one in sorted(self._known.values(), key=lambda one: one.folder)],
            "containers": [row.shown() for row in self._listing.containers],
        }
        warnings = [*self._listing.warnings, *explain_strangers(self._strangers)]
        return rows | ({"warnings": warnings} if warnings else {})

    def next_change(self) -> trio.Event:
        """Set when something was looked at or done. Take it before you look."""
        return self._changed

    @contextmanager
    def watched(self) -> Iterator[None]:
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1

    # ---- life

    async def run(self) -> None:
        """Until cancelled; then the agents inside end, and what they were made of is left to the server."""
        await self._opened.wait()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._in_step.run)
            if self._settings.discover:
                nursery.start_soon(self._guarded, "looking for projects", self._discover)
            while True:
                self._poke = trio.Event()
                await self._guarded("looking at dev containers", self._look_if_there_are_any)
                with trio.move_on_after(INTERVAL if self._known else IDLE_INTERVAL):
                    await self._poke.wait()

    async def start(self, kept: Sequence[KeptContainer] | None = None) -> bool:
        """Takes what the template declares and builds it, all at once. False when one could not be built.

        With what a program before us has `kept` what runs is only gone on with. Projects are looked for beside: nobody
        waits for them.
        """
        build_now = kept is None
        self._started, self._starts_projects = True, build_now and self._settings.autostart
        self._take_declared()
        for before in kept or ():
            one = self._at(before.folder, before.config)
            one.built = Built(before.container_id, before.remote_user, before.workspace_folder)
        self.calls.doubt()  # an agent before us has left its own
        with trio.move_on_after(CLEAN_TIME):
            try:
                await self._in_step.compare()
            except CommandError as error:
                log.warn("the sub-agents of an earlier agent stay for now", error=error)
        await self._guarded("looking at dev containers", self.refresh)
        wanted = [one for one in self._known.values() if one.declared] if build_now else []
        self._opened.set()
        async with trio.open_nursery() as nursery:
            for one in wanted:
                nursery.start_soon(self._build, one, False)
        self._poke.set()
        return not any(one.error for one in wanted)

    def left(self) -> list[KeptContainer]:
        """What the next program of this process cannot find out."""
        return [
            KeptContainer(
                one.folder, one.built.container_id, one.built.remote_user, one.built.workspace_folder, one.config
            )
            for one in self._known.values()
            if one.built is not None
        ]

    def begin_anew(self) -> None:
        """The server has made another agent of us: ours inside are nobody's, and are made again, as this build's
        template says. What it declares besides is shown; like start scripts, nothing is begun a second time."""
        for one in self._known.values():
            self._leave(one)
            one.agent, one.asked_for = None, b""
        if self._started:
            self._take_declared()
        self._tell()
        self._poke.set()

    @property
    def _root(self) -> Path:
        return self._state.directory or self._state.identity.home

    def _at(self, folder: str, config: str = "") -> Devcontainer:
        return self._known.setdefault(folder, Devcontainer(known_as(folder), Path(folder).name, folder, config))

    def _take_declared(self) -> None:
        if self._state.manifest is not None:
            take_declared(self._known, declared(self._state.manifest, self._root, self._state.identity.home))

    def _renew(self, one: Devcontainer, agent: SubAgent | None) -> None:
        one.agent = agent
        if agent is None:
            one.asked_for = b""
        self._leave(one)
        self._poke.set()

    async def refresh(self, since: float | None = None) -> None:
        """Looks, and does what follows: whoever runs is attended, who does not is not.

        Somebody else's look is as good when it began after `since` (seconds of trio's clock; by default none is).
        """
        wanted = trio.current_time() if since is None else since
        async with self._applying:
            with self._look.watched():
                self._listing = await self._look.after(wanted, self._list)
            await self._apply(self._listing)

    async def _guarded(self, what: str, step: Callable[[], Awaitable[None]]) -> None:
        """A defect of ours must not end the agent."""
        try:
            await step()
        except Exception as error:
            log.error(f"{what} failed", error=error)

    async def _look_if_there_are_any(self) -> None:
        if self._known or await self._engine() is not None:
            await self._look_for_dev_containers()

    async def _look_for_dev_containers(self) -> None:
        """As long as nobody asks: of a machine with many containers and none of these it costs one short command."""
        env = environment.looking_environment(self._state)
        async with self._applying:
            await self._apply(await list_containers(await self._engine(), env, only_dev=True))

    async def _apply(self, listing: Listing) -> None:
        before = set(self._known)
        self._strangers = take_listing(self._known, listing)
        gone = before - self._known.keys()
        for one in list(self._known.values()):  # somebody may begin or end one meanwhile
            one.dirty = await self._is_dirty(one)
        self._attend()
        if gone:
            self.calls.doubt()  # their agents are nobody's now
        self._tell()

    async def _list(self) -> Listing:
        return await list_containers(await self._engine(), environment.looking_environment(self._state))

    async def _engine(self) -> str | None:
        return await find_engine(environment.looking_environment(self._state))

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _is_dirty(self, one: Devcontainer) -> bool:
        """Whether its description is younger than its container."""
        if one.container is None:
            return False
        try:
            made = datetime.fromisoformat(one.container.created_at).timestamp()
            with trio.move_on_after(LOOK_TIME):
                return await on_disk(_changed_at, Path(one.folder), one.config, limiter=_AGE_THREADS) > made
        except (ValueError, OverflowError, OSError):
            pass
        return False

    async def _discover(self) -> None:
        with trio.move_on_after(LOOK_TIME):
            try:
                found: Sequence[tuple[str, str]] = await on_disk(find_projects, self._root, limiter=_PROJECT_THREADS)
            except OSError:
                return
            for folder, config in found:
                self._at(folder, config).found = True
        self._poke.set()
        if not self._starts_projects:
            return
        for one in list(self._known.values()):
            wanted = one.found and not one.declared and one.is_idle and await self._starts_itself(one)
            if wanted and one.is_idle:  # somebody may have begun it meanwhile
                self._spawn(one, anew=False)

    async def _starts_itself(self, one: Devcontainer) -> bool:
        try:
            env = environment.looking_environment(self._state)
            return (await read_configuration(one.folder, one.config, env)).auto_start
        except CommandError as error:
            log.debug("a description could not be read", folder=one.folder, error=error)
            return False

    # ---- building

    def recreate(self, ident: UUID) -> bool:
        """Begins to build it anew, or to start one that has never run. False when it is not known.

        Raises DevcontainerBusyError.
        """
        one = self._find(ident)
        if one is None:
            return False
        if one.busy or self._nursery is None:  # before the start scripts have run it is begun anyway
            raise DevcontainerBusyError(one.busy or "starting")
        self._spawn(one, anew=True)
        return True

    async def delete(self, ident: UUID) -> bool:
        """Removes its container and its agent. False when it is not known.

        Raises DevcontainerBusyError, CommandError.
        """
        one = self._find(ident)
        if one is None:
            return False
        if one.busy:
            raise DevcontainerBusyError(one.busy)
        with self._busy(one, "deleting"):
            await self._forget_agent(one)
            engine = await self._engine()
            if one.container is not None and engine is not None:
                env = environment.looking_environment(self._state)
                argv = [engine, "rm", "--force", one.container.id]
                said = await ask(argv, env, seconds=END_TIME, max_output=1 << 16)
                said.require("Removing the container")
            one.container, one.built, one.error = None, None, ""
        await self.refresh()
        return True

    def _find(self, ident: UUID) -> Devcontainer | None:
        return next((one for one in self._known.values() if one.id == ident), None)

    def _spawn(self, one: Devcontainer, *, anew: bool) -> None:
        one.busy = "starting"  # before anybody looks again
        self._tell()
        if self._nursery is not None:
            self._nursery.start_soon(self._build, one, anew)

    @contextmanager
    def _busy(self, one: Devcontainer, word: Busy) -> Iterator[None]:
        one.busy = word
        self._tell()
        try:
            yield
        finally:
            one.busy = ""
            self._tell()

    async def _build(self, one: Devcontainer, anew: bool) -> None:
        with self._busy(one, "starting"), self._state.activity.of("dev containers being built"):
            one.error = one.agent_error = ""
            lines = _Lines(self._logs, one)
            try:
                env = environment.command_environment(self._state)
                await find_builder(env)
                if anew:
                    await self._forget_agent(one)
                one.built = await build(one.folder, one.config, env, lines.take, anew=anew)
            except CommandError as error:
                one.error = str(error)
                if str(error) == NO_BUILDER:
                    one.error = f"{one.name} is not started: {error}"
                lines.end()
                self._logs.add(one.log_source, one.error, _Level.ERROR)
                log.warn("a dev container could not be built", name=one.name, folder=one.folder, error=one.error)
            except Exception as error:  # a defect of ours, which must not end the agent
                one.error = f"Building it failed: {type(error).__name__}"
                log.error("building a dev container failed", name=one.name, error=error)
            lines.end()
        failure = one.error
        await self._guarded("looking at dev containers", self.refresh)
        if failure and not one.running:
            one.error = failure

    # ---- agents inside

    def _attend(self) -> None:
        """One for each container that runs, after the one before it has ended: of a folder there is one agent."""
        for folder, attendant in list(self._attendants.items()):
            one = self._known.get(folder)
            if one is None or one.runs_in != attendant.container:
                if one is not None and not one.runs_in and not one.busy and not attendant.is_leaving:
                    self._logs.add(one.log_source, f"The container of {one.name} does not run any more.", _Level.WARN)
                attendant.leave()
            if attendant.is_leaving and attendant.ended.is_set():
                del self._attendants[folder]
        for one in list(self._known.values()):
            if one.runs_in and one.folder not in self._attendants and self._nursery is not None:
                attendant = Attendant(self._state, self.calls, one, one.runs_in, self._tell)
                self._attendants[one.folder] = attendant
                self._nursery.start_soon(self._keep_attended, attendant)

    async def _keep_attended(self, attendant: Attendant) -> None:
        await attendant.run()
        self._poke.set()  # another may be to follow

    def _leave(self, one: Devcontainer) -> None:
        if (attendant := self._attendants.get(one.folder)) is not None:
            attendant.leave()

    async def _forget_agent(self, one: Devcontainer) -> None:
        """Raises CommandError: the server could not be asked."""
        if (attendant := self._attendants.get(one.folder)) is not None:
            attendant.leave()
            await attendant.ended.wait()  # it may be about to hear of one that the server has made for it
        if one.agent is not None and one.agent.id != one.preset:
            await self.calls.delete(one.agent.id)
        one.agent, one.asked_for = None, b""


class _Lines:
    """What a program says, cut into lines of the log of one dev container; one that is too long for a line is several.

    Meanwhile the log may come to be another: that of the next build of the workspace.
    """

    def __init__(self, logs: LogQueue, one: Devcontainer) -> None:
        self._logs, self._one, self._rest = logs, one, b""

    async def take(self, chunk: bytes) -> None:
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
            self._logs.add(self._one.log_source, text.rstrip("\r"), _Level.INFO)


def _changed_at(folder: Path, config: str) -> float:
    """When a description was last written, in seconds since 1970; 0 without one."""
    found = [folder / config] if config else descriptions(folder)
    return found[0].stat().st_mtime if found else 0.0
