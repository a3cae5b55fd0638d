"""What an agent costs the machine it runs on, and what a person at its prompt feels of it.

One agent of the binary on loopback. The echo of a keystroke is compared with a plain sshd on the same machine, typed to
in turns.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.first import SETTLED, Place, _scp, build, end, note, prepare, row, rss, wait
from tests.kit.programs.command_line import Terminal

SESSIONS = 200
RAW = "stty raw -echo; echo ready; exec cat"
"""What runs at the other end: every byte comes back as it is."""
QUIET = (
    "-o",
    "BatchMode=yes",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
)


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench agent`."""
    skipped: dict[str, str] = {}
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    place = Place(Path(os.environ.get("CODER_BENCH_BINARY") or build()).resolve(), folder)
    place.env["CODER_NO_COMMAND_SERVER"] = "1"
    try:
        with place.server():
            prepare(place)
            with place.agent() as agent:
                return _rows(place, agent.process.pid, skipped, quick=quick), skipped
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rows(place: Place, agent: int, skipped: dict[str, str], *, quick: bool) -> list[dict[str, Any]]:
    seconds = 10 if quick else 60
    note(f"idle ({seconds} s) …")
    time.sleep(5)  # what a start leaves to be done
    before = _cpu_seconds(agent)
    time.sleep(seconds)
    busy = (_cpu_seconds(agent) - before) / seconds * 100
    rows = [
        row("agent RSS, idle", rss(agent), "MiB", 50),
        row("agent processor time, idle", busy, "% of a core", 0.1),
    ]
    if shutil.which("ssh") is None:
        return [*rows, *_left_out(skipped, "ssh is not installed")]
    config = place.folder / "ssh_config"
    place.coder("config-ssh", "-y", "--ssh-config-file", str(config))
    note("keystrokes …")
    rows += _keystrokes(place, config, skipped, 100 if quick else 500)
    note(f"{SESSIONS} sessions …")
    rows += _sessions(place, config)
    note("transfers …")
    _scp(place, config)
    time.sleep(SETTLED)
    return [*rows, row("agent RSS, 5 s after transfers and sessions", rss(agent), "MiB", 70)]


def _left_out(skipped: dict[str, str], why: str) -> list[dict[str, Any]]:
    skipped |= dict.fromkeys(("keystroke echo", "parallel sessions", "RSS after transfers"), why)
    return []


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process; proc(5), fields 14 and 15."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- keystrokes


def _keystrokes(place: Place, config: Path, skipped: dict[str, str], strokes: int) -> list[dict[str, Any]]:
    """Each typed when the one before has come back, at both ends in turns."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    ours = _Prompt(["ssh", "-tt", "-F", str(config), "-o", "BatchMode=yes", "coder.ws", RAW], place.env)
    try:
        if sshd is None:
            skipped["keystroke echo above plain sshd"] = "sshd is not installed"
            times = [ours.stroke(index) for index in range(strokes)]
            return [row("keystroke echo, p99", _p99(times) * 1000, "ms", None)]
        with _plain_sshd(sshd, place.folder) as argv:
            theirs = _Prompt(argv, place.env)
            try:
                pairs = [(ours.stroke(index), theirs.stroke(index)) for index in range(strokes)]
            finally:
                theirs.close()
    finally:
        ours.close()
    mine, plain = ([pair[side] * 1000 for pair in pairs] for side in (0, 1))
    return [
        row("keystroke echo, p99", _p99(mine), "ms", None)
        | {"peer": "plain sshd", "peer_value": round(_p99(plain), 3)},
        row("keystroke echo above plain sshd, p99", _p99(mine) - _p99(plain), "ms", 5),
        row("keystroke echo above plain sshd, median", statistics.median(mine) - statistics.median(plain), "ms", None),
    ]


class _Prompt:
    """A terminal whose other end sends everything back."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self._terminal = Terminal(argv, {**env, "TERM": "xterm"})
        self._terminal.expect("ready")
        time.sleep(0.2)  # the end of that line

    def stroke(self, index: int) -> float:
        """Seconds until one character is back."""
        letter = "abcdefghijklmnopqrstuvwxyz"[index % 26]
        began = time.perf_counter()
        self._terminal.type(letter)
        self._terminal.expect(re.escape(letter))
        return time.perf_counter() - began

    def close(self) -> None:
        self._terminal.close()


@contextmanager
def _plain_sshd(sshd: str, folder: Path) -> Iterator[list[str]]:
    """A server of its own on loopback; the command that opens a terminal there."""
    for name in ("host", "user"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it locks itself in
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PidFile": "none",
        "PermitRootLogin": "yes",
    }
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log, start_new_session=True
        )
    try:
        wait(lambda: b"listening" in (folder / "sshd.log").read_bytes())
        yield [
            "ssh",
            "-tt",
            "-F",
            "none",
            *QUIET,
            "-i",
            str(folder / "user"),
            "-p",
            str(port),
            f"{getpass.getuser()}@127.0.0.1",
            RAW,
        ]
    finally:
        end(process)


def _p99(values: list[float]) -> float:
    return sorted(values)[max(0, int(len(values) * 0.99) - 1)]


# ---- sessions


def _sessions(place: Place, config: Path) -> list[dict[str, Any]]:
    """All of one connection, open at the same time: each waits, without work, until a pipe is opened, then answers."""
    control, go = place.folder / "control", place.folder / "go"
    base = ["ssh", "-F", str(config), "-o", "BatchMode=yes", "-S", str(control)]
    master = subprocess.Popen([*base, "-M", "-N", "coder.ws"], env=place.env, stdin=subprocess.DEVNULL)
    try:
        wait(control.exists)
        os.mkfifo(go)
        command = f"echo here; read x <{go}; echo done"
        began = time.perf_counter()
        running = [
            subprocess.Popen(
                [*base, "coder.ws", command],
                env=place.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(SESSIONS)
        ]
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        opened = time.perf_counter() - began
        go.write_text("\n" * SESSIONS)  # more than one may read from one opening
        failed = sum(not process.communicate()[0].endswith(b"done\n") for process in running)
    finally:
        master.terminate()
        master.wait()
    return [
        row("200 parallel sessions of one connection, failed", failed, "sessions", 0),
        row("200 parallel sessions of one connection, all open", opened, "s", None),
    ]
