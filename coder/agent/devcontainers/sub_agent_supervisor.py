"""Supervisor of one dev container's sub-agent while its container runs: creates it, copies the program, restarts it
when it exits."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import trio

from coder.agent.devcontainers.builder import find_devcontainer_cli, read_configuration
from coder.agent.devcontainers.commands import CommandError, find_program
from coder.agent.devcontainers.configuration import Configuration, agent_name, names_to_try
from coder.agent.devcontainers.engine import find_engine
from coder.agent.devcontainers.entries import Devcontainer
from coder.agent.devcontainers.sub_agents import (
    SubAgentClient,
    architecture_of,
    copy_program,
    creation_request,
    run_agent,
)
from coder.agent.state import AgentState
from coder.agent.workspace import environment
from coder.agent.workspace.containers import NO_ENGINE
from coder.base.log import get_logger
from coder.base.own_binary import ARCHITECTURES

log = get_logger("agent.devcontainers")

FIRST_DELAY, LAST_DELAY, STABLE_TIME = 1.0, 300.0, 60.0
"""Seconds (ours) before a sub-agent is restarted, doubled each time until it has run for `STABLE_TIME`."""


class SubAgentSupervisor:
    """Supervisor of the sub-agent in one container. `stop` terminates the sub-agent; `ended` is set when it has
    exited."""

    def __init__(
        self,
        state: AgentState,
        calls: SubAgentClient,
        devcontainer: Devcontainer,
        container: str,
        notify: Callable[[], None],
    ) -> None:
        self._state, self._calls, self._devcontainer, self._notify = state, calls, devcontainer, notify
        self.container = container
        self.ended = trio.Event()
        self._scope = trio.CancelScope()
        self._has_program = False
        "Whether the container has our program."

    def stop(self) -> None:
        self._scope.cancel()

    @property
    def is_stopping(self) -> bool:
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
                    last_line = await self._run_once()
                    if last_line is None:
                        return
                    message = f"The agent inside exited: {last_line}"
                except CommandError as error:
                    message = str(error)
                except Exception as error:  # a defect of ours, which must not end the agent
                    log.error("supervising a dev container failed", name=self._devcontainer.name, error=error)
                    message = f"Supervising it failed: {type(error).__name__}"
                self._devcontainer.agent_error = message
                log.warn("no agent in a dev container", name=self._devcontainer.name, why=message)
                self._notify()
                delay = FIRST_DELAY if trio.current_time() - began > STABLE_TIME else min(delay * 2, LAST_DELAY)
                await trio.sleep(delay)

    async def _run_once(self) -> str | None:
        """Run the sub-agent until it exits. Returns its last line of output, or None when the container must not have a
        sub-agent.

        Raises CommandError.
        """
        devcontainer, env = self._devcontainer, environment.query_environment(self._state)
        configuration = await self._configuration()
        if configuration.ignore:
            log.info("a dev container disables its agent", name=devcontainer.name)
            return None
        engine = await find_engine(env)
        if engine is None:
            raise CommandError(NO_ENGINE)
        architecture = await architecture_of(engine, self.container, env)
        own_architecture = ARCHITECTURES.get(platform.machine().lower())
        if architecture != own_architecture:
            raise CommandError(
                f"The container's architecture is {architecture}, the agent's program is built for {own_architecture}."
            )
        if not self._has_program:
            await copy_program(engine, self.container, await self._program(), env)
            self._has_program = True
        await self._create_sub_agent(configuration, architecture)
        assert devcontainer.agent is not None  # noqa: S101 - created above
        devcontainer.agent_error = ""
        self._notify()
        log.info("starting an agent in a dev container", name=devcontainer.agent.name, container=self.container)
        user = (devcontainer.built.remote_user if devcontainer.built is not None else "") or configuration.remote_user
        inside_env = env | {"CODER_AGENT_TOKEN": str(devcontainer.agent.token), "CODER_AGENT_URL": self._state.url}
        return await run_agent(engine, self.container, user, inside_env)

    async def _configuration(self) -> Configuration:
        """Return the container's configuration; the default when the `devcontainer` command is not installed."""
        env = environment.query_environment(self._state)
        try:
            await find_devcontainer_cli(env)
        except CommandError:
            return Configuration()
        return await read_configuration(self._devcontainer.folder, self._devcontainer.config, env)

    async def _program(self) -> Path:
        program = await find_program([self._state.executable], {})
        if program is None:
            raise CommandError(f"This agent's own program is not at {self._state.executable}.")
        return Path(program)

    async def _create_sub_agent(self, configuration: Configuration, architecture: str) -> None:
        """Create the sub-agent at the server; keep an existing one created by the same request. Raises CommandError."""
        devcontainer, manifest = self._devcontainer, self._state.manifest
        request = creation_request(
            configuration,
            devcontainer.folder_in_container(configuration.workspace_folder),
            architecture,
            devcontainer.preset,
        )
        request_bytes = request.SerializeToString() + configuration.name.encode()
        if devcontainer.agent is not None and devcontainer.request_bytes == request_bytes:
            return
        if devcontainer.agent is not None and devcontainer.agent.id != devcontainer.preset:
            await self._calls.delete(devcontainer.agent.id)
            devcontainer.agent = None
        requested = configuration.name or (agent_name(devcontainer.name) if devcontainer.declared else "")
        names = names_to_try(requested, devcontainer.folder, manifest.agent_name if manifest is not None else "")
        # No cancellation point in between: the server has created the sub-agent, and only this task knows its id.
        devcontainer.agent, faults = await self._calls.create(request, names)
        devcontainer.request_bytes = request_bytes
        for fault in faults:
            log.warn("an application of a dev container was refused", name=devcontainer.name, why=fault)
