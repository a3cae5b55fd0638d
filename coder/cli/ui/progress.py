"""Waiting for a job on the terminal: its log, Ctrl-C that cancels it, the result at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from coder.api.provisioning.jobs import ProvisionerJob
from coder.api.workspaces.builds import WorkspaceBuild
from coder.base.errors import CoderError
from coder.cli.ui.choices import is_interactive
from coder.cli.ui.live_stages import LiveStages
from coder.cli.ui.stages import NoStages, StagePrinter, Stages
from coder.client.answers import read
from coder.client.patience import read_patiently
from coder.net.blocking import BlockingClient

if TYPE_CHECKING:
    from coder.api.provisioning.jobs import ProvisionerJob
    from coder.api.templates.template_versions import TemplateVersion
    from coder.api.workspaces.builds import WorkspaceBuild

T = TypeVar("T", "WorkspaceBuild", "TemplateVersion", "ProvisionerJob")
ENDED = {"succeeded", "failed", "canceled"}


_ODD = "Check that this is a Coder server of a similar release: `coder version` prints both versions."


def _printer() -> Stages:
    return LiveStages() if is_interactive() else StagePrinter()


def watch_job(client: BlockingClient, path: str, kind: type[T], *, quiet: bool = False) -> T:
    """Stream the log of the job at `path`, then return the resource there (`kind`) after its job has ended.

    The resource is a build, a template version, or the job itself (a dry run).

    Ctrl-C cancels the job and continues to watch it until it ends. Raise CoderError if the job failed.
    """

    printer = NoStages() if quiet else _printer()

    def watch() -> None:
        from coder.cli.ui.job_logs import print_job_log  # trio is loaded only by commands that wait for a job

        print_job_log(client.policy, path, printer)

    try:
        watch()
    except KeyboardInterrupt:
        printer.clear()
        _cancel(client, path)
    except BaseException:
        printer.clear()
        raise
    item = read(read_patiently(client, path), kind)
    while (status := _job(item).status) not in ENDED:
        if not status:  # waiting for a status that this server never reports would never end
            raise CoderError("odd_answer", f"The server does not report the status of the job at {path}.", _ODD)
        watch()
        item = read(read_patiently(client, path), kind)
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
