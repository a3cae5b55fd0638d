"""SIGINT and SIGTERM during an exec, in separate processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import coder
from coder.agent.upgrade.signals import ENDING, hold, release, replay_signals, signals_to_pipe

COMMON = """
import os, signal, sys, threading, time
import trio
from coder.agent.upgrade.signals import ENDING, signals_held_outside_receivers, hold, release
from coder.base.threads import run_trio

async def receive(at_end=lambda: None):
    with trio.open_signal_receiver(*ENDING) as signals:
        release()
        with trio.move_on_after(0 if at_end is not None else 30):
            async for number in signals:
                print("asked", number, flush=True)
                return
        if at_end is not None:
            at_end()

def waits_in_this_thread():
    with open(f"/proc/self/task/{threading.get_native_id()}/status") as status:
        (pending,) = [line.split()[1] for line in status if line.startswith("SigPnd")]
    return int(pending, 16) >> (number - 1) & 1

idle = threading.Event()
threading.Thread(target=idle.wait, daemon=True).start()  # as a thread of Trio's that waits for work
number = signal.Signals[sys.argv[1]]
again = [sys.executable, __file__, sys.argv[1], "second"]
"""
MOMENTS = {
    "while the receiver closes": "run_trio(receive, lambda: (hold(), os.kill(os.getpid(), number)))",
    "between the receiver and the next program": "run_trio(receive, hold); os.kill(os.getpid(), number)",
}
PROGRAM = """
with signals_held_outside_receivers():
    if not sys.argv[2:]:
        {moment}
        while not waits_in_this_thread():
            time.sleep(0.001)
        os.execv(sys.executable, again)
    run_trio(receive, None)
    print("ended", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_pending_signal_reaches_next_program(moment: str, number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(COMMON + PROGRAM.format(moment=MOMENTS[moment]))
    argv = [sys.executable, str(path), number.name]
    env = {**os.environ, "PYTHONPATH": str(Path(coder.__path__[0]).parent)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    expected = [f"asked {number.value}", "ended"]
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.split("\n")[:-1] == expected, done


@pytest.mark.parametrize("waits", [False, True])
def test_late_signals_reach_pipe(waits: bool) -> None:
    """The signals are recorded before any code of this thread could run; pending ones are not raised twice."""
    before = {number: signal.getsignal(number) for number in ENDING}
    heard: list[int] = []
    try:
        for number in ENDING:
            signal.signal(number, lambda found, _: heard.append(found))
        hold()
        with signals_to_pipe() as reading:
            thread = threading.Thread(target=_given, args=(signal.SIGTERM,))
            thread.start()
            thread.join()
            left = os.dup(reading)
        assert heard == [signal.SIGTERM]  # which execve would not have waited for
        heard.clear()
        if waits:
            signal.raise_signal(signal.SIGTERM)
        replay_signals(left)
        assert heard == [] and signal.SIGTERM in signal.sigpending()
        release()
        assert heard == [signal.SIGTERM]
    finally:
        release()
        for number, handler in before.items():
            signal.signal(number, handler)


def _given(number: signal.Signals) -> None:
    release()  # of this thread
    signal.raise_signal(number)
