"""The single binary as a download: sizes, first and later starts, the server's first answer, the agent's memory.

Programs for Windows and macOS beside it are measured, too; the one for Windows attaches under Wine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench._wine_attach import attach_seconds, token_of, why_not
from tests.bench.first import Place, build, end, note, prepare, row, rss, seconds, wait

SECOND = "ws2"
"The workspace that is attached by the script."
ON_WINDOWS = "ws3"
WINDOWS = "coder-windows-amd64.exe"


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench binary`."""
    binary = build()
    slim = binary.with_name(binary.name.replace("coder-", "coder-slim-", 1))
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-", dir="/tmp"))
    folder.chmod(0o755)
    rounds = 5 if quick else 21
    try:
        rows = [
            row("size of the full program", binary.stat().st_size / 1e6, "MB", 45),
            row("size of the slim program", slim.stat().st_size / 1e6, "MB", 20),
        ]
        for name, program in (("full", binary), ("slim", slim)):
            note(f"starts of the {name} program …")
            rows += _starts(name, Place(program, folder / name), rounds)
        skipped: dict[str, str] = {}
        rows += _desktop_sizes(binary.parent, skipped)
        return rows + _server(Place(binary, folder), slim, skipped), skipped
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _starts(name: str, place: Place, rounds: int) -> list[dict[str, Any]]:
    cache = place.folder / "cache"
    place.folder.mkdir(exist_ok=True)
    # Cold: without the command server, which would have the program running already.
    place.env |= {"CODER_BINARY_CACHE": str(cache), "CODER_NO_COMMAND_SERVER": "1"}

    def first() -> None:
        place.coder("version")

    def fresh() -> float:
        shutil.rmtree(cache, ignore_errors=True)
        return seconds(first, 1)

    unpacked = sorted(fresh() for _ in range(3))[1] * 1000
    return [
        row(f"{name}: first start ever, wall median", unpacked, "ms", 400),
        row(f"{name}: coder version, wall median", seconds(first, rounds) * 1000, "ms", 41),
    ]


def _desktop_sizes(folder: Path, skipped: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for name in (WINDOWS, "coder-darwin-amd64", "coder-darwin-arm64"):
        if (folder / name).exists():
            rows.append(row(f"size of {name}", (folder / name).stat().st_size / 1e6, "MB", 22))
        else:
            skipped[f"size of {name}"] = "it was not built beside the program (build/build.py --platform)"
    return rows


def _server(place: Place, slim: Path, skipped: dict[str, str]) -> list[dict[str, Any]]:
    note("server and agent …")
    offered = place.folder / "cache/bin" / slim.name.replace("coder-slim-", "coder-", 1)
    offered.parent.mkdir(parents=True)
    shutil.copyfile(slim, offered)
    with place.server() as began:
        rows = [row("server, first start to first answer", began, "s", 4)]
        prepare(place)
    with place.server() as again:
        rows.append(row("server, later start to first answer", again, "s", 1.2))
        attached = Place(slim, place.folder)
        attached.address, attached.url, attached.env = place.address, place.url, place.env
        with attached.agent() as agent:
            rows.append(row("slim agent connected after exec, at most", agent.seconds, "s", 1.0))
            time.sleep(10)
            rows.append(row("slim agent idle RSS", rss(agent.process.pid), "MiB", 50))
        rows.append(row("curl | sh to a connected agent, at most", _by_script(place), "s", 3))
        rows += _under_wine(place, skipped)
    return rows


def _under_wine(place: Place, skipped: dict[str, str]) -> list[dict[str, Any]]:
    program = Path(os.environ.get("CODER_TEST_WINDOWS_PROGRAM") or place.binary.with_name(WINDOWS))
    if reason := why_not(program):
        skipped["Windows: attach line"] = reason
        return []
    note("attach line under Wine …")
    place.coder("external-workspaces", "create", ON_WINDOWS, "--template=external", "-y")
    value = attach_seconds(place, program, token_of(place, ON_WINDOWS), lambda: _is_connected(place, ON_WINDOWS))
    return [row("Windows: attach line to a connected agent, warm, under Wine, at most", value, "s", 3)]


def _by_script(place: Place) -> float:
    """Seconds from the line a person pastes to a connected agent, on a machine that never ran the program."""
    note("curl | sh …")
    place.coder("external-workspaces", "create", SECOND, "--template=external", "-y")
    shown = json.loads(place.coder("external-workspaces", "agent-instructions", SECOND, "--output=json").stdout)
    home = place.folder / "attached"
    home.mkdir()
    there = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "CODER_AGENT_LOG_DIR": str(home)}
    with (home / "log").open("wb") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            ["sh", "-c", shown["init_script"]],
            env=there,
            cwd=home,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        wait(lambda: _is_connected(place, SECOND))
        return time.perf_counter() - began
    finally:
        end(process)


def _is_connected(place: Place, workspace: str) -> bool:
    (found,) = (each for each in json.loads(place.coder("list", "-o", "json").stdout) if each["name"] == workspace)
    resources = found["latest_build"]["resources"]
    return [agent["status"] for each in resources for agent in each.get("agents") or []] == ["connected"]
