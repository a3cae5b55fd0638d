"""What a person waits for at the prompt: everyday commands of the binary, cold and by the command server.

The yardstick is `python -I -S -c pass` in the same run: every figure is a wall median in multiples of it. A peer
(CODER_BENCH_PEER names a foreign binary) runs interleaved against the same deployment.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.first import Place, build, note, prepare, wait

PARALLEL = 50
PATIENCE = 60.0
"Seconds that a command may take: the run has a bound of five minutes."
SSH = "OpenSSH through the ProxyCommand, true"


@dataclass(frozen=True)
class Case:
    name: str
    words: tuple[str, ...]
    cold: float | None
    "Targets in multiples of the yardstick."
    warm: float | None


CASES = (
    Case("version", ("version",), 4, 1.5),
    Case("whoami", ("whoami",), 6, 2.5),
    Case("list", ("list",), 6, 2.5),
    Case("templates list", ("templates", "list"), None, 2.5),
    Case("tokens list", ("tokens", "list"), None, 2.5),
    Case("show", ("show", "ws"), None, None),
    Case("ping -n 1", ("ping", "-n", "1", "ws"), None, None),
    Case("ssh W -- true", ("ssh", "ws", "--", "true"), 30, 8),
    Case(SSH, (), 28, 12),
)


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench cli`."""
    skipped: dict[str, str] = {}
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    place = Place(Path(os.environ.get("CODER_BENCH_BINARY") or build()).resolve(), folder)
    for name in ("home", "run"):
        (folder / name).mkdir(mode=0o700)
    # A home of its own: what somebody's shell loads at its start is not ours to measure.
    place.env |= {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"), "CODER_NO_COMMAND_SERVER": "1"}
    try:
        with place.server():
            prepare(place)
            with place.agent():
                rows = Prompt(place, skipped).rows(5 if quick else 15)
        return rows, skipped
    finally:
        end_servers(folder / "run")
        shutil.rmtree(folder, ignore_errors=True)


class Prompt:
    """Runs the same commands in several ways, taking turns."""

    def __init__(self, place: Place, skipped: dict[str, str]) -> None:
        self._place, self._skipped = place, skipped
        warm = {name: value for name, value in place.env.items() if name != "CODER_NO_COMMAND_SERVER"}
        warm["XDG_RUNTIME_DIR"] = str(place.folder / "run")
        self._ways: dict[str, tuple[str, Mapping[str, str]]] = {
            "cold": (str(place.binary), place.env),
            "warm": (str(place.binary), warm),
        }
        peer = os.environ.get("CODER_BENCH_PEER")
        if peer:
            self._ways["peer"] = (peer, place.env)
        else:
            skipped["peer values"] = "CODER_BENCH_PEER names no binary"

    def rows(self, rounds: int) -> list[dict[str, Any]]:
        for way, (binary, env) in self._ways.items():
            config = [binary, "config-ssh", "-y", "--ssh-config-file", str(self._config(way))]
            subprocess.run(config, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        sockets = self._place.folder / "run" / "coder"
        wait(lambda: any(sockets.glob("*.sock")))
        rows: list[dict[str, Any]] = []
        for case in CASES:
            if not case.words and shutil.which("ssh") is None:
                self._skipped[case.name] = "ssh is not installed"
                continue
            note(f"{case.name} …")
            rows += self._case(case, rounds)
        rows.append(self._parallel())
        return rows

    def _case(self, case: Case, rounds: int) -> list[dict[str, Any]]:
        times: dict[str, list[float]] = {"unit": [], **{way: [] for way in self._ways}}
        for turn in range(rounds + 1):
            found = {"unit": _seconds([sys._base_executable, "-I", "-S", "-c", "pass"], os.environ)}  # type: ignore[attr-defined]
            for way, (_, env) in self._ways.items():
                found[way] = _seconds(self._argv(case, way), env)
            for way, value in found.items() if turn else ():  # the first turn is for caches
                times[way].append(value)
        unit = statistics.median(times["unit"])
        multiple = {way: statistics.median(values) / unit for way, values in times.items()}
        rows = []
        for way, target in (("cold", case.cold), ("warm", case.warm)):
            row: dict[str, Any] = {
                "metric": f"coder {case.name}, {way}, wall median"
                if case.words
                else f"{case.name}, {way}, wall median",
                "value": round(multiple[way], 2),
                "unit": "x of python -I -S -c pass",
                "target": target,
            }
            if "peer" in multiple:
                row |= {"peer": "CODER_BENCH_PEER", "peer_value": round(multiple["peer"], 2)}
            rows.append(row)
        return rows

    def _parallel(self) -> dict[str, Any]:
        note(f"{PARALLEL} parallel ssh …")
        argv, env = self._argv(CASES[-2], "warm"), self._ways["warm"][1]
        began = time.perf_counter()
        running = [
            subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(PARALLEL)
        ]
        failed = [
            said for process in running if (said := process.communicate(timeout=PATIENCE)[1]) and process.returncode
        ]
        took = time.perf_counter() - began
        if failed:
            raise AssertionError(f"{len(failed)} of {PARALLEL} failed: {failed[0].decode(errors='replace')}")
        return {
            "metric": f"{PARALLEL} parallel coder ssh W -- true, warm",
            "value": round(took, 2),
            "unit": "s",
            "target": 10,
        }

    def _argv(self, case: Case, way: str) -> list[str]:
        if case.words:
            return [self._ways[way][0], *case.words]
        return ["ssh", "-F", str(self._config(way)), "-o", "BatchMode=yes", "coder.ws", "true"]

    def _config(self, way: str) -> Path:
        return self._place.folder / f"ssh_config_{way}"


def _seconds(argv: list[str], env: Mapping[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE)
    took = time.perf_counter() - began
    if done.returncode:
        raise AssertionError(f"{' '.join(argv)}: {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return took


def end_servers(runtime: Path) -> None:
    """The command servers that hold a lock in a runtime directory."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "fd/3").readlink().is_relative_to(runtime):
                os.kill(int(entry.name), signal.SIGTERM)
        except (OSError, ProcessLookupError):
            continue
