"""Handlers that the composition passes to the queue: one for each type of job."""

from __future__ import annotations

from typing import Any, get_args

from coder.coderd.composition import build_job_handlers
from coder.domain.provisioning.jobs import JobType
from coder.rpc.proto import provisionerd_pb2

NOTHING: Any = None
HANDLERS = build_job_handlers(NOTHING, NOTHING).by_type


def test_every_job_type_has_handler() -> None:
    assert HANDLERS.keys() == set(get_args(JobType))


def test_handlers_name_their_result() -> None:
    parts = provisionerd_pb2.CompletedJob.DESCRIPTOR.oneofs_by_name["type"].fields
    assert {handler.result for handler in HANDLERS.values()} == {part.name for part in parts}
