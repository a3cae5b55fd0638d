"""Arguments of the build-end event: the build and the replaced resources."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from coder.coderd.services.workspaces.builds import build_events
from coder.coderd.services.workspaces.builds.build_jobs import BuildJobs
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

JOB = UUID(int=7)


async def test_build_end_names_replaced_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[Any, ...]] = []

    async def record_build_end(*arguments: Any) -> None:
        events.append(arguments)

    monkeypatch.setattr(build_events, "record_build_end", record_build_end)
    ctx: Any = object()
    tx: Any = object()
    jobs = BuildJobs(ctx)
    replaced = provisioner_pb2.ResourceReplacement(resource="docker_container.dev", paths=["env"])
    build = provisionerd_pb2.CompletedJob.WorkspaceBuild(resource_replacements=[replaced])
    await jobs.ended(tx, JOB, None, provisionerd_pb2.CompletedJob(workspace_build=build))
    await jobs.ended(tx, JOB)
    assert events == [(ctx, tx, JOB, {"docker_container.dev": ["env"]}), (ctx, tx, JOB, {})]
