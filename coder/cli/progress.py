"""Watching a job from the terminal: stages as headings with their time, log lines below, one answer at the end."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from coder.base.errors import CoderError
from coder.cli.output import parse_time
from coder.client.answers import read
from coder.net.blocking import BlockingClient

if TYPE_CHECKING:
    from coder.api.provisioning.provisioners import ProvisionerJobLog
    from coder.api.templates.template_versions import TemplateVersion
    from coder.api.workspaces.builds import WorkspaceBuild

T = TypeVar("T", "WorkspaceBuild", "TemplateVersion")
ENDED = {"succeeded", "failed", "canceled"}


class StagePrinter:
    """Prints job log lines: `==> ⧗ stage`, its lines, `=== ✔ stage [12ms]`."""

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

    def finish(self, *, ok: bool) -> None:
        self._end(self._last, mark="✔" if ok else "✘")
        sys.stdout.flush()

    def _end(self, at: datetime | None, mark: str = "✔") -> None:
        if not self._stage:
            return
        took = (at - self._since).total_seconds() * 1000 if at and self._since else 0
        sys.stdout.write(f"=== {mark} {self._stage} [{took:.0f}ms]\n")


def watch_job(client: BlockingClient, path: str, kind: type[T], *, quiet: bool = False) -> T:
    """Streams the log of the job of a build or template version, then returns that (`kind`) with its job ended.

    Ctrl-C asks the server to cancel the job and goes on watching its end. Raises CoderError when it failed.
    """
    import trio

    from coder.client.logs import follow_job_logs

    printer = StagePrinter()

    async def watch() -> None:
        async for log in follow_job_logs(client.policy, f"{path}/logs"):
            if not quiet:
                printer.line(log)

    try:
        trio.run(watch)
    except KeyboardInterrupt:
        _cancel(client, path)
    found = read(client.request("GET", path), kind)
    while found.job.status not in ENDED:
        trio.run(watch)
        found = read(client.request("GET", path), kind)
    ok = found.job.status == "succeeded"
    if not quiet:
        printer.finish(ok=ok)
    if not ok:
        raise CoderError("job", found.job.error or f"the job was {found.job.status}")
    return found


def _cancel(client: BlockingClient, path: str) -> None:
    sys.stderr.write("\nCanceling the job …\n")
    client.request("PATCH", f"{path}/cancel", expect=(200, 400))


def watch_build(client: BlockingClient, build: WorkspaceBuild) -> WorkspaceBuild:
    from coder.api.workspaces.builds import WorkspaceBuild

    return watch_job(client, f"/api/v2/workspacebuilds/{build.id}", WorkspaceBuild)
