"""Profiles of this process: the counterpart of Go's pprof, for `--pprof-enable` and the API.

Python has no pprof, so every profile is text: the stacks of all threads, or samples of them as folded stacks, which
flame graph programs read (`…;frame;frame count`).
"""

from __future__ import annotations

import gc
import resource
import sys
import threading
import traceback
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import trio

from coder.appproxy.metrics.metrics_listener import PLAIN, Page, open_metrics_listeners, serve_pages
from coder.base.config import masked_arguments
from coder.coderd.config.options import OPTIONS
from coder.net.masking import shown_setting

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

NAMES = ("allocs", "block", "cmdline", "goroutine", "heap", "mutex", "profile", "symbol", "threadcreate", "trace")
"""Names of Go's profiles."""
_PREFIX = "/debug/pprof"
_PERIOD = 0.01
"""Seconds between two samples."""
_LONGEST = 300.0
"""Maximum seconds of one profile."""


def command_line() -> list[str]:
    """Return the command line without secrets: the configuration's page hides them, too, and support bundles contain
    this."""
    return [_without_secrets(argument) for argument in masked_arguments(sys.argv, OPTIONS)]


def _without_secrets(argument: str) -> str:
    flag, separator, value = argument.partition("=")
    return f"{flag}={shown_setting(value)}" if separator and flag.startswith("-") else shown_setting(argument)


def stacks() -> str:
    """Return the stacks of all threads."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    return "\n".join(f"{names.get(at, at)}:\n{''.join(traceback.format_stack(frame))}" for at, frame in frames.items())


def memory() -> str:
    """Return the number of objects by type, the most frequent first, and the peak of resident memory."""
    counts = Counter(type(item).__qualname__ for item in gc.get_objects())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return "\n".join([f"max_rss_kib {peak}", *(f"{name} {count}" for name, count in counts.most_common(200))]) + "\n"


async def sample(seconds: float) -> str:
    """Return folded stacks of all threads, sampled for a time by a thread of its own."""
    return await trio.to_thread.run_sync(_sample, min(max(seconds, _PERIOD), _LONGEST))


def _sample(seconds: float) -> str:
    own, counts, wait = threading.get_ident(), Counter[str](), threading.Event()
    for _ in range(round(seconds / _PERIOD)):
        for ident, frame in sys._current_frames().items():
            if ident != own:
                lines = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
                counts[";".join(f"{line.filename}:{line.name}" for line in reversed(lines))] += 1
        wait.wait(_PERIOD)
    return "".join(f"{stack} {count}\n" for stack, count in counts.most_common())


async def profile(name: str, seconds: float = 0) -> str | None:
    """Return a profile by its name in Go; None for an unknown one."""
    if name not in NAMES:
        return None
    if name == "cmdline":
        return "\0".join(command_line())
    if name in {"heap", "allocs"}:
        return memory()
    return await sample(seconds) if seconds > 0 and name in {"profile", "trace"} else stacks()


async def answer(path: str, query: str) -> Page:
    """Return a page of the separate listener."""
    if path.rstrip("/") == _PREFIX:
        return 200, PLAIN, ("\n".join(NAMES) + "\n").encode()
    values = parse_qs(query)
    text = (values.get("seconds") or ["30" if path.endswith(("/profile", "/trace")) else "0"])[0]
    seconds = float(text) if text.replace(".", "", 1).isdigit() and text.isascii() else 0.0
    found = await profile(path.removeprefix(f"{_PREFIX}/"), seconds) if path.startswith(f"{_PREFIX}/") else None
    return (404, PLAIN, b"404 page not found\n") if found is None else (200, PLAIN, found.encode())


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve profiles on `--pprof-address` until the server stops; do nothing when disabled. Raises CoderError when it
    cannot listen."""
    if not ctx.config.pprof_enable:
        task_status.started()
        return
    listeners = await open_metrics_listeners(ctx.config.pprof_address, "pprof-address")
    ctx.services.profiles_port = listeners[0].socket.getsockname()[1]
    task_status.started()
    await serve_pages(listeners, answer, ctx.stopping)
