"""The launcher of the single binary, with a program of three lines behind it or with the sources.

`Parts` builds it full and slim as the real one. `Launcher` is compiled once and has a runtime directory and a command
server of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build"))
import packing  # noqa: E402 - the recipe is no package: sys.path first

import build as recipe  # noqa: E402

__all__ = [
    "DEEP",
    "NEEDS",
    "Parts",
    "cache",
    "compiled",
    "environment",
    "listed",
    "packing",
    "payloads",
    "recipe",
    "run",
]
FAULTS = ROOT / "tests/kit/programs/launcher.c"
NEEDS = bool(shutil.which("gcc") and shutil.which("zstd") and Path("/usr/include/zstd.h").exists())
PROGRAM = '#!/bin/sh\nread -r edition <"${0%/*}/_internal/edition"\necho "$edition $CODER_SELF $*"\n'
DEEP = ("deep-" + "n" * 60, "e" * 60, "a name longer than a header has room for")


@dataclass(frozen=True, slots=True)
class Parts:
    """What files of both editions are put together from."""

    launcher: bytes
    slim: bytes
    rest: bytes

    def full_program(self) -> bytes:
        return packing.full_program(self.launcher, self.slim, self.rest)

    def slim_program(self) -> bytes:
        return packing.slim_program(self.launcher, self.slim)


def compiled(work: Path, *, faulty: bool = False) -> bytes:
    """The launcher; `faulty` lets the environment say which call to the system goes wrong (launcher.c beside this)."""
    flags: list[str] = []
    if faulty:
        names = re.findall(r"^WRAP\(.*?, .*?, (\w+),|^\w+ __wrap_(\w+)\(.*;$", FAULTS.read_text(), re.MULTILINE)
        flags = [f"-Wl,--wrap={one or other}" for one, other in names]
        flags = ["-U_FORTIFY_SOURCE", *flags, str(FAULTS)]
    return recipe.compile_launcher(work, flags).read_bytes()


def payloads(work: Path, size: int) -> tuple[bytes, bytes]:
    """Of the slim program and of the rest, which has a file of random bytes of that size."""
    folders = []
    for edition in ("slim", "full"):
        folder = work / edition
        deep = folder / "_internal" / DEEP[0] / DEEP[1]
        deep.mkdir(parents=True)
        (deep / DEEP[2]).touch()
        (folder / "_internal/big").write_bytes(os.urandom(size) if edition == "full" else b"")
        (folder / "_internal/edition").write_text(f"{edition}\n")
        (folder / "_internal/link").symlink_to("edition")
        (folder / "coder").write_text(PROGRAM)
        (folder / "coder").chmod(0o755)
        folders.append(folder)
    return packing.pack(folders[0], 3), packing.pack(folders[1], 3, without=folders[0])


def environment(program: Path, env: dict[str, str]) -> dict[str, str]:
    return {"HOME": str(program.parent / "home"), "PATH": os.environ["PATH"], **env}


def run(program: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """With a home beside the program's file."""
    return subprocess.run(
        [str(program), *args], env=environment(program, env), capture_output=True, text=True, check=False, cwd="/"
    )


def cache(program: Path) -> Path:
    """Where `run` lets it unpack itself."""
    return program.parent / "home/.cache/coder/dist"


def listed(folder: Path) -> list[str]:
    """What is there but the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


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
            f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -m tests.kit.programs.probe_program "$@"\n'
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

    def compile(self, key: str, *flags: str) -> Path:
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
                *flags,
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

    def sockets(self, folder: Path | None = None) -> list[Path]:
        folder = folder or self.runtime / "coder"
        return sorted(folder.glob("*.sock")) if folder.exists() else []

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
