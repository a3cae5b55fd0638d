"""Watching a job from the terminal: stages as headings with their time, log lines below, one answer at the end."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from coder.base.errors import CoderError
from coder.cli.output import parse_time
from coder.net.blocking import BlockingClient

ENDED = {"succeeded", "failed", "canceled"}


class StagePrinter:
    """Prints job log lines: `==> ⧗ stage`, its lines, `=== ✔ stage [12ms]`."""

    def __init__(self) -> None:
        self._stage = ""
        self._since: datetime | None = None
        self._last: datetime | None = None

    def line(self, log: dict[str, Any]) -> None:
        at = parse_time(log["created_at"])
        if log["stage"] != self._stage:
            self._end(at)
            self._stage, self._since = log["stage"], at
            sys.stdout.write(f"==> ⧗ {self._stage}\n")
        self._last = at
        if log["output"]:
            sys.stdout.write(f"{log['output']}\n")
        sys.stdout.flush()

    def finish(self, *, ok: bool) -> None:
        self._end(self._last, mark="✔" if ok else "✘")
        sys.stdout.flush()

    def _end(self, at: datetime | None, mark: str = "✔") -> None:
        if not self._stage:
            return
        took = (at - self._since).total_seconds() * 1000 if at and self._since else 0
        sys.stdout.write(f"=== {mark} {self._stage} [{took:.0f}ms]\n")


def watch_job(client: BlockingClient, logs_path: str, object_path: str, *, quiet: bool = False) -> dict[str, Any]:
    """Streams a job's log, then returns the object (build or template version) whose `job` has ended.

    Ctrl-C asks the server to cancel the job and goes on watching its end. Raises CoderError when it failed.
    """
    import trio

    from coder.client.logs import follow_job_logs

    printer = StagePrinter()

    async def watch() -> None:
        async for log in follow_job_logs(client.policy, logs_path):
            if not quiet:
                printer.line(log)

    try:
        trio.run(watch)
    except KeyboardInterrupt:
        _cancel(client, object_path)
    found: dict[str, Any] = client.request("GET", object_path).json()
    while found["job"]["status"] not in ENDED:
        trio.run(watch)
        found = client.request("GET", object_path).json()
    ok = found["job"]["status"] == "succeeded"
    if not quiet:
        printer.finish(ok=ok)
    if not ok:
        raise CoderError("job", found["job"].get("error") or f"the job was {found['job']['status']}")
    return found


def _cancel(client: BlockingClient, object_path: str) -> None:
    sys.stderr.write("\nCanceling the job …\n")
    client.request("PATCH", f"{object_path}/cancel", expect=(200, 400))


def watch_build(client: BlockingClient, build: dict[str, Any]) -> dict[str, Any]:
    path = f"/api/v2/workspacebuilds/{build['id']}"
    return watch_job(client, f"{path}/logs", path)
