"""Concurrent run of `terraform graph`: started early, awaited when the graph is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import trio

from coder.provisionerd.terraform.process import ProcessError, Runner


class GraphRun:
    """Graph of one job: it depends on the template alone, so one run serves the whole job."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.dot = ""
        self.error = ""

    async def run(
        self, runner: Runner, arguments: Sequence[str], environment: Mapping[str, str], keep: Callable[[str], None]
    ) -> None:
        """Run the command and set `done` in every case; `keep` receives a complete graph."""
        try:
            status, out, err = await runner.capture(arguments, environment)
            self.dot = out.decode("utf-8", "replace")
            if status != 0:
                text = err.decode("utf-8", "replace").strip()[-2000:]
                self.error = f"terraform graph: {runner.explain(status)}: {text}"
            else:
                keep(self.dot)
        except ProcessError as problem:
            self.error = f"terraform graph: {problem.message}"
        finally:
            self.done.set()
