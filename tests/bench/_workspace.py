"""The mesh as a workspace's user meets it: copying a file in, and the first byte of a shell.

Lives here: one deployment on loopback, run from the sources (or the binary named by CODER_BENCH_BINARY).
python -m tests.bench._workspace URL AGENT COUNT prints milliseconds from dialling to the first byte of a command.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.bench._wireguard_go import UnavailableError
from tests.bench.first import ROOT, Place, note, prepare, wait


def program(folder: Path, tree: Path = ROOT) -> Path:
    """What to measure, as one executable file: the binary, or the sources in `tree`."""
    named = os.environ.get("CODER_BENCH_BINARY")
    if named:
        return Path(named).resolve()
    path = folder / "coder"
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{tree}"\nexec "{sys.executable}" -m coder "$@"\n')
    path.chmod(0o755)
    return path


def measure(size_mib: int, rounds: int, tree: Path = ROOT) -> dict[str, float]:
    """scp rates (MiB/s), its CPU (ms per MiB: `coder ssh --stdio`, agent), and the first byte (ms). Apart from them the
    agent's CPU for its first session (ms): it loads what serves files then, which no MiB costs."""
    for tool in ("ssh", "scp"):
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed (apt-get install openssh-client)")
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        place = Place(program(folder, tree), folder)
        with place.server():
            prepare(place)
            with place.agent() as agent:
                return {**_copies(place, agent.process.pid, size_mib, rounds), **_first_bytes(place, 3 * rounds, tree)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copies(place: Place, agent: int, size_mib: int, rounds: int) -> dict[str, float]:
    config = place.folder / "ssh_config"
    place.coder("config-ssh", "-y", "--ssh-config-file", str(config))
    source, there, back = (place.folder / name for name in ("source", "there", "back"))
    source.write_bytes(os.urandom(size_mib << 20))
    found: dict[str, list[float]] = {}
    before = _tree(agent)
    there.touch()
    with adopted_orphans():
        _copy(place, config, str(there), f"coder.ws:{there}.empty")
    found["first_agent_ms"] = [(_tree(agent) - before) * 1e3]
    for _ in range(rounds):
        for way, (origin, target) in {
            "in": (str(source), f"coder.ws:{there}"),
            "out": (f"coder.ws:{there}", str(back)),
        }.items():
            note(f"scp {size_mib} MiB {way} …")
            began, ours, agents = time.perf_counter(), _children(), _tree(agent)
            with adopted_orphans():
                _copy(place, config, origin, target)
                took = time.perf_counter() - began  # the goodbye of a ProxyCommand counts, and keeps nobody waiting
            found.setdefault(f"{way}_rate", []).append(size_mib / took)
            found.setdefault(f"{way}_client_ms", []).append((_children() - ours) / size_mib * 1e3)
            found.setdefault(f"{way}_agent_ms", []).append((_tree(agent) - agents) / size_mib * 1e3)
    if back.read_bytes() != source.read_bytes():
        raise AssertionError("scp changed the file")
    return {name: statistics.median(values) for name, values in found.items()}


def _copy(place: Place, config: Path, origin: str, target: str) -> None:
    subprocess.run(
        ["scp", "-q", "-F", str(config), origin, target], env=place.env, check=True, stdin=subprocess.DEVNULL
    )


@contextlib.contextmanager
def adopted_orphans() -> Iterator[None]:
    """Inherits what the block's programs leave running, and waits for it at the end, so that it counts among our
    children: OpenSSH does not wait for its ProxyCommand, whose time would be counted when it happens to end first.

    What began a session of its own stays what it is, a daemon: a command server goes on for minutes. Raises
    TimeoutError after a minute.
    """
    before = _orphans()
    _set_subreaper(True)
    try:
        yield
        wait(lambda: not _reaped(_orphans() - before))
    finally:
        _set_subreaper(False)


def _set_subreaper(on: bool) -> None:
    """prctl(2), PR_SET_CHILD_SUBREAPER."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def _orphans() -> set[int]:
    """Process ids of our children in our own session."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return {pid for pid in found if _session(pid) == os.getsid(0)}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _reaped(pids: set[int]) -> set[int]:
    """Those that still run; the others were waited for."""
    running = set()
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                running.add(pid)
    return running


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _tree(pid: int) -> float:
    """CPU seconds of a process and the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _first_bytes(place: Place, count: int, tree: Path) -> dict[str, float]:
    note("first byte of a shell …")
    shown = json.loads(place.coder("list", "-o", "json").stdout)
    agent = next(a["id"] for r in shown[0]["latest_build"]["resources"] for a in r.get("agents") or [])
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench._workspace", place.url, agent, str(count)],
        env={**place.env, "PYTHONPATH": str(tree)},
        cwd=tree,
        capture_output=True,
        check=True,
    )
    times: list[float] = json.loads(done.stdout)
    return {"first_byte_ms": statistics.median(times)}


async def _dial(url: str, agent: str, count: int) -> list[float]:
    import trio_asyncio
    from trio_asyncio import aio_as_trio

    from coder.base.secret import Secret
    from coder.client.link import open_link
    from coder.client.shell import ShellRequest, _connection
    from coder.net.policy import DialPolicy

    token = (Path(os.environ["CODER_CONFIG_DIR"]) / "session").read_text().strip()
    found = []
    async with open_link(DialPolicy(url, Secret(token)), UUID(agent)) as link, trio_asyncio.open_loop():
        await link.wait_reachable()
        for _ in range(count):
            began = time.perf_counter()
            stream = await link.connect(1)
            async with _connection(stream, ShellRequest()) as connection:
                process: Any = await aio_as_trio(connection.create_process)("echo ready", encoding=None)
                await aio_as_trio(process.stdout.read)(1)
                found.append((time.perf_counter() - began) * 1e3)
    return found


if __name__ == "__main__":
    import trio

    print(json.dumps(trio.run(_dial, sys.argv[1], sys.argv[2], int(sys.argv[3]))))
