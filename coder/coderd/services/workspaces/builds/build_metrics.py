"""Counting of requested builds: users', automatic ones, prebuilds' and tasks'.

A build is counted after the transaction that queued it, or when it was refused. A transaction that is retried must not
count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coder.api.base.refusals import Refusal
from coder.coderd.services.workspaces.builds.build_requests import BuildRequest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FAMILY = "coderd_workspace_builds_enqueued_total"


@dataclass(frozen=True, slots=True)
class EnqueuedBuild:
    """A build that was queued inside a transaction and is counted after it."""

    request: BuildRequest
    provisioner: str

    def count(self, ctx: Context) -> None:
        _add(ctx, self.request, self.provisioner, "success")


@contextmanager
def counted(ctx: Context, request: BuildRequest) -> Iterator[Callable[[str], None]]:
    """Count the build that is queued inside the block; yield a callback for the job's provisioner. A refusal counts as
    failed."""

    def queued(provisioner: str) -> None:
        _add(ctx, request, provisioner, "success")

    try:
        yield queued
    except Refusal:
        _add(ctx, request, "", "failed")
        raise


def _add(ctx: Context, request: BuildRequest, provisioner: str, status: str) -> None:
    ctx.services.metrics[FAMILY].add(request.reason, provisioner, status, request.transition)
