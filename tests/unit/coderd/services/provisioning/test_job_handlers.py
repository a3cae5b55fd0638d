"""The handlers that the composition root hands to the queue: one for each kind of job there is."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from coder.coderd.app import JOB_HANDLERS
from coder.coderd.services.provisioning.job_handlers import JobHandlers, handlers_of
from coder.domain.provisioning.jobs import JobType
from coder.rpc.proto import provisionerd_pb2


class _Context:
    """Enough of one to make handlers: they read more of it when a job comes."""

    parts: dict[type, object]

    def __init__(self) -> None:
        self.parts = {}

    def part(self, kind: type) -> object:
        return object()

    def find(self, kind: type) -> object:
        return self.parts.get(kind)


def test_every_kind_of_job_has_a_handler() -> None:
    assert JOB_HANDLERS.keys() == set(get_args(JobType))


def test_handlers_name_the_result_they_store() -> None:
    ctx: Any = _Context()
    named = {make(ctx).result for make in JOB_HANDLERS.values()}
    parts = provisionerd_pb2.CompletedJob.DESCRIPTOR.oneofs_by_name["type"].fields
    assert named == {part.name for part in parts}


def test_handlers_have_to_be_handed_in() -> None:
    ctx: Any = _Context()
    with pytest.raises(LookupError):
        handlers_of(ctx)
    ctx.parts[JobHandlers] = handed = JobHandlers({})
    assert handlers_of(ctx) is handed
