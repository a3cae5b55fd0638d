"""Job progress on the terminal: stages as headings with their time, log lines below, the result at the end."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from coder.api.provisioning.jobs import ProvisionerJob
from coder.api.workspaces.builds import WorkspaceBuild
from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.cli.ui.choices import is_interactive
from coder.cli.ui.live_stages import LiveStages
from coder.cli.ui.output import parse_time
from coder.client.answers import read
from coder.client.logs import follow_job_logs
from coder.net.blocking import BlockingClient

if TYPE_CHECKING:
    from coder.api.provisioning.jobs import ProvisionerJob, ProvisionerJobLog
    from coder.api.templates.template_versions import TemplateVersion
    from coder.api.workspaces.builds import WorkspaceBuild

T = TypeVar("T", "WorkspaceBuild", "TemplateVersion", "ProvisionerJob")
ENDED = {"succeeded", "failed", "canceled"}


_ODD = "Check that this is a Coder server of a similar release: `coder version` prints both versions."
_TICK = 0.2
"""Seconds between two redraws of a running stage."""


class Stages(Protocol):
    """Display of a job's log."""

    def line(self, log: ProvisionerJobLog) -> None: ...

    def tick(self) -> None:
        """Update the elapsed time."""

    def clear(self) -> None:
        """Prepare for other output."""

    def finish(self, *, ok: bool) -> None: ...


class StagePrinter:
    """Stages that print job log lines: `==> ⧗ stage`, its lines, `=== ✔ stage [12ms]`."""

    def __init__(self) -> None:
        self._stage = ""
        self._since: datetime | None = None
        self._last: datetime | None = None

    def line(self, log: ProvisionerJobLog) -> None:
        at = parse_time(log.created_at)
        if log.stage != self._stage:
            self._end(at)
            self._stage, self._since = log.stage, at
            sys.stdout.write(f"==> ⧗ {self._stage}\n")
        self._last = at
        if log.output:
            sys.stdout.write(f"{log.output}\n")
        sys.stdout.flush()

    def tick(self) -> None:
        """Do nothing: printed lines are not redrawn."""

    def clear(self) -> None:
        """Do nothing, as `tick`."""

    def finish(self, *, ok: bool) -> None:
        self._end(self._last, mark="✔" if ok else "✘")
        sys.stdout.flush()

    def _end(self, at: datetime | None, mark: str = "✔") -> None:
        if not self._stage:
            return
        took = (at - self._since).total_seconds() * 1000 if at and self._since else 0
        sys.stdout.write(f"=== {mark} {self._stage} [{took:.0f}ms]\n")


class NoStages:
    """Stages that print nothing."""

    def line(self, log: ProvisionerJobLog) -> None:
        pass

    def tick(self) -> None:
        pass

    def clear(self) -> None:
        pass

    def finish(self, *, ok: bool) -> None:
        pass


def _printer() -> Stages:
    return LiveStages() if is_interactive() else StagePrinter()


def _run(watch: Callable[[], Awaitable[None]]) -> None:
    """Run with `trio.run`, unwrapping an exception group that has a single exception."""
    try:
        run_trio(watch)
    except BaseExceptionGroup as group:
        inner: BaseException = group
        while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
            inner = inner.exceptions[0]
        raise inner from None


def watch_job(client: BlockingClient, path: str, kind: type[T], *, quiet: bool = False) -> T:
    """Stream the log of the job at `path`, then return the resource there (`kind`) after its job has ended.

    The resource is a build, a template version, or the job itself (a dry run).

    Ctrl-C cancels the job and continues to watch it until it ends. Raise CoderError if the job failed.
    """

    printer = NoStages() if quiet else _printer()

    async def watch() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            async for log in follow_job_logs(client.policy, f"{path}/logs"):
                printer.line(log)
            nursery.cancel_scope.cancel()

    async def go_on() -> None:
        while True:
            printer.tick()
            await trio.sleep(_TICK)

    try:
        _run(watch)
    except KeyboardInterrupt:
        printer.clear()
        _cancel(client, path)
    except BaseException:
        printer.clear()
        raise
    item = read(client.request("GET", path), kind)
    while (status := _job(item).status) not in ENDED:
        if not status:  # waiting for a status that this server never reports would never end
            raise CoderError("odd_answer", f"The server does not report the status of the job at {path}.", _ODD)
        _run(watch)
        item = read(client.request("GET", path), kind)
    job = _job(item)
    ok = job.status == "succeeded"
    printer.finish(ok=ok)
    if not ok:
        raise CoderError("job", job.error or f"the job was {job.status}")
    return item


def _job(item: WorkspaceBuild | TemplateVersion | ProvisionerJob) -> ProvisionerJob:
    return item if isinstance(item, ProvisionerJob) else item.job


def _cancel(client: BlockingClient, path: str) -> None:
    sys.stderr.write("\nCanceling the job …\n")
    client.request("PATCH", f"{path}/cancel", expect=(200, 400))


def watch_build(client: BlockingClient, build: WorkspaceBuild) -> WorkspaceBuild:
    return watch_job(client, f"/api/v2/workspacebuilds/{build.id}", WorkspaceBuild)
