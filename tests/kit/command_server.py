"""A launcher for the sources: compiled once, with a runtime directory and a command server of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Launcher:
    """`cold` and `warm` are environments to start `path` in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.mark = folder / "mark"
        self.program = folder / "program"
        self.program.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m tests.kit.probe_program "$@"\n'
        )
        self.program.chmod(0o755)
        self.path = self.compile("first")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CODER_", "PYTHON"))}
        self.warm = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PROBE_MARK": str(self.mark),
            "PROBE_SID": str(os.getsid(0)),
            "CODER_CONFIG_DIR": str(folder),
        }
        self.cold = {**self.warm, "CODER_NO_COMMAND_SERVER": "1"}

    def compile(self, key: str) -> Path:
        target = self.folder / f"coder-{key}"
        subprocess.run(
            [
                "gcc",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                f'-DPROGRAM="{self.program}"',
                f'-DKEY="{key}"',
                "-o",
                str(target),
                str(ROOT / "build/checkout_launcher.c"),
                str(ROOT / "build/command_client.c"),
            ],
            check=True,
        )
        return target

    def env(self, way: str) -> dict[str, str]:
        return self.warm if way == "warm" else self.cold

    def start_server(self) -> None:
        """The first command starts it."""
        subprocess.run([self.path, "probe", "exit", "0"], env=self.warm, check=True, stderr=subprocess.DEVNULL)
        self.until(lambda: bool(self.sockets()))

    def sockets(self) -> list[Path]:
        return sorted((self.runtime / "coder").glob("*.sock")) if (self.runtime / "coder").exists() else []

    def servers(self) -> list[int]:
        """Processes that hold a lock of ours: the owners of our sockets."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                is_ours = entry.name.isdigit() and (entry / "fd/3").readlink().is_relative_to(self.runtime)
            except OSError:
                continue
            if is_ours:
                found.append(int(entry.name))
        return found

    def ways(self) -> list[str]:
        """How the probes since the last call ran."""
        found = self.mark.read_text().split() if self.mark.exists() else []
        self.mark.unlink(missing_ok=True)
        return found

    def until(self, check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not check():
            assert time.monotonic() < deadline, "did not come about"
            time.sleep(0.01)

    def close(self) -> None:
        for pid in self.servers():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
