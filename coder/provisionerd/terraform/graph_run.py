"""`terraform graph` beside other work: begun early, waited for when the graph is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import trio

from coder.provisionerd.terraform.process import ProcessError, Runner, explain_status


class GraphRun:
    """One graph, serving the whole job: it depends on the template alone."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.dot = ""
        self.error = ""

    async def run(
        self, runner: Runner, arguments: Sequence[str], environment: Mapping[str, str], keep: Callable[[str], None]
    ) -> None:
        """Sets `done` however it ends; `keep` gets a whole graph."""
        try:
            status, out, err = await runner.capture(arguments, environment)
            self.dot = out.decode("utf-8", "replace")
            if status != 0:
                text = err.decode("utf-8", "replace").strip()[-2000:]
                self.error = f"terraform graph: {explain_status(status)}: {text}"
            else:
                keep(self.dot)
        except ProcessError as problem:
            self.error = f"terraform graph: {problem.message}"
        finally:
            self.done.set()
