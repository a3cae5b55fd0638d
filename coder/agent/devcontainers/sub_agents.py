"""Sub-agent inside a container: created at the server, copied into the container and run while the container does.

Calls use the current connection to the server. The token reaches the container by its environment: every user of the
machine can read command lines.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import trio
from google.protobuf.message import Message

from coder.agent.devcontainers.commands import MAX_STDERR, CommandError, run_command
from coder.agent.devcontainers.configuration import Configuration
from coder.agent.platform import system
from coder.agent.workspace.children import end_group
from coder.base.own_binary import ARCHITECTURES
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session

Reply = TypeVar("Reply", bound=Message)

PROGRAM = "/.coder-agent/coder"
"""Path of our program in a container; a directory of its own, so that no package's file is overwritten."""
COPY_TIMEOUT = 300.0
EXEC_TIMEOUT = 20.0
EXIT_TIMEOUT = 5.0
CREATE_TIMEOUT = 20.0
SETTLE_TIME = 60.0
"""Seconds (ours): for the copy, for a command in the container, for a sub-agent to disconnect, for the server to create
one, and until the server has surely finished an abandoned request."""
_INSTALL = (
    f"mkdir -p {Path(PROGRAM).parent} && cat > {PROGRAM}.new && chmod 755 {PROGRAM}.new && mv {PROGRAM}.new {PROGRAM}"
)
_RUN = """exec 3<&0 </dev/null
"$0" agent 3<&- & agent=$!
{ cat <&3; kill "$agent"; } >/dev/null 2>&1 &
exec 3<&-
trap 'kill "$agent" 2>/dev/null' TERM INT
wait "$agent"
"""
"""Killing an engine's `exec` leaves its processes running, so the program inside exits when its standard input
closes."""
PASSED_VARIABLES = ("CODER_AGENT_TOKEN", "CODER_AGENT_URL")
_NOT_RUNNABLE = frozenset({126, 127})
"""Exit codes of a shell for a program it cannot start."""
NAME_TAKEN = "already exists"
"""Text in the server's rejection of a name that another agent of the workspace has."""


@dataclass(frozen=True, slots=True)
class SubAgent:
    """Sub-agent that the server created for this agent."""

    id: UUID
    name: str
    token: UUID
    directory: str = ""

    @staticmethod
    def of(message: agent_pb2.SubAgent, directory: str = "") -> SubAgent:
        """Convert the server's message. Raises CommandError when the id or token is invalid."""
        if len(message.id) != 16 or len(message.auth_token) != 16:
            raise CommandError("The server sent an agent without a valid id and token.")
        return SubAgent(UUID(bytes=message.id), message.name, UUID(bytes=message.auth_token), directory)

    def to_api(self) -> dict[str, str]:
        return {"id": str(self.id), "name": self.name, "directory": self.directory}


class SubAgentClient:
    """Client for the server's sub-agent calls, over the current connection."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._changed = trio.Event()
        self._triggered = trio.Event()
        self._stale_until = -math.inf
        self.creating = trio.Lock()
        "Held while a sub-agent is created, so that reconciliation does not take the new one for an orphan."

    @contextmanager
    def using(self, session: Session) -> Iterator[None]:
        """Use the connection for the duration of the block; it belongs to the agent that the latest manifest names."""
        self._session = session
        self._changed.set()
        self._changed = trio.Event()
        self._triggered.set()
        try:
            yield
        finally:
            if self._session is session:
                self._session = None

    async def loop(self, session: Session) -> None:
        with self.using(session):
            await trio.sleep_forever()

    # ---- staleness

    def mark_stale(self) -> None:
        """Mark the server's list as possibly stale: it may have an unknown sub-agent, or a pending request may create
        one."""
        self._stale_until = trio.current_time() + SETTLE_TIME
        self._triggered.set()

    @property
    def is_stale(self) -> bool:
        return self._stale_until > -math.inf

    def mark_reconciled(self, since: float) -> None:
        """Record that everything the server had at `since` (trio's clock) was reconciled."""
        if since >= self._stale_until:
            self._stale_until = -math.inf

    async def wait_triggered(self) -> None:
        """Wait for a new connection or a new stale mark."""
        await self._triggered.wait()
        self._triggered = trio.Event()

    # ---- calls

    async def _connected(self) -> Session:
        while (session := self._session) is None:
            await self._changed.wait()
        return session

    async def _call(self, name: str, request: Message, reply: type[Reply]) -> Reply:
        """Call the server; wait for a connection. Raises CommandError with the server's message."""
        session = await self._connected()
        try:
            return await session.call(AGENT + name, request, reply)
        except (RpcError, RpcClosed) as error:
            raise CommandError(f"The server did not answer {name}: {error.message}") from error

    async def list_all(self) -> list[SubAgent]:
        answer = await self._call("ListSubAgents", agent_pb2.ListSubAgentsRequest(), agent_pb2.ListSubAgentsResponse)
        return [SubAgent.of(message) for message in answer.agents]

    async def delete(self, ident: UUID) -> None:
        """Delete a sub-agent; succeeds when it is already deleted. Raises CommandError."""
        request = agent_pb2.DeleteSubAgentRequest(id=ident.bytes)
        try:
            await self._call("DeleteSubAgent", request, agent_pb2.DeleteSubAgentResponse)
        except CommandError:
            if any(message.id == ident for message in await self.list_all()):
                raise

    async def create(
        self, request: agent_pb2.CreateSubAgentRequest, names: Collection[str]
    ) -> tuple[SubAgent, list[str]]:
        """Create a sub-agent by the first name that is free in the workspace. Returns it with the faults of its
        applications.

        A cancelled caller still receives the result, before the next checkpoint.
        """
        async with self.creating:
            for name in [*names][:-1]:
                request.name = name
                with suppress(_NameTakenError):
                    return await self._create(request)
            request.name = [*names][-1]
            return await self._create(request)

    async def _create(self, request: agent_pb2.CreateSubAgentRequest) -> tuple[SubAgent, list[str]]:
        session = await self._connected()
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            with trio.fail_after(CREATE_TIMEOUT, shield=True):
                answer = await session.call(AGENT + "CreateSubAgent", request, agent_pb2.CreateSubAgentResponse)
            created = SubAgent.of(answer.agent, request.directory)
        except (RpcError, RpcClosed) as error:
            output = f"The server did not answer CreateSubAgent: {error.message}"
            if NAME_TAKEN in error.message:
                raise _NameTakenError(output) from error
            self.mark_stale()
            raise CommandError(output) from error
        except trio.TooSlowError as error:
            self.mark_stale()
            raise CommandError(
                f"The server did not answer CreateSubAgent within {CREATE_TIMEOUT:.0f} seconds"
            ) from error
        except CommandError:
            self.mark_stale()
            raise
        slugs = dict(enumerate(app.slug for app in request.apps))
        faults = [
            f"application {slugs.get(fault.index, fault.index)}: {fault.error}" for fault in answer.app_creation_errors
        ]
        return created, faults


class _NameTakenError(CommandError):
    """Another agent has the name."""


def creation_request(
    configuration: Configuration, directory: str, architecture: str, preset: UUID | None
) -> agent_pb2.CreateSubAgentRequest:
    """Return the request to create a sub-agent, without its name."""
    kind = agent_pb2.CreateSubAgentRequest
    request = kind(directory=directory, architecture=architecture, operating_system="linux", apps=configuration.apps)
    request.display_apps.extend(kind.DisplayApp.Value(name.upper()) for name in configuration.display_apps)
    if preset is not None:
        request.id = preset.bytes
    return request


async def architecture_of(engine: str, container: str, env: Mapping[str, str]) -> str:
    """Return the architecture of the container's system, in the words of agents. Raises CommandError."""
    argv = [engine, "exec", "--user", "root", container, "uname", "-sm"]
    output = await run_command(argv, env, seconds=EXEC_TIMEOUT, max_output=4096)
    system, _, machine = (
        output.require("Asking the container what it is").decode("utf-8", "replace").strip().partition(" ")
    )
    if system != "Linux" or machine not in ARCHITECTURES:
        raise CommandError(
            f"No agent supports a container of {system or 'an unknown system'} {machine}.".replace(" .", ".")
        )
    return ARCHITECTURES[machine]


async def copy_program(engine: str, container: str, program: Path, env: Mapping[str, str]) -> None:
    """Copy our program into the container, as root. Raises CommandError."""
    argv = [engine, "exec", "--interactive", "--user", "root", container, "/bin/sh", "-c", _INSTALL]
    output = await run_command(argv, env, seconds=COPY_TIMEOUT, max_output=4096, input_source=program)
    output.require("Copying the agent into the container")


async def run_agent(engine: str, container: str, user: str, env: Mapping[str, str]) -> str:
    """Run the agent in the container until it exits; return its last line of output. When cancelled, give it time to
    disconnect.

    `env` has the variables of an agent; only their names are on command lines. Raises CommandError.
    """
    argv = [engine, "exec", "--interactive", "--user", user or "root"]
    for name in PASSED_VARIABLES:
        argv += ["--env", name]
    argv += [container, "/bin/sh", "-c", _RUN, PROGRAM]
    try:
        process = await trio.lowlevel.open_process(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(env),
            **system.START,
        )
    except OSError as error:
        raise CommandError(f"{Path(engine).name} cannot be started: {error.strerror}") from error
    except ValueError as error:  # an argument that no command line can hold
        raise CommandError(f"{Path(engine).name} cannot be started: {error}") from error
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - requested
    output = bytearray()
    try:
        await _read(process.stdout, output)
        await process.wait()
    finally:
        with trio.CancelScope(deadline=trio.current_time() + EXIT_TIMEOUT, shield=True):
            await process.stdin.aclose()
            await _read(process.stdout, output)
            await process.wait()
        await end_group(process)
        await process.stdout.aclose()
    if process.returncode in _NOT_RUNNABLE:
        return "this agent's program does not run there, as in a container without the C library it was made for"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"code {process.returncode}"


async def _read(pipe: trio.abc.ReceiveStream, output: bytearray) -> None:
    """Read the pipe to its end; keep the last bytes in `tail`."""
    while chunk := await pipe.receive_some():
        output += chunk
        del output[:-MAX_STDERR]
