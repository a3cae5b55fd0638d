"""An agent of its own inside a container: made at the server, our program put there and run while the container does.

The calls go over whichever connection to the server there is. The token reaches the container by its environment: of
command lines everybody on the machine can read.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import trio
from google.protobuf.message import Message

from coder.agent.devcontainers.commands import MAX_COMPLAINT, CommandError, ask
from coder.agent.devcontainers.configuration import Configuration
from coder.agent.workspace.children import end_group
from coder.base.own_binary import ARCHITECTURES
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import agent_pb2
from coder.rpc.services import AGENT
from coder.rpc.session import Session

Reply = TypeVar("Reply", bound=Message)

PROGRAM = "/.coder-agent/coder"
"""Where our program lies in a container; a place of its own, so that no package's file is written over."""
COPY_TIME = 300.0
ASK_TIME = 20.0
LEAVE_TIME = 5.0
"""Ours: seconds for the copy, for a word of the container, and for an agent inside to say goodbye."""
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
"""An engine's `exec` that is killed leaves what it started: the program inside ends when its input does."""
PASSED = ("CODER_AGENT_TOKEN", "CODER_AGENT_URL")
_NOT_RUNNABLE = frozenset({126, 127})
"""What a shell says of a program it cannot start."""
TAKEN = "already exists"
"""What the server's refusal of a name says when another agent of the workspace has it."""


@dataclass(frozen=True, slots=True)
class SubAgent:
    """One the server has made for us."""

    id: UUID
    name: str
    token: UUID
    directory: str = ""

    @staticmethod
    def of(found: agent_pb2.SubAgent, directory: str = "") -> SubAgent:
        """Raises CommandError."""
        if len(found.id) != 16 or len(found.auth_token) != 16:
            raise CommandError("The server named an agent without a good id and token.")
        return SubAgent(UUID(bytes=found.id), found.name, UUID(bytes=found.auth_token), directory)

    def shown(self) -> dict[str, str]:
        return {"id": str(self.id), "name": self.name, "directory": self.directory}


class SubAgentCalls:
    """Asks the server about this agent's sub-agents, as long as there is a connection to it."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._changed = trio.Event()

    @contextmanager
    def over(self, session: Session) -> Iterator[None]:
        """The block's connection is the one to ask over."""
        self._session = session
        self._changed.set()
        self._changed = trio.Event()
        try:
            yield
        finally:
            if self._session is session:
                self._session = None

    async def loop(self, session: Session) -> None:
        with self.over(session):
            await trio.sleep_forever()

    async def _call(self, name: str, request: Message, reply: type[Reply]) -> Reply:
        """Waits for a connection. Raises CommandError with the server's word."""
        while (session := self._session) is None:
            await self._changed.wait()
        try:
            return await session.call(AGENT + name, request, reply)
        except (RpcError, RpcClosed) as error:
            raise CommandError(f"The server did not answer {name}: {error.message}") from error

    async def listed(self) -> list[SubAgent]:
        answer = await self._call("ListSubAgents", agent_pb2.ListSubAgentsRequest(), agent_pb2.ListSubAgentsResponse)
        return [SubAgent.of(found) for found in answer.agents]

    async def delete(self, ident: UUID) -> None:
        request = agent_pb2.DeleteSubAgentRequest(id=ident.bytes)
        await self._call("DeleteSubAgent", request, agent_pb2.DeleteSubAgentResponse)

    async def delete_but(self, kept: Collection[UUID]) -> None:
        """Those that an agent before us has left behind; the template's own stay."""
        for found in await self.listed():
            if found.id not in kept:
                await self.delete(found.id)

    async def create(
        self, request: agent_pb2.CreateSubAgentRequest, names: Collection[str]
    ) -> tuple[SubAgent, list[str]]:
        """By the first name that no other agent of the workspace has; with it what is wrong with its applications."""
        for name in [*names][:-1]:
            request.name = name
            with suppress(_TakenError):
                return await self._create(request)
        request.name = [*names][-1]
        return await self._create(request)

    async def _create(self, request: agent_pb2.CreateSubAgentRequest) -> tuple[SubAgent, list[str]]:
        try:
            answer = await self._call("CreateSubAgent", request, agent_pb2.CreateSubAgentResponse)
        except CommandError as error:
            raise (_TakenError if TAKEN in str(error) else CommandError)(str(error)) from error
        slugs = dict(enumerate(app.slug for app in request.apps))
        faults = [f"application {slugs.get(one.index, one.index)}: {one.error}" for one in answer.app_creation_errors]
        return SubAgent.of(answer.agent, request.directory), faults


class _TakenError(CommandError):
    """Another agent has the name."""


def request_for(
    configuration: Configuration, directory: str, architecture: str, preset: UUID | None
) -> agent_pb2.CreateSubAgentRequest:
    """What the server is asked for, but for its name."""
    kind = agent_pb2.CreateSubAgentRequest
    request = kind(directory=directory, architecture=architecture, operating_system="linux", apps=configuration.apps)
    request.display_apps.extend(kind.DisplayApp.Value(name.upper()) for name in configuration.display_apps)
    if preset is not None:
        request.id = preset.bytes
    return request


async def architecture_of(engine: str, container: str, env: Mapping[str, str]) -> str:
    """Of the container's system, in the words of agents. Raises CommandError."""
    argv = [engine, "exec", "--user", "root", container, "uname", "-sm"]
    said = await ask(argv, env, seconds=ASK_TIME, max_output=4096)
    system, _, machine = (
        said.require("Asking the container what it is").decode("utf-8", "replace").strip().partition(" ")
    )
    if system != "Linux" or machine not in ARCHITECTURES:
        raise CommandError(
            f"No agent runs in a container of {system or 'an unknown system'} {machine}.".replace(" .", ".")
        )
    return ARCHITECTURES[machine]


async def put_program(engine: str, container: str, program: Path, env: Mapping[str, str]) -> None:
    """Copies our program into the container, as root. Raises CommandError."""
    argv = [engine, "exec", "--interactive", "--user", "root", container, "/bin/sh", "-c", _INSTALL]
    said = await ask(argv, env, seconds=COPY_TIME, max_output=4096, given=program)
    said.require("Copying the agent into the container")


async def run_inside(engine: str, container: str, user: str, env: Mapping[str, str]) -> str:
    """The agent in the container, until it ends; its last words. Cancelled, it lets it say goodbye.

    `env` has the variables of an agent; only their names are on command lines. Raises CommandError.
    """
    argv = [engine, "exec", "--interactive", "--user", user or "root"]
    for name in PASSED:
        argv += ["--env", name]
    argv += [container, "/bin/sh", "-c", _RUN, PROGRAM]
    try:
        process = await trio.lowlevel.open_process(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(env),
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CommandError(f"{Path(engine).name} cannot be started: {error.strerror}") from error
    except ValueError as error:  # a word that no command line can have
        raise CommandError(f"{Path(engine).name} cannot be started: {error}") from error
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - asked for
    said = bytearray()
    try:
        await _read(process.stdout, said)
        await process.wait()
    finally:
        with trio.CancelScope(deadline=trio.current_time() + LEAVE_TIME, shield=True):
            await process.stdin.aclose()
            await _read(process.stdout, said)
            await process.wait()
        await end_group(process)
        await process.stdout.aclose()
    if process.returncode in _NOT_RUNNABLE:
        return "this agent's program does not run there, as in a container without the C library it was made for"
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"code {process.returncode}"


async def _read(pipe: trio.abc.ReceiveStream, said: bytearray) -> None:
    """To its end; the last words stay in `said`."""
    while chunk := await pipe.receive_some():
        said += chunk
        del said[:-MAX_COMPLAINT]
