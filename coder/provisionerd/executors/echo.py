"""Echo executor: replays responses from files in the template, for tests of everything around it.

File names and their meaning: docs/protocol/provisioners.md#echo.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio

from coder.provisionerd.archive import UnpackError, unpack_untrusted
from coder.provisionerd.executors.contract import Emit, ExecutorSession, Settings, filter_level
from coder.rpc.proto import provisioner_pb2 as pb

Answer = TypeVar("Answer", pb.InitComplete, pb.ParseComplete, pb.PlanComplete, pb.GraphComplete, pb.ApplyComplete)

_TRANSITIONS = {0: "start", 1: "stop", 2: "destroy"}


class EchoExecutor:
    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[ExecutorSession]:
        yield _EchoSession(settings)


class _EchoSession:
    def __init__(self, settings: Settings) -> None:
        self._folder = settings.folder / "template"
        self._level = settings.log_level
        self._canceled = trio.Event()
        self._state = b""

    def cancel(self) -> None:
        self._canceled.set()

    def state(self) -> bytes:
        return self._state

    async def init(self, request: pb.InitRequest, module_archive: bytes, emit: Emit) -> pb.InitComplete:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            unpack_untrusted(request.template_source_archive, self._folder)
        except UnpackError as problem:
            return pb.InitComplete(error=problem.message)
        return await self._replay("init", None, pb.InitComplete, emit)

    async def parse(self, emit: Emit) -> pb.ParseComplete:
        complete = await self._replay("parse", None, pb.ParseComplete, emit)
        readme = self._folder / "README.md"
        if not complete.readme and readme.is_file():
            complete.readme = readme.read_bytes()
        return complete

    async def plan(self, request: pb.PlanRequest, emit: Emit) -> pb.PlanComplete:
        self._state = request.state
        return await self._replay("plan", request.metadata, pb.PlanComplete, emit)

    async def graph(self, request: pb.GraphRequest, emit: Emit) -> pb.GraphComplete:
        complete = await self._replay("graph", request.metadata, pb.GraphComplete, emit)
        if complete.ai_tasks:
            complete.has_ai_tasks = True
        return complete

    async def apply(self, request: pb.ApplyRequest, emit: Emit) -> pb.ApplyComplete:
        complete = await self._replay("apply", request.metadata, pb.ApplyComplete, emit)
        self._state = complete.state or self._state
        return complete

    async def _replay(self, kind: str, metadata: pb.Metadata | None, answer: type[Answer], emit: Emit) -> Answer:
        emit = filter_level(self._level, emit)
        has_responses = False
        for path in self._files(kind, metadata):
            has_responses = True
            response = pb.Response.FromString(path.read_bytes())
            response_kind = response.WhichOneof("type")
            if response_kind == "log":
                emit(response.log.level, response.log.output)
            elif response_kind == kind:
                await trio.lowlevel.checkpoint()
                complete: Answer = getattr(response, kind)
                return complete
        if not has_responses:
            return answer(error=f"no state: {kind}")
        if kind == "parse":
            return answer(error="complete response missing")
        # A recording without an end stands for work that takes forever.
        await self._canceled.wait()
        return answer(error="canceled")

    def _files(self, kind: str, metadata: pb.Metadata | None) -> Iterator[Path]:
        index = 0
        while True:
            names = [f"{index}.{kind}.protobuf"]
            if metadata is not None:
                names.insert(0, f"{index}.{_TRANSITIONS[metadata.workspace_transition]}.{kind}.protobuf")
            path = next((self._folder / name for name in names if (self._folder / name).is_file()), None)
            if path is None:
                return
            yield path
            index += 1
