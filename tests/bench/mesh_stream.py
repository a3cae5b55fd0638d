"""One TCP stream between two mesh nodes in two processes on loopback: throughput, and CPU time per packet of each side.

`measure()` returns rows for scripts/bench; run the file itself for a quick look:
    python -m tests.bench.mesh_stream [--seconds 5] [--path direct|relay]
The nodes exchange keys and addresses over their standard streams; with `relay` a third process forwards, a server if
`Place` names one (else a bare relay), and its CPU time is reported as well. `Place` says where they run and with what
socket buffers. CPU time is user and system of
the whole process, start-up excluded. With MESH_PROFILE=PREFIX in the environment each process leaves a profile for
pstats in PREFIX.<role>.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from tests.bench._relay_server import RelayServer

PORT = 5201
CHUNK = 256 * 1024
ROUND_TRIPS = 500
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """Where the processes of a run are."""

    sender: str = "127.0.0.1"
    receiver: str = "127.0.0.1"
    """Addresses; the relay is at the receiver's."""
    commands: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Put before the command line of the sender and of the others (`ip netns exec ...`)."""
    tree: Path = ROOT
    """Where the program lies: the sources, or a copy of them with compiled modules (build/compiled.py)."""
    server: RelayServer | None = None
    """The deployment whose relay is used."""
    default_buffers: bool = False
    """Grant UDP sockets no more than an ordinary user gets where net.core.rmem_max is 208 KiB, Linux's old default."""


LOOPBACK = Place()


@dataclass(frozen=True)
class Result:
    """Figures of one run."""

    mbit_per_second: float
    bytes: int
    seconds: float
    sender: dict[str, Any]
    """cpu_seconds, packets, us_per_packet and the connection's own counters."""
    receiver: dict[str, Any]
    relay_cpu_seconds: float
    path: str

    @property
    def cpu_ms_per_mb(self) -> float:
        """CPU time of both ends per megabyte."""
        return float((self.sender["cpu_seconds"] + self.receiver["cpu_seconds"]) / self.bytes * 1e9)


TARGET_MBIT = 600


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Rows of scripts/bench: medians over runs, direct and relayed runs interleaved. The sources as they lie there, on
    loopback, whatever program the other rows of a table measure: the names say so."""
    rounds, seconds = (2, 2.0) if quick else (7, 4.0)
    found: dict[str, list[Result]] = {"direct": [], "relay": []}
    for _ in range(rounds):
        for path, results in found.items():
            results.append(run(seconds, path))
    rows = []
    for path, results in found.items():
        target = TARGET_MBIT if path == "direct" else None
        rate = median(result.mbit_per_second for result in results)
        rows.append(_row(f"one TCP stream on loopback, plain modules, {path}", rate, "Mbit/s", "higher", target))
        # Inner packets are larger on the relay, so time per packet could not be compared.
        for side in ("sender", "receiver"):
            cost = median(getattr(result, side)["cpu_seconds"] / result.bytes * 1e9 for result in results)
            rows.append(_row(f"CPU time of the {side}, plain modules, {path}", cost, "ms/MB", "lower", None))
    direct, relayed = rows[0]["value"], rows[3]["value"]
    rows.append(_row("relayed / direct throughput, plain modules", relayed / direct, "ratio", "higher", 0.35))
    for path, results in found.items():
        trip, plain = (
            median(result.sender[name] for result in results) for name in ("round_trip_us", "plain_round_trip_us")
        )
        target = plain * 1.6 if path == "direct" else None
        row = _row(f"round trip of 32 bytes, plain modules, {path}", trip, "us", "lower", target)
        rows.append({**row, "peer": "trio TCP on loopback", "peer_value": round(plain, 3)})
    return rows


def _row(metric: str, value: float, unit: str, better: str, target: float | None) -> dict[str, Any]:
    return {"metric": metric, "value": round(value, 3), "unit": unit, "better": better, "target": target}


def run(seconds: float = 5.0, path: str = "direct", place: Place = LOOPBACK) -> Result:
    """Transfer for so many seconds; `path` is direct or relay."""
    processes: list[subprocess.Popen[str]] = []
    try:
        relay = _spawn(processes, place, "relay", place.receiver, "0", path)
        ports = _read(relay)
        relay_port = ports["port"]
        receiver = _spawn(processes, place, "receiver", place.receiver, str(relay_port), path)
        sender = _spawn(processes, place, "sender", place.sender, str(relay_port), path, str(seconds))
        infos = [_read(receiver), _read(sender)]
        _write(receiver, infos[1])
        before = place.server.cpu() if place.server is not None else 0.0
        _write(sender, {**infos[0], "echo": ports["echo"]})
        sent = _read(sender)
        received = _read(receiver)
        _write(relay, {"end": True})
        relayed = _read(relay)["cpu_seconds"] if place.server is None else place.server.cpu() - before
        for process in processes:
            process.wait(10)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    return Result(
        mbit_per_second=received["bytes"] * 8 / received["seconds"] / 1e6,
        bytes=received["bytes"],
        seconds=received["seconds"],
        sender=sent,
        receiver=received,
        relay_cpu_seconds=relayed,
        path=sent["path"],
    )


def _spawn(processes: list[subprocess.Popen[str]], place: Place, *arguments: str) -> subprocess.Popen[str]:
    before = place.commands[arguments[0] != "sender"]
    options = ["--default-buffers"] if place.default_buffers else []
    if place.server is not None:
        options += place.server.words
    # The command is this file itself; the relay's address is the receiver's.
    process = subprocess.Popen(
        [
            *before,
            sys.executable,
            "-m",
            "tests.bench.mesh_stream",
            *options,
            "--relay",
            place.receiver,
            "--role",
            *arguments,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=place.tree,
        env={**os.environ, "PYTHONPATH": str(place.tree)},
    )
    processes.append(process)
    return process


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a process of the benchmark ended early with status {process.wait()}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _write(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    _put(process.stdin, message)


def _put(stream: IO[str], message: dict[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


async def _hear() -> dict[str, Any]:
    line = await trio.to_thread.run_sync(sys.stdin.readline)
    message: dict[str, Any] = json.loads(line)
    return message


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# -- the processes
@dataclass(frozen=True)
class Role:
    """What a process of a run was told."""

    host: str
    relay: tuple[str, int]
    path: str
    server: tuple[str, int] | None = None
    """Where a deployment's relay listens; None: ours at `relay` is bare."""
    authority: str = ""
    token: str = ""


async def _relay(role: Role) -> None:
    from coder.mesh.core.crypto.keys import PrivateKey
    from coder.mesh.drivers.derp_server import DerpServer
    from tests.kit.network.overlay_pair import serve_bare

    server = DerpServer(PrivateKey.generate(os.urandom))
    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(serve_bare, server, role.host)
        (echo,) = await trio.open_tcp_listeners(0, host=role.host)
        nursery.start_soon(trio.serve_listeners, _echo, [echo])
        _put(sys.stdout, {"port": port, "echo": echo.socket.getsockname()[1]})
        began = _cpu()
        await _hear()
        _put(sys.stdout, {"cpu_seconds": _cpu() - began, "packets": server.counters.sent})
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _node(number: int, role: Role) -> AsyncIterator[Any]:
    from coder.mesh.node import NodeConfig, open_node
    from tests.kit.network.overlay_pair import address, dial_bare, one_region

    direct = role.path == "direct"
    if role.server is None:
        config = NodeConfig((address(number),), one_region(*role.relay), dial_bare, direct=direct)
    else:
        config = NodeConfig((address(number),), _region_of(role), _dialer(role), direct=direct)
    async with open_node(config) as node, trio.open_nursery() as nursery:
        while not node.self_info.preferred_derp:
            await trio.sleep(0.01)
        if role.server is not None:
            await nursery.start(_announce, node, number, role)
        ports = node.status().udp_ports
        _put(
            sys.stdout,
            {
                "key": node.self_info.public_key.hex(),
                "disco": node.self_info.disco_key.hex(),
                "endpoint": f"{role.host}:{ports[0]}" if direct else "",
            },
        )
        yield node
        nursery.cancel_scope.cancel()


async def _announce(
    node: Any, number: int, role: Role, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Tell the coordinator the node's key: the relay limits what strangers send."""
    from coder.net.websocket import connect_websocket
    from coder.rpc.proto import tailnet_pb2
    from coder.rpc.session import open_session
    from coder.tailnet.addresses import random_address
    from coder.tailnet.controller import COORDINATE
    from coder.tailnet.node_messages import self_to_proto
    from tests.bench._relay_server import policy

    assert role.server is not None
    info = replace(node.self_info, addresses=(random_address(),))
    request = tailnet_pb2.CoordinateRequest
    message = request(update_self=request.UpdateSelf(node=self_to_proto(info, number, direct=False)))
    reached = policy(*role.server, role.authority, role.token)
    socket = await connect_websocket(reached, "/api/v2/tailnet?version=2.0")
    async with (
        open_session(socket, "client") as session,
        session.open_stream(COORDINATE, request, tailnet_pb2.CoordinateResponse) as stream,
    ):
        await stream.send(message)
        task_status.started()
        async for response in stream:
            assert not response.error, response.error


def _region_of(role: Role) -> Any:
    from coder.mesh.core.paths.derpmap import DerpMap
    from tests.bench._relay_server import NAME
    from tests.kit.network.overlay_pair import REGION, one_region

    assert role.server is not None
    region = one_region(*role.server).regions[REGION]
    node = replace(region.nodes[0], force_http=not role.authority, cert_name=NAME if role.authority else "")
    return DerpMap({REGION: replace(region, nodes=(node,))})


def _dialer(role: Role) -> Any:
    from coder.tailnet.relay import RelayDialer
    from tests.bench._relay_server import policy

    assert role.server is not None
    return RelayDialer(policy(*role.server, role.authority))


async def _echo(stream: trio.abc.Stream) -> None:
    while data := await stream.receive_some():
        await stream.send_all(data)


async def _round_trip(stream: trio.abc.Stream) -> tuple[float, float]:
    """Median of a few hundred round trips of 32 bytes, and our own CPU time for one, microseconds."""
    found = []
    cpu = _cpu()
    for _ in range(ROUND_TRIPS):
        began = time.perf_counter()
        await stream.send_all(bytes(32))
        await stream.receive_some()
        found.append(time.perf_counter() - began)
    return median(found) * 1e6, (_cpu() - cpu) / ROUND_TRIPS * 1e6


async def _meet(node: Any, number: int) -> dict[str, Any]:
    from coder.mesh.core.crypto.keys import PublicKey
    from coder.mesh.node import PeerConfig
    from tests.kit.network.overlay_pair import REGION, address

    peer = await _hear()
    endpoints = (peer["endpoint"],) if peer["endpoint"] else ()
    node.set_peer(
        PeerConfig(
            PublicKey(bytes.fromhex(peer["key"])),
            PublicKey(bytes.fromhex(peer["disco"])),
            (address(number),),
            REGION,
            endpoints,
        )
    )
    return peer


async def _sender(role: Role, seconds: float) -> None:
    from tests.kit.network.overlay_pair import address

    chunk = os.urandom(CHUNK)
    async with _node(1, role) as node:
        peer = await _meet(node, 2)
        plain = await _round_trip(await trio.open_tcp_stream(role.relay[0], peer["echo"]))
        await node.wait_reachable(address(2))
        stream = await node.tcp_connect(address(2), PORT)
        await stream.send_all(b"warm up")
        await stream.receive_some(1)
        while role.path == "direct" and (await node.ping(address(2))).via != "direct":
            await trio.sleep(0.05)
        trip = await _round_trip(stream)
        await stream.send_all(b"go")
        cpu, began = _cpu(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            await stream.send_all(chunk)
        await stream.send_eof()
        await stream.receive_some(1)
        result = {"cpu_seconds": _cpu() - cpu, "path": node.status().peers[0].path, **_counters(stream)}
        result["us_per_packet"] = result["cpu_seconds"] / max(result["segments_out"], 1) * 1e6
        result |= {"round_trip_us": trip[0], "plain_round_trip_us": plain[0]}
        result |= {"round_trip_cpu_us": trip[1], "plain_round_trip_cpu_us": plain[1]}
        _put(sys.stdout, result)
        await stream.aclose()


async def _receiver(role: Role) -> None:
    async with _node(2, role) as node:
        listener = node.tcp_listen(PORT)
        await _meet(node, 1)
        stream = await listener.accept()
        assert await stream.receive_some(7) == b"warm up"
        await stream.send_all(b"k")
        while not (data := await stream.receive_some()).startswith(b"go"):
            await stream.send_all(data)
        total = len(data)
        cpu, began = _cpu(), time.perf_counter()
        while data := await stream.receive_some():
            total += len(data)
        seconds = time.perf_counter() - began
        result = {"cpu_seconds": _cpu() - cpu, "bytes": total, "seconds": seconds, **_counters(stream)}
        result["us_per_packet"] = result["cpu_seconds"] / max(result["segments_in"], 1) * 1e6
        _put(sys.stdout, result)
        await stream.aclose()
        await trio.sleep(0.1)


def _counters(stream: Any) -> dict[str, Any]:
    stats = stream.stats
    names = ("segments_out", "segments_in", "retransmitted", "timeouts", "mss", "window", "round_trip")
    return {name: getattr(stats, name) for name in names}


def main() -> None:
    """The command line; `--role` is for the processes of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--path", choices=("direct", "relay"), default="direct")
    parser.add_argument("--default-buffers", action="store_true")
    parser.add_argument("--relay", default="127.0.0.1")
    parser.add_argument("--server", default="", help="HOST:PORT of a deployment whose relay is used")
    parser.add_argument("--authority", default="", help="who signed its certificate")
    parser.add_argument("--token", default="", help="session token at the deployment")
    parser.add_argument("--role", nargs="+")
    arguments = parser.parse_args()
    if not arguments.role:
        place = Place(default_buffers=arguments.default_buffers)
        print(json.dumps(run(arguments.seconds, arguments.path, place).__dict__, indent=1))
        return
    name, host, port, path, *rest = arguments.role
    profile_to = os.environ.get("MESH_PROFILE", "")
    if profile_to:
        import cProfile

        profiler = cProfile.Profile()
        profiler.enable()
        atexit.register(lambda: profiler.dump_stats(f"{profile_to}.{name}"))
    if arguments.default_buffers:
        from coder.mesh.drivers import udp

        udp._BUFFER_STEPS = (212_992,)  # type: ignore[assignment, misc]
    at, _, number = arguments.server.rpartition(":")
    server = (at, int(number)) if at else None
    role = Role(host, (arguments.relay, int(port)), path, server, arguments.authority, arguments.token)
    if name == "relay":
        trio.run(_relay, role)
    elif name == "sender":
        trio.run(_sender, role, float(rest[0]))
    else:
        trio.run(_receiver, role)


if __name__ == "__main__":
    main()
