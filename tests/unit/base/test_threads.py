"""A failed thread start is an OSError, whatever code starts the thread."""

from __future__ import annotations

import ast
import concurrent.futures
import contextlib
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base import threads
from coder.base.threads import NoThreadError, in_thread_or_here
from tests.kit.event_loop_probes import no_threads

PRODUCT = sorted(Path("coder").rglob("*.py"))


async def _by_itself() -> None:
    threading.Thread(target=print).start()


async def _by_an_executor() -> None:
    concurrent.futures.ThreadPoolExecutor(1).submit(print)


WAYS: dict[str, Callable[[], Awaitable[Any]]] = {
    "a thread": _by_itself,
    "an executor": _by_an_executor,
    "trio's threads": lambda: trio.to_thread.run_sync(print),
    "a program": lambda: trio.lowlevel.open_process(["true"]),
    "a program to its end": lambda: trio.run_process(["true"]),
    "the name of a host": lambda: trio.socket.getaddrinfo("localhost", 1),
    "a connection by name": lambda: trio.open_tcp_stream("localhost", 1),
    "a file": lambda: trio.open_file(__file__),
    "a look at a file": lambda: trio.Path(__file__).stat(),
}


@pytest.mark.parametrize("way", WAYS)
async def test_refused_thread_is_os_error(way: str) -> None:
    before = trio.to_thread.current_default_thread_limiter().borrowed_tokens
    with no_threads(), pytest.raises(OSError, match="no room for another thread") as caught:
        await WAYS[way]()
    assert isinstance(caught.value, NoThreadError | RuntimeError)
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == before
    assert await trio.to_thread.run_sync(threading.get_ident) != threading.get_ident(), "threads work again later"


def test_other_start_errors_stay() -> None:
    thread = threading.Thread(target=int)
    threads._start(thread)
    with pytest.raises(RuntimeError, match="only be started once") as caught:
        threads._start(thread)
    assert not isinstance(caught.value, OSError)
    thread.join()


def test_run_trio_converts_refusals() -> None:
    async def main(what: int) -> int:
        with no_threads(), pytest.raises(OSError, match="no room"):
            await trio.to_thread.run_sync(print)
        return what

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", threads._plain_start)
        assert threads.run_trio(main, 7) == 7
        assert threading.Thread.start is threads._start


@pytest.mark.skipif(sys.platform == "win32", reason="has no signal that a program may use")
@pytest.mark.parametrize("fails", [False, True])
def test_signal_while_trio_closes_is_silent(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would print the failed write to trio's closed socket."""
    pair = trio._core._wakeup_socketpair.WakeupSocketpair
    close, printed, handled = pair.close, list[Any](), list[int]()

    def close_slowly(self: Any) -> None:
        if self.old_wakeup_fd is not None:  # trio has another pair that signals are not written to
            self.wakeup_sock.close()
            self.write_sock.close()
            signal.raise_signal(signal.SIGUSR1)
        close(self)

    async def main() -> None:
        await trio.lowlevel.checkpoint()
        if fails:
            raise KeyError

    monkeypatch.setattr(pair, "close", close_slowly)
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    before = signal.signal(signal.SIGUSR1, lambda number, _: handled.append(number))
    try:
        with pytest.raises(KeyError) if fails else contextlib.nullcontext():
            threads.run_trio(main)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (printed, handled) == ([], [signal.SIGUSR1])


async def test_required_work_runs_here() -> None:
    here = threading.get_ident()
    assert await in_thread_or_here(threading.get_ident) != here
    with no_threads():
        assert await in_thread_or_here(threading.get_ident) == here
        with pytest.raises(ValueError, match="invalid literal"):
            await in_thread_or_here(int, "x")


def _calls(path: Path) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}


def test_sources_start_trio_through_module() -> None:
    """The database's thread starts before anything else, and without it there is no server. A pseudo-console of
    Windows reads and writes for as long as its program runs, so it has threads of its own."""
    allowed = {
        ("coder/agent/platform/windows.py", "threading.Thread"),
        ("coder/base/threads.py", "trio.run"),
        ("coder/coderd/store/engine/database.py", "threading.Thread"),
        ("coder/coderd/store/engine/database.py", "asyncio.run"),
    }
    others = {"trio.run", "threading.Thread", "Thread", "ThreadPoolExecutor", "_thread.start_new_thread", "asyncio.run"}
    found = {(str(path), name) for path in PRODUCT for name in _calls(path) & others}
    assert found <= allowed
    assert ("coder/base/threads.py", "trio.run") in found
