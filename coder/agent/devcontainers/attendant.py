"""Keeps the agent of one dev container as long as its container runs: made, put inside, started again when it ends."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import trio

from coder.agent.devcontainers.builder import find_builder, read_configuration
from coder.agent.devcontainers.commands import CommandError, find_program
from coder.agent.devcontainers.configuration import Configuration, agent_name, names_to_try
from coder.agent.devcontainers.engine import find_engine
from coder.agent.devcontainers.entries import Devcontainer
from coder.agent.devcontainers.sub_agents import (
    SubAgentCalls,
    architecture_of,
    put_program,
    request_for,
    run_inside,
)
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.containers import NO_ENGINE
from coder.base.log import get_logger
from coder.base.own_binary import ARCHITECTURES

log = get_logger("agent.devcontainers")

FIRST_DELAY, LAST_DELAY, GOOD_WHILE = 1.0, 300.0, 60.0
"""Ours: seconds before an agent is started again, doubled each time until one has lived a good while."""


class Attendant:
    """Of one container; `leave` has the agent inside end, which it has once `ended` is set."""

    def __init__(
        self, state: AgentState, calls: SubAgentCalls, one: Devcontainer, container: str, tell: Callable[[], None]
    ) -> None:
        self._state, self._calls, self._one, self._tell = state, calls, one, tell
        self.container = container
        self.ended = trio.Event()
        self._scope = trio.CancelScope()
        self._is_there = False
        "Whether our program is in the container."

    def leave(self) -> None:
        self._scope.cancel()

    @property
    def is_leaving(self) -> bool:
        return self._scope.cancel_called

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            self.ended.set()

    async def _run(self) -> None:
        delay = FIRST_DELAY
        with self._scope:
            while True:
                began = trio.current_time()
                try:
                    words = await self._once()
                    if words is None:
                        return
                    said = f"The agent inside ended: {words}"
                except CommandError as error:
                    said = str(error)
                except Exception as error:  # a defect of ours, which must not end the agent
                    log.error("looking after a dev container failed", name=self._one.name, error=error)
                    said = f"Looking after it failed: {type(error).__name__}"
                self._one.agent_error = said
                log.warn("no agent in a dev container", name=self._one.name, why=said)
                self._tell()
                delay = FIRST_DELAY if trio.current_time() - began > GOOD_WHILE else min(delay * 2, LAST_DELAY)
                await trio.sleep(delay)

    async def _once(self) -> str | None:
        """One life of the agent inside; its last words, or None when the container is to have none.

        Raises CommandError.
        """
        one, env = self._one, environment.looking_environment(self._state)
        configuration = await self._configuration()
        if configuration.ignore:
            log.info("a dev container asks for no agent", name=one.name)
            return None
        engine = await find_engine(env)
        if engine is None:
            raise CommandError(NO_ENGINE)
        architecture = await architecture_of(engine, self.container, env)
        own = ARCHITECTURES.get(platform.machine().lower())
        if architecture != own:
            raise CommandError(f"The container is made for {architecture}, and this agent's program for {own}.")
        if not self._is_there:
            await put_program(engine, self.container, await self._program(), env)
            self._is_there = True
        await self._make(configuration, architecture)
        assert one.agent is not None  # noqa: S101 - made above
        one.agent_error = ""
        self._tell()
        log.info("an agent starts in a dev container", name=one.agent.name, container=self.container)
        user = (one.built.remote_user if one.built is not None else "") or configuration.remote_user
        inside = env | {"CODER_AGENT_TOKEN": str(one.agent.token), "CODER_AGENT_URL": self._state.url}
        return await run_inside(engine, self.container, user, inside)

    async def _configuration(self) -> Configuration:
        """As described. Without the command that understands descriptions: as if nothing were said."""
        env = environment.looking_environment(self._state)
        try:
            await find_builder(env)
        except CommandError:
            return Configuration()
        return await read_configuration(self._one.folder, self._one.config, env)

    async def _program(self) -> Path:
        found = await find_program([self._state.executable], {})
        if found is None:
            raise CommandError(f"This agent's own program is not at {self._state.executable}.")
        return Path(found)

    async def _make(self, configuration: Configuration, architecture: str) -> None:
        """The agent at the server: the one there is, unless it would be another now. Raises CommandError."""
        one, manifest = self._one, self._state.manifest
        request = request_for(configuration, one.inside(configuration.workspace_folder), architecture, one.preset)
        asked_for = request.SerializeToString() + configuration.name.encode()
        if one.agent is not None and one.asked_for == asked_for:
            return
        if one.agent is not None and one.agent.id != one.preset:
            await self._calls.delete(one.agent.id)
            one.agent = None
        wanted = configuration.name or (agent_name(one.name) if one.declared else "")
        names = names_to_try(wanted, one.folder, manifest.agent_name if manifest is not None else "")
        # Nothing in between that could be cancelled: the server has made it, and nobody else knows its id.
        one.agent, faults = await self._calls.create(request, names)
        one.asked_for = asked_for
        for fault in faults:
            log.warn("an application of a dev container was refused", name=one.name, why=fault)
