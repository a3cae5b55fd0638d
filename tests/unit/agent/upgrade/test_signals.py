"""SIGINT and SIGTERM while one program becomes another, in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import coder
from coder.agent.upgrade.signals import ENDING

COMMON = """
import os, signal, sys, threading, time
import trio
from coder.agent.upgrade.signals import ENDING, held_outside_of_receivers, hold, release

async def receive(at_end=lambda: None):
    with trio.open_signal_receiver(*ENDING) as signals:
        release()
        with trio.move_on_after(0 if at_end is not None else 30):
            async for number in signals:
                print("asked", number, flush=True)
                return
        if at_end is not None:
            at_end()

idle = threading.Event()
threading.Thread(target=idle.wait, daemon=True).start()  # as a thread of Trio's that waits for work
number = signal.Signals[sys.argv[1]]
again = [sys.executable, __file__, sys.argv[1], "second"]
"""
MOMENTS = {
    "while the receiver closes": "trio.run(receive, lambda: (hold(), os.kill(os.getpid(), number)))",
    "between the receiver and the next program": "trio.run(receive, hold); os.kill(os.getpid(), number)",
}
PROGRAM = """
with held_outside_of_receivers():
    if not sys.argv[2:]:
        {moment}
        while number not in signal.sigpending():
            time.sleep(0.001)
        os.execv(sys.executable, again)
    trio.run(receive, None)
    print("ended", flush=True)
"""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_who_goes_on_is_asked(moment: str, number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(COMMON + PROGRAM.format(moment=MOMENTS[moment]))
    argv = [sys.executable, str(path), number.name]
    env = {**os.environ, "PYTHONPATH": str(Path(coder.__path__[0]).parent)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    told = [f"asked {number.value}", "ended"]
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.split("\n")[:-1] == told, done
