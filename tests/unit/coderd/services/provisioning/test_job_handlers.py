"""Handlers that the composition root passes to the queue: one for each type of job."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from coder.coderd.app import JOB_HANDLERS
from coder.coderd.services.provisioning.job_handlers import JobHandlers, handlers_of
from coder.domain.provisioning.jobs import JobType
from coder.rpc.proto import provisionerd_pb2


class _Context:
    """The parts of a Context that handlers need at their creation."""

    parts: dict[type, object]

    def __init__(self) -> None:
        self.parts = {}

    def part(self, kind: type) -> object:
        return object()

    def find(self, kind: type) -> object:
        return self.parts.get(kind)


def test_every_job_type_has_handler() -> None:
    assert JOB_HANDLERS.keys() == set(get_args(JobType))


def test_handlers_name_their_result() -> None:
    ctx: Any = _Context()
    named = {make(ctx).result for make in JOB_HANDLERS.values()}
    parts = provisionerd_pb2.CompletedJob.DESCRIPTOR.oneofs_by_name["type"].fields
    assert named == {part.name for part in parts}


def test_missing_handlers_raise() -> None:
    ctx: Any = _Context()
    with pytest.raises(LookupError):
        handlers_of(ctx)
    ctx.parts[JobHandlers] = handed = JobHandlers({})
    assert handlers_of(ctx) is handed
