"""Interface between job runner and executor: the requests of docs/protocol/provisioners.md, as coroutines.

The protocol itself (provisioner.Provisioner/Session) has one bidirectional stream; inside one process a method for each
request is equivalent. Failures of the work are `error` texts in the replies; exceptions mean a broken executor.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coder.rpc.proto import provisioner_pb2 as pb

STATE_PATH = "template/terraform.tfstate"
"Path of the state in a job's directory, for recovery without the executor."


def read_state(path: Path) -> bytes:
    """Return the state in a file; b"" when it is missing or incomplete."""
    try:
        state = path.read_bytes()
        json.loads(state)
    except (OSError, ValueError, RecursionError):
        return b""
    return state


Emit = Callable[["pb.LogLevel.ValueType", str], None]
"""Sink for (level, one line) of the running request; never blocks."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Config message of a session, and its folder for files."""

    folder: Path
    log_level: str = ""
    template_id: str = ""
    template_version_id: str = ""


class ExecutorSession(Protocol):
    """Session of one job. Requests come one at a time: init, then parse, plan and graph as needed, apply after plan."""

    async def init(self, request: pb.InitRequest, module_archive: bytes, emit: Emit) -> pb.InitComplete: ...

    async def parse(self, emit: Emit) -> pb.ParseComplete: ...

    async def plan(self, request: pb.PlanRequest, emit: Emit) -> pb.PlanComplete: ...

    async def graph(self, request: pb.GraphRequest, emit: Emit) -> pb.GraphComplete: ...

    async def apply(self, request: pb.ApplyRequest, emit: Emit) -> pb.ApplyComplete: ...

    def cancel(self) -> None:
        """Ask the running request to end soon; it still replies. Does nothing without one."""
        ...

    def state(self) -> bytes:
        """Return the newest state, for a job that ends without a reply."""
        ...


class Executor(Protocol):
    def open(self, settings: Settings) -> AbstractAsyncContextManager[ExecutorSession]:
        """Open a session for one job. Leaving the block for any reason stops everything it started."""
        ...


LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "error": 4}


def filter_level(level: str, emit: Emit) -> Emit:
    """Return `emit` without the lines below a level's name; "" keeps all."""
    lowest = LEVELS.get(level.lower(), 0)
    if lowest == 0:
        return emit

    def filtered(line_level: pb.LogLevel.ValueType, text: str) -> None:
        if int(line_level) >= lowest:
            emit(line_level, text)

    return filtered
