"""An agent of its own inside a container: made at the server, our program put there and run while the container does.

The calls go over whichever connection to the server there is. The token reaches the container by its environment: of
command lines everybody on the machine can read.
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
MAKE_TIME = 20.0
SETTLE_TIME = 60.0
"""Ours: seconds for the copy, for a word of the container, for an agent inside to say goodbye; for the server to make
one, and until it has surely ended what nobody waits for any more."""
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
        self._asked = trio.Event()
        self._doubtful_until = -math.inf
        self.making = trio.Lock()
        "Held while one is made: whom the server has and nobody here knows is nobody's, but for that one."

    @contextmanager
    def over(self, session: Session) -> Iterator[None]:
        """The block's connection is the one to ask over; it is the agent's whom the latest manifest names."""
        self._session = session
        self._changed.set()
        self._changed = trio.Event()
        self._asked.set()
        try:
            yield
        finally:
            if self._session is session:
                self._session = None

    async def loop(self, session: Session) -> None:
        with self.over(session):
            await trio.sleep_forever()

    # ---- doubts

    def doubt(self) -> None:
        """The server may have one that nobody here knows, or may soon: what was asked for may still be under way."""
        self._doubtful_until = trio.current_time() + SETTLE_TIME
        self._asked.set()

    @property
    def is_doubtful(self) -> bool:
        return self._doubtful_until > -math.inf

    def settle(self, since: float) -> None:
        """All that the server had at `since` (trio's clock) was looked through."""
        if since >= self._doubtful_until:
            self._doubtful_until = -math.inf

    async def wait_asked(self) -> None:
        """Until there is a new connection or a new doubt."""
        await self._asked.wait()
        self._asked = trio.Event()

    # ---- calls

    async def _connected(self) -> Session:
        while (session := self._session) is None:
            await self._changed.wait()
        return session

    async def _call(self, name: str, request: Message, reply: type[Reply]) -> Reply:
        """Waits for a connection. Raises CommandError with the server's word."""
        session = await self._connected()
        try:
            return await session.call(AGENT + name, request, reply)
        except (RpcError, RpcClosed) as error:
            raise CommandError(f"The server did not answer {name}: {error.message}") from error

    async def listed(self) -> list[SubAgent]:
        answer = await self._call("ListSubAgents", agent_pb2.ListSubAgentsRequest(), agent_pb2.ListSubAgentsResponse)
        return [SubAgent.of(found) for found in answer.agents]

    async def delete(self, ident: UUID) -> None:
        """It is there no longer, whoever has removed it. Raises CommandError."""
        request = agent_pb2.DeleteSubAgentRequest(id=ident.bytes)
        try:
            await self._call("DeleteSubAgent", request, agent_pb2.DeleteSubAgentResponse)
        except CommandError:
            if any(found.id == ident for found in await self.listed()):
                raise

    async def create(
        self, request: agent_pb2.CreateSubAgentRequest, names: Collection[str]
    ) -> tuple[SubAgent, list[str]]:
        """By the first name that no other agent of the workspace has; with it what is wrong with its applications.

        Whoever is cancelled meanwhile is told of it all the same, before the next checkpoint.
        """
        async with self.making:
            for name in [*names][:-1]:
                request.name = name
                with suppress(_TakenError):
                    return await self._create(request)
            request.name = [*names][-1]
            return await self._create(request)

    async def _create(self, request: agent_pb2.CreateSubAgentRequest) -> tuple[SubAgent, list[str]]:
        session = await self._connected()
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            with trio.fail_after(MAKE_TIME, shield=True):
                answer = await session.call(AGENT + "CreateSubAgent", request, agent_pb2.CreateSubAgentResponse)
            made = SubAgent.of(answer.agent, request.directory)
        except (RpcError, RpcClosed) as error:
            said = f"The server did not answer CreateSubAgent: {error.message}"
            if TAKEN in error.message:
                raise _TakenError(said) from error
            self.doubt()
            raise CommandError(said) from error
        except trio.TooSlowError as error:
            self.doubt()
            raise CommandError(f"The server did not answer CreateSubAgent within {MAKE_TIME:.0f} seconds") from error
        except CommandError:
            self.doubt()
            raise
        slugs = dict(enumerate(app.slug for app in request.apps))
        faults = [f"application {slugs.get(one.index, one.index)}: {one.error}" for one in answer.app_creation_errors]
        return made, faults


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
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
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
