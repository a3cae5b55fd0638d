"""Profiles of this process: CPU time and waiting time of threads, trio tasks, and objects in memory.

Python has no pprof, so the profiles are text for common tools: samples as collapsed stacks (a stack a line, frames
joined by `;`, then the count), trees of trio tasks, counts of objects by type. One archive contains them all.
"""

from __future__ import annotations

import collections
import gc
import io
import sys
import tarfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import Conflict, Invalid

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

MAX_SECONDS = 60.0
DEFAULT_SECONDS = 5.0
INTERVAL = 0.005
"""Seconds between samples: 200 a second cost about one percent of a core."""
_DEEPEST = 200
_MANY_TYPES = 300


@dataclass
class Profiling:
    """Profiler that takes one profile at a time."""

    ctx: Context
    busy: bool = field(default=False)

    async def take(self, seconds: float, names: Sequence[str]) -> bytes:
        """Return a gzipped tar with a file for each name; all profiles without names. Raises Invalid, Conflict."""
        names = list(dict.fromkeys(names)) or list(PROFILES)
        unknown = [name for name in names if name not in PROFILES]
        if unknown:
            raise Invalid(f"Unknown profile {unknown[0][:64]!r}.", f"Known are: {', '.join(PROFILES)}.")
        if not 0 < seconds <= MAX_SECONDS:
            raise Invalid("The duration is out of range.", f"It must be above 0 and at most {MAX_SECONDS:g} seconds.")
        if self.busy:
            raise Conflict("Another profile is being taken.", "Only one is taken at a time; try again when it is done.")
        self.busy = True
        try:
            profiles = await self._collect(seconds, names)
        finally:
            self.busy = False
        return await trio.to_thread.run_sync(_pack, profiles, int(self.ctx.clock.now().timestamp()))

    async def _collect(self, seconds: float, names: Sequence[str]) -> dict[str, str]:
        profiles: dict[str, str] = {}
        sampled = {"cpu", "threads"} & set(names)
        if sampled:
            counts = await _sampled(seconds)
            profiles |= {name: text for name, text in counts.items() if name in sampled}
        for name in names:
            if name in _HERE:
                profiles[name] = PROFILES[name]()
            elif name not in sampled:
                # A quarter of a second for half a million objects would delay every other request.
                profiles[name] = await trio.to_thread.run_sync(PROFILES[name])
        return profiles


async def _sampled(seconds: float) -> dict[str, str]:
    """Sample in a thread. A cancelled caller, and a stopping server, do not wait for a sampling of a minute."""
    stop = threading.Event()
    try:
        return await trio.to_thread.run_sync(_sample, seconds, threading.get_ident(), stop, abandon_on_cancel=True)
    finally:
        stop.set()


def _sample(seconds: float, main: int, stop: threading.Event) -> dict[str, str]:
    """Sample the stacks of all threads for a while. `cpu` leaves out stacks that only wait in the event loop."""
    own = threading.get_ident()
    busy: collections.Counter[str] = collections.Counter()
    every: collections.Counter[str] = collections.Counter()
    deadline = time.monotonic() + seconds
    while True:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident == own:
                continue
            name = "main" if ident == main else names.get(ident, str(ident))
            line = ";".join([name.replace(";", ","), *_frames(frame)])
            every[line] += 1
            if frame.f_code.co_name not in _WAITING:
                busy[line] += 1
        if time.monotonic() >= deadline or stop.wait(INTERVAL):
            break
    return {"cpu": _collapsed(busy), "threads": _collapsed(every)}


_WAITING = frozenset({"get_events", "wait", "select", "_worker_thread", "acquire", "poll", "_wait_for_tstate_lock"})
"""Functions whose top frame means that a thread waits."""


def _frames(frame: FrameType | None) -> list[str]:
    """Return the frames, outermost first."""
    frames: list[str] = []
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "?")
        frames.append(f"{module}.{code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return frames[::-1]


def _collapsed(counts: collections.Counter[str]) -> str:
    return "".join(f"{line} {count}\n" for line, count in counts.most_common())


def _tasks() -> str:
    """Return the stack in which each trio task waits."""
    lines: list[str] = []
    root = trio.lowlevel.current_root_task()

    def show(task: trio.lowlevel.Task, depth: int) -> None:
        pad = "  " * depth
        lines.append(f"{pad}{task.name}")
        for frame, line in _stack_of(task):
            lines.append(f"{pad}    {frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{line}")
        for nursery in task.child_nurseries:
            for child in nursery.child_tasks:
                show(child, depth + 1)

    if root is not None:
        show(root, 0)
    return "\n".join(lines) + "\n"


def _stack_of(task: trio.lowlevel.Task) -> list[tuple[FrameType, int]]:
    coro = task.coro
    try:
        return list(traceback.walk_stack(coro.cr_frame)) if not coro.cr_await else list(task.iter_await_frames())
    except (AttributeError, RuntimeError):  # a generator-based coroutine, or the running task
        return []


def _heap() -> str:
    """Return count and bytes of collectable objects by type, without the objects they refer to."""
    counts: collections.Counter[str] = collections.Counter()
    sizes: collections.Counter[str] = collections.Counter()
    for item in gc.get_objects():
        kind = type(item)
        name = f"{kind.__module__}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(item, 0)
    rows = [f"{counts[name]:>9} {size:>12} {name}" for name, size in sizes.most_common(_MANY_TYPES)]
    return "\n".join(["  objects        bytes type", *rows]) + "\n"


def _collector() -> str:
    return "".join(f"generation {index}: {stats}\n" for index, stats in enumerate(gc.get_stats()))


PROFILES: dict[str, Callable[[], str]] = {
    "cpu": lambda: "",
    "threads": lambda: "",
    "tasks": _tasks,
    "heap": _heap,
    "gc": _collector,
}
"""Profiles by name. The first two are sampled, the others are a snapshot."""
_HERE = frozenset({"tasks"})
"Profiles taken in the thread of the event loop."


def _pack(profiles: dict[str, str], now: int) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as archive:
        for name, text in profiles.items():
            data = text.encode()
            info = tarfile.TarInfo(f"{name}.txt")
            info.size, info.mtime, info.mode = len(data), now, 0o644
            archive.addfile(info, io.BytesIO(data))
    return output.getvalue()
