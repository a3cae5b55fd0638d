"""The mesh against its targets: beside wireguard-go, under load, with ten thousand peers, and as a person meets it.

Lives here: the table of rows and targets; what is run stands in mesh_stream.py, _relay_server.py, _wireguard_go.py,
_mesh_scale.py, _mesh_flood.py, _mesh_gateway.py and _workspace.py. Ours and a peer's runs alternate, medians are
compared, and CPU time stands beside every throughput. A part that cannot run here is skipped with its reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import _wireguard_go as go
from tests.bench import _workspace, mesh_stream
from tests.bench._failures import reason
from tests.bench._relay_server import relay_server
from tests.bench.mesh_stream import ROOT, Place, Result
from tests.kit.network import network_namespaces

Row = dict[str, Any]
UPSTREAM_DIRECT = 380.0
"""Mbit/s: the better end of `coder speedtest` of the original program, measured on such a machine."""
UPSTREAM_COPY = 28.0
"""MiB/s of scp into a workspace, of the original program."""


RELAYS = {"a deployment's relay in plain HTTP": False, "a deployment's relay behind its TLS": True}
"""Rows' name -> whether TLS; the relay of `coder server`, with all else that runs there."""


class Table:
    """Rows as they come, and why others do not."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.skipped: dict[str, str] = {}
        self.tree = ROOT
        """What is measured unless a row says plain: a copy with compiled modules, as in the binary."""

    @property
    def is_compiled(self) -> bool:
        return self.tree != ROOT

    def add(
        self,
        metric: str,
        value: float,
        unit: str,
        target: float | None = None,
        *,
        better: str = "lower",
        peer: tuple[str, float] | None = None,
    ) -> None:
        row: Row = {"metric": metric, "value": round(value, 3), "unit": unit, "better": better, "target": target}
        if peer is not None:
            row |= {"peer": peer[0], "peer_value": round(peer[1], 3)}
        self.rows.append(row)

    def section(self, name: str, fill: Callable[[Table, bool], None], quick: bool) -> None:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            fill(self, quick)
        except go.UnavailableError as error:
            self.skipped[name] = str(error)
        except Exception as error:  # the other parts are measured all the same, and the run fails
            self.skipped[name] = reason(error)


def measure(*, quick: bool = False) -> tuple[list[Row], dict[str, str]]:
    """All rows of `scripts/bench mesh`."""
    table = Table()
    folder = Path(tempfile.mkdtemp(prefix="coder-bench-tree-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        table.section("compiling the hot modules", lambda *_: _compile(table, folder), quick)
        for name, fill in SECTIONS.items():
            table.section(name, fill, quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return table.rows, table.skipped


def _compile(table: Table, folder: Path) -> None:
    """What the binary contains. Without a compiler everything is measured plain, and the table says so."""
    if shutil.which("gcc") is None:
        raise go.UnavailableError("gcc is not installed")
    subprocess.run(
        [sys.executable, "build/compiled.py", str(folder)],
        cwd=ROOT,
        check=True,
        timeout=480,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    table.tree = folder


# ---- streams


def _rate(results: list[Result]) -> float:
    return median(result.mbit_per_second for result in results)


def _cost(results: list[Result]) -> float:
    return median(result.cpu_ms_per_mb for result in results)


def _between_namespaces(table: Table, quick: bool) -> None:
    """A cable with an ordinary MTU of 1500, which loopback has not."""
    if not network_namespaces.available():
        raise go.UnavailableError("needs root and network namespaces")
    programs: dict[str, Path] = {}
    for name, find in {"the newest": go.newest, "Debian's own": go.installed}.items():
        try:
            programs[name] = find()
        except go.UnavailableError as error:
            table.skipped[f"beside {name} wireguard-go"] = str(error)
    rounds, seconds = (1, 1.5) if quick else (5, 3.0)
    ours: dict[str, list[Result]] = {"direct": [], "plain": [], "small": [], **{name: [] for name in RELAYS}}
    theirs: dict[str, list[go.Transfer]] = {name: [] for name in programs}
    with go.cable() as net, ExitStack() as stack:
        east, west = (tuple(net.command(side)) for side in go.SIDES)
        place = Place(*go.OUTER, commands=(east, west), tree=table.tree)
        relayed = {name: _behind(stack, place, tls) for name, tls in RELAYS.items()}
        for _ in range(rounds):
            ours["direct"].append(mesh_stream.run(seconds, "direct", place))
            for name, program in programs.items():
                with go.tunnel(net, program) as ends:
                    theirs[name].append(go.transfer(net, ends, seconds))
                if table.is_compiled and name == "the newest":
                    ours["plain"].append(mesh_stream.run(seconds, "direct", replace(place, tree=ROOT)))
            ours["small"].append(mesh_stream.run(seconds, "direct", replace(place, default_buffers=True)))
            for name, where in relayed.items():
                ours[name].append(mesh_stream.run(seconds, "relay", where))
    rate, cost = _rate(ours["direct"]), _cost(ours["direct"])
    for name, transfers in theirs.items():
        peer = f"wireguard-go {go.version(programs[name])}"
        peer_rate = median(transfer.mbit_per_second for transfer in transfers)
        factor = 1.0 if name == "the newest" else 4.0
        table.add(
            f"one TCP stream, beside {name} wireguard-go",
            rate,
            "Mbit/s",
            round(peer_rate * factor, 3),
            better="higher",
            peer=(peer, peer_rate),
        )
        if name == "the newest" and ours["plain"]:
            table.add(
                f"the same in plain Python, beside {name} wireguard-go",
                _rate(ours["plain"]),
                "Mbit/s",
                round(peer_rate * 0.8, 3),
                better="higher",
                peer=(peer, peer_rate),
            )
        peer_cost = median(transfer.cpu_seconds / transfer.bytes * 1e9 for transfer in transfers)
        table.add(
            f"its CPU time, both ends, beside {name} wireguard-go",
            cost,
            "ms/MB",
            peer=(f"{peer} and iperf3", peer_cost),
        )
    _own_streams(table, ours)


def _own_streams(table: Table, ours: dict[str, list[Result]]) -> None:
    direct = _rate(ours["direct"])
    upstream = ("coder speedtest of the original, elsewhere", UPSTREAM_DIRECT)
    target = 4 * UPSTREAM_DIRECT
    table.add("one TCP stream, beside the original", direct, "Mbit/s", target, better="higher", peer=upstream)
    table.add(
        "the same with the socket buffers an ordinary user gets by default",
        _rate(ours["small"]),
        "Mbit/s",
        target,
        better="higher",
        peer=upstream,
    )
    table.add("its CPU time with small buffers, both ends", _cost(ours["small"]), "ms/MB")
    for name in RELAYS:
        _relayed(table, f"{name}, a cable of 1500 bytes", ours[name], direct)


def _behind(stack: ExitStack, place: Place, tls: bool) -> Place:
    """The same place, with a server of its own where the receiver is."""
    server = relay_server(tls=tls, host=place.receiver, command=place.commands[1], tree=place.tree)
    return replace(place, server=stack.enter_context(server))


def _relayed(table: Table, name: str, results: list[Result], direct: float) -> None:
    table.add(f"one TCP stream through {name}", _rate(results), "Mbit/s", better="higher")
    table.add(f"its CPU time through {name}, both ends", _cost(results), "ms/MB")
    relay_cost = median(result.relay_cpu_seconds / result.bytes * 1e9 for result in results)
    table.add(f"CPU time of the whole server for {name}", relay_cost, "ms/MB")
    target = None if "TLS" in name else 0.35
    table.add(f"relayed / direct throughput, {name}", _rate(results) / direct, "ratio", target, better="higher")


def _on_loopback(table: Table, quick: bool) -> None:
    rounds, seconds = (2, 1.0) if quick else (7, 2.0)
    place = Place(tree=table.tree)
    runs = {"direct": ("direct", place)}
    if table.is_compiled:
        runs["direct, plain Python"] = ("direct", Place())
    with ExitStack() as stack:
        runs |= {name: ("relay", _behind(stack, place, tls)) for name, tls in RELAYS.items()}
        found: dict[str, list[Result]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, (path, where) in runs.items():
                found[name].append(mesh_stream.run(seconds, path, where))
    direct = found["direct"]
    table.add("one TCP stream on loopback (packets of 9 KB)", _rate(direct), "Mbit/s", better="higher")
    table.add("its CPU time on loopback, both ends", _cost(direct), "ms/MB")
    for name in RELAYS:
        _relayed(table, f"{name}, on loopback", found[name], _rate(direct))
    for name, results in found.items():
        _round_trips(table, name, results)


def _round_trips(table: Table, path: str, results: list[Result]) -> None:
    def figure(name: str) -> float:
        return float(median(result.sender[name] for result in results))

    plain = figure("plain_round_trip_us")
    target = round(plain * 1.6, 1) if path == "direct" else None
    table.add(
        f"round trip of 32 bytes, {path}", figure("round_trip_us"), "us", target, peer=("trio TCP on loopback", plain)
    )
    table.add(
        f"CPU time of one end for it, {path}",
        figure("round_trip_cpu_us"),
        "us",
        peer=("trio TCP on loopback", figure("plain_round_trip_cpu_us")),
    )


def _together(table: Table, quick: bool) -> None:
    found = _process(table, "_mesh_together", "500" if quick else "3000")
    plain = found["plain_us"]
    table.add(
        "round trip of 32 bytes, direct, both ends in one process",
        found["mesh_us"],
        "us",
        round(plain * 1.6, 1),
        peer=("trio TCP the same way", plain),
    )


# ---- scale and floods


def _process(table: Table, module: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        cwd=table.tree,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(table.tree)},
        timeout=300,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _peers(table: Table, quick: bool) -> None:
    count = 2000 if quick else 10_000
    memory = _process(table, "_mesh_scale", "memory", str(count))
    table.add(f"memory of an idle peer with a session, of {count:,}", memory["session"] / 1000, "KB", 12)
    table.add(f"memory of an idle peer with new and old keys, of {count:,}", memory["renewed"] / 1000, "KB", 12)
    load = _process(table, "_mesh_scale", "idle", str(count))["core_percent"] * 10_000 / count
    table.add(
        "CPU for 10,000 idle peers, keepalives every 25 s" + (" (from 2,000)" if quick else ""), load, "% of a core", 3
    )


def _handshakes(table: Table, quick: bool) -> None:
    found = _process(table, "_mesh_scale", "handshakes", "500" if quick else "3000")
    table.add("handshakes answered per core, without sockets", 1e6 / found["answer_us"], "1/s", 5000, better="higher")
    table.add("refusing a garbage initiation of a stranger, without sockets", found["stranger_us"], "us CPU", 1)
    table.add(
        "refusing a garbage initiation from a peer's address (wrong mac1), without sockets",
        found["known_us"],
        "us CPU",
        1,
    )


def _flood(table: Table, quick: bool) -> None:
    found = _process(table, "_mesh_flood", "1" if quick else "3")
    quiet = found["quiet_us"]
    table.add(
        "round trip under a flood of 20,000 garbage initiations a second",
        found["flooded_us"],
        "us",
        round(2 * quiet, 1),
        peer=("the same without the flood", quiet),
    )
    table.add("CPU for each of them, system calls included", found["garbage_us"], "us")


def _gateway(table: Table, quick: bool) -> None:
    found = _process(table, "_mesh_gateway", "0.5" if quick else "2")
    quiet = found["quiet_us"]
    table.add(
        "ping of a phone through the gateway under 20,000 initiations a second with wrong MACs",
        found["flooded_us"],
        "us",
        round(2 * quiet, 1),
        peer=("the same without the flood", quiet),
    )
    table.add("CPU of the gateway for each of them, MAC and system calls included", found["garbage_us"], "us")
    table.add("CPU of a handshake through the gateway's socket, 500 a second", found["handshake_us"], "us")


# ---- a workspace


def _in_a_workspace(table: Table, quick: bool) -> None:
    size, rounds = (64, 1) if quick else (256, 3)
    found = _workspace.measure(size, rounds, table.tree)
    upstream = ("the original, elsewhere", UPSTREAM_COPY)
    table.add(
        f"scp {size} MiB into a workspace", found["in_rate"], "MiB/s", 4 * UPSTREAM_COPY, better="higher", peer=upstream
    )
    table.add("its CPU time, coder ssh --stdio and OpenSSH", found["in_client_ms"], "ms/MiB")
    table.add("its CPU time, agent", found["in_agent_ms"], "ms/MiB")
    table.add("CPU time of an agent's first session, an empty file", found["first_agent_ms"], "ms")
    table.add(f"scp {size} MiB out of a workspace", found["out_rate"], "MiB/s", better="higher")
    table.add("its CPU time out, coder ssh --stdio and OpenSSH", found["out_client_ms"], "ms/MiB")
    table.add("its CPU time out, agent", found["out_agent_ms"], "ms/MiB")
    table.add("first byte of a shell after dialling", found["first_byte_ms"], "ms", 250)


SECTIONS: dict[str, Callable[[Table, bool], None]] = {
    "streams between namespaces": _between_namespaces,
    "streams and round trips on loopback": _on_loopback,
    "round trips in one process": _together,
    "idle peers": _peers,
    "handshakes": _handshakes,
    "garbage flood": _flood,
    "the gateway's flood and handshakes": _gateway,
    "a workspace": _in_a_workspace,
}
