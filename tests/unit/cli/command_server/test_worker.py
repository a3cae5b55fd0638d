"""Worker of the command server, and its launcher (simulated here)."""

from __future__ import annotations

import array
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from coder.cli.command_server.handover import HEADER, HIGH, MAGIC, REPORT
from tests.kit.paths import ROOT

PATIENCE = 60.0
WORKER = """
import os, socket, sys
from coder.cli.command_server import worker

def main(words):
    print("begun", flush=True)
    print("got", sys.stdin.readline().strip(), flush=True)
    return 7

os._exit(worker.run(socket.socket(fileno=int(sys.argv[1])), "identity", main, lambda words: None))
"""


@dataclass
class SimulatedLauncher:
    """Launcher side of a worker. `written` and `output` are the ends of its standard input and output."""

    worker: subprocess.Popen[bytes]
    channel: socket.socket
    life_pipe: int
    written: int
    output: int

    def die(self) -> None:
        os.close(self.life_pipe)
        self.life_pipe = -1

    def report(self) -> tuple[bytes, int]:
        data = self.channel.recv(REPORT.size, socket.MSG_WAITALL)
        return REPORT.unpack(data) if data else (b"", 0)


@contextmanager
def simulated_worker(number_of_error: int = 2) -> Iterator[SimulatedLauncher]:
    """Start a worker and send it a request."""
    channel, theirs = socket.socketpair()
    channel.settimeout(PATIENCE)
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(theirs.fileno())], env={"PYTHONPATH": str(ROOT)}, pass_fds=[theirs.fileno()]
    ) as worker:
        theirs.close()
        watched, life_pipe = os.pipe()
        keyboard, written = os.pipe()
        output, screen = os.pipe()
        folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
        descriptors = {0: keyboard, 1: screen, number_of_error: 2}
        body = b"identity\0" + array.array("I", descriptors).tobytes() + b"coder\0probe\0"
        head = HEADER.pack(MAGIC, len(body), 0o22, len(descriptors), 2, 0, 0, 0, 0)
        try:
            socket.send_fds(channel, [head], [*descriptors.values(), folder, watched])
            for descriptor in (keyboard, screen, folder, watched):
                os.close(descriptor)
            channel.sendall(body)
            launcher = SimulatedLauncher(worker, channel, life_pipe, written, output)
            yield launcher
            if launcher.life_pipe >= 0:
                launcher.die()
        finally:
            worker.kill()
            for descriptor in (written, output):
                os.close(descriptor)
            channel.close()


def test_channel_data_does_not_kill() -> None:
    """The kernel signals the launcher's last message when it is queued, possibly after it was read."""
    with simulated_worker() as launcher:
        assert launcher.report() == (b"R", launcher.worker.pid)
        launcher.channel.sendall(b"G")
        assert os.read(launcher.output, 100) == b"begun\n"
        launcher.channel.sendall(b"?")  # the delayed signal
        os.write(launcher.written, b"all\n")
        assert launcher.report() == (b"X", 7)
        assert os.read(launcher.output, 100) == b"got all\n"
        assert launcher.worker.wait(PATIENCE) == 7


@pytest.mark.parametrize("has_begun", [True, False])
def test_exits_with_launcher(has_begun: bool) -> None:
    """The worker exits with a killed launcher from the moment it is ready."""
    with simulated_worker() as launcher:
        assert launcher.report()[0] == b"R"
        if has_begun:
            launcher.channel.sendall(b"G")
            assert os.read(launcher.output, 100) == b"begun\n"
        launcher.die()
        assert launcher.worker.wait(PATIENCE) == -signal.SIGKILL


def test_high_descriptors_run_cold() -> None:
    with simulated_worker(number_of_error=HIGH) as launcher:
        assert launcher.report() == (b"", 0)
        assert launcher.worker.wait(PATIENCE) == 0
