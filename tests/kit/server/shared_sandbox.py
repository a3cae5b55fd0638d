"""Evaluation processes that outlive the server which started them: the next server of this process takes them over.

Most tests with a template start one, which costs a tenth of a second of processor time. A server takes over an idle
process, and only with the product's limits. Templates are cached by names that no two servers share.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

import trio

from coder.coderd.services.foundation import sandbox

_MOST = sandbox.WORKERS
_spare: list[Any] = []
"""Idle processes of ended servers."""


def _limits() -> tuple[object, ...]:
    return sandbox.CPU_SECONDS, sandbox.MEMORY, sandbox.WALL_SECONDS


_USUAL = _limits()


class SharedSandbox(sandbox.Sandbox):
    """The sandbox of a server in this process."""

    async def _start(self) -> Any:
        while _spare and _limits() == _USUAL:
            worker = _spare.pop()
            if worker.is_running:
                self._all.add(worker)
                return worker
        return await super()._start()

    async def _kill_all_at_shutdown(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            for worker in list(self._all):
                if worker in self._idle and worker.is_running and len(_spare) < _MOST and _limits() == _USUAL:
                    _spare.append(worker)
                else:
                    await worker.close()


def _end_processes(owner: int) -> None:
    for worker in _spare if os.getpid() == owner else ():  # not in a fork
        worker._process._proc.kill()
        worker._process._proc.wait()
        if worker._process._pidfd is not None:
            worker._process._pidfd.close()


atexit.register(_end_processes, os.getpid())
