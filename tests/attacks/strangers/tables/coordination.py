"""What a hostile coordinator tells an agent about its peers, and answers of the agents' calls that none would give."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from coder.mesh.keys import PrivateKey
from coder.rpc.calls import ServerCall
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, tailnet_pb2
from tests.attacks.strangers.tables.manifests import BIG, ESCAPES, HUGE, MAPS

Call = ServerCall[Any, Any]
Coordinate = Callable[[Call], Awaitable[None]]
Response = tailnet_pb2.CoordinateResponse
Kind = Response.PeerUpdate.Kind

STATES = (
    Kind.NODE,
    Kind.LOST,
    Kind.NODE,
    Kind.READY_FOR_HANDSHAKE,
    Kind.DISCONNECTED,
    Kind.LOST,
    Kind.READY_FOR_HANDSHAKE,
    Kind.NODE,
    Kind.DISCONNECTED,
)
MANY = 2000
"Peers of a crowd; the soak run has time for their keys."


def node(**fields: Any) -> tailnet_pb2.Node:
    public, disco = PrivateKey.generate(os.urandom).public, PrivateKey.generate(os.urandom).public
    good: dict[str, Any] = {
        "id": 7,
        "key": public.binary,
        "disco": disco.disco_text,
        "preferred_derp": 1,
        "allowed_ips": ["fd7a:115c:a1e0:4bdf::1/128"],
        "addresses": ["fd7a:115c:a1e0:4bdf::1/128"],
    }
    return tailnet_pb2.Node(**(good | fields))


def update(kind: Any = 1, ident: bytes | None = None, **fields: Any) -> Response.PeerUpdate:
    found = Response.PeerUpdate(id=os.urandom(16) if ident is None else ident, reason=str(fields.pop("reason", "")))
    found.kind = kind
    if kind == Kind.NODE and not fields.pop("bare", False):
        found.node.CopyFrom(node(**fields))
    return found


def _send(
    *updates: Callable[[], Response.PeerUpdate] | Response.PeerUpdate, times: int = 1, error: str = ""
) -> Coordinate:
    async def coordinate(call: Call) -> None:
        for _ in range(times):
            made = [each() if callable(each) else each for each in updates]
            await call.send(Response(peer_updates=made, error=error))

    return coordinate


def _node(**fields: Any) -> Coordinate:
    return _send(lambda: update(**fields))


async def _own_key(call: Call) -> None:
    """The agent's own node comes back as another peer's."""
    async for request in call:
        if request.HasField("update_self"):
            own = Response.PeerUpdate(id=os.urandom(16), node=request.update_self.node, kind=Kind.NODE)
            await call.send(Response(peer_updates=[own]))
            return


async def _crowd(call: Call) -> None:
    for _ in range(MANY // 100):
        await call.send(Response(peer_updates=[update() for _ in range(100)]))


async def _ready_crowd(call: Call) -> None:
    for _ in range(10):
        await call.send(Response(peer_updates=[update(Kind.READY_FOR_HANDSHAKE) for _ in range(4000)]))


async def _resets(call: Call) -> None:
    ident, found = os.urandom(16), node()
    states = [Response.PeerUpdate(id=ident, kind=kind, node=found) for kind in STATES]
    for _ in range(200):
        await call.send(Response(peer_updates=states))


async def _key_moves(call: Call) -> None:
    one, two, found = os.urandom(16), os.urandom(16), node()
    for _ in range(100):
        await call.send(Response(peer_updates=[Response.PeerUpdate(id=one, kind=Kind.NODE, node=found)]))
        await call.send(Response(peer_updates=[Response.PeerUpdate(id=one, kind=Kind.LOST)]))
        await call.send(Response(peer_updates=[Response.PeerUpdate(id=two, kind=Kind.NODE, node=found)]))
        one, two = two, one


async def _new_keys(call: Call) -> None:
    ident = os.urandom(16)
    for _ in range(300):
        await call.send(Response(peer_updates=[update(ident=ident)]))


async def _never_read(call: Call) -> None:
    """Sends and does not read: the agent's answers must not pile up."""
    found = [Response.PeerUpdate(id=os.urandom(16), kind=Kind.NODE, node=node()) for _ in range(50)]
    with trio.move_on_after(2):
        for _ in range(5000):
            await call.send(Response(peer_updates=found))


async def _closes(call: Call) -> None:
    await call.close()


async def _fails(call: Call) -> None:
    raise RpcError(7, ESCAPES)


COORDINATION: dict[str, dict[str, Coordinate]] = {
    "peers: updates": {
        "without an id": _send(update(ident=b"")),
        "with an id of 15 bytes": _send(update(ident=bytes(15))),
        "with an id of 1 MB": _send(update(ident=bytes(1_000_000))),
        "of an unknown kind": _send(update(77)),
        "of kind 0": _send(update(0)),
        "of kind -1": _send(update(-1)),
        "of a node without one": _send(update(bare=True)),
        "of the end of an unknown peer": _send(update(Kind.DISCONNECTED)),
        "of the loss of an unknown peer": _send(update(Kind.LOST)),
        "of the readiness of an unknown peer": _send(update(Kind.READY_FOR_HANDSHAKE)),
        "with a reason of escape sequences": _send(update(reason=ESCAPES)),
        "with a reason of 1 MB": _send(update(reason=HUGE)),
        "none": _send(),
        "none, 5,000 times": _send(times=5000),
        "100,000 empty ones": _send(*[Response.PeerUpdate()] * 100_000),
        "200,000 empty ones": _send(*[Response.PeerUpdate()] * 200_000),
    },
    "peers: nodes": {
        "no key": _node(key=b""),
        "key of zeros": _node(key=b"np" + bytes(32)),
        "key of ones": _node(key=b"np" + b"\xff" * 32),
        "key of low order": _node(key=b"np" + b"\1" + bytes(31)),
        "key without its prefix": _node(key=bytes(range(34))),
        "key of 1 MB": _node(key=b"np" + bytes(1_000_000)),
        "no disco key": _node(disco=""),
        "disco key of zeros": _node(disco="discokey:" + "0" * 64),
        "disco key of other letters": _node(disco="discokey:" + "z" * 64),
        "disco key of escape sequences": _node(disco=ESCAPES),
        "home -1": _node(preferred_derp=-1),
        "home 2**31-1": _node(preferred_derp=2**31 - 1),
        "home 0": _node(preferred_derp=0),
        "id -1": _node(id=-1),
        "time of year 292 billion": lambda call: _dated(call, BIG),
        "time before all": lambda call: _dated(call, -BIG),
        "every address": _node(allowed_ips=["::/0", "0.0.0.0/0"]),
        "addresses that are none": _node(allowed_ips=["", "x", ESCAPES, "1.2.3.4/99", "::1%eth0"]),
        "addresses of the agent": _node(allowed_ips=["fd7a:115c:a1e0::a9e7/128"]),
        "loopback addresses": _node(allowed_ips=["127.0.0.1/32", "::1/128"]),
        "no address": _node(allowed_ips=[], addresses=[]),
        "10,000 addresses": _node(allowed_ips=["fd7a::1/128"] * 10_000),
        "an address of 1 MB": _node(allowed_ips=[HUGE]),
        "endpoints that are none": _node(endpoints=["", "x", ":1", "1.2.3.4", "[::1", ESCAPES, "1.2.3.4:99999"]),
        "endpoints of this machine": _node(endpoints=["127.0.0.1:1", "[::1]:1", "0.0.0.0:1", "[::]:1"]),
        "endpoints of port 0 and -1": _node(endpoints=["127.0.0.1:0", "127.0.0.1:-1"]),
        "5,000 endpoints": _node(endpoints=[f"127.0.{n >> 8}.{n & 255}:1" for n in range(5000)]),
        "1,000 endpoints": _node(endpoints=[f"127.0.{n >> 8}.{n & 255}:1" for n in range(1000)]),
        "an endpoint of 1 MB": _node(endpoints=[HUGE]),
        "latencies of NaN": _node(derp_latency={"1-v4": float("nan"), ESCAPES: float("inf")}),
        "websockets of escape sequences": _node(derp_forced_websocket={-1: ESCAPES}),
    },
    "peers: streams": {
        "the agent's own key": _own_key,
        "a crowd": _crowd,
        "40,000 that are ready and unknown": _ready_crowd,
        "states in every order": _resets,
        "a key that moves between ids": _key_moves,
        "a new key 300 times": _new_keys,
        "sent and never read": _never_read,
        "closed": _closes,
        "failed": _fails,
        "an error of escape sequences": _send(error=ESCAPES),
        "an error of 1 MB": _send(error=HUGE),
        "a handshake error, 2,000 times": _send(times=2000, error="ready for handshake error: x"),
    },
}


async def _dated(call: Call, seconds: int) -> None:
    found = update()
    found.node.as_of.seconds = seconds
    await call.send(Response(peer_updates=[found]))


# ---- answers of calls

STREAMED_MAPS: dict[str, tuple[tailnet_pb2.DERPMap, ...]] = {name: (derp_map,) for name, derp_map in MAPS.items()}
STREAMED_MAPS["2,000 that differ"] = (MAPS["region -1"], MAPS["no region"]) * 1000


def _stats(seconds: int, nanos: int = 0) -> dict[str, Any]:
    answer = agent_pb2.UpdateStatsResponse()
    answer.report_interval.seconds, answer.report_interval.nanos = seconds, nanos
    return {"UpdateStats": answer}


def _monitoring(volumes: list[str], datapoints: int = 2, interval: int = 1, memory: bool = True) -> dict[str, Any]:
    answer = agent_pb2.GetResourcesMonitoringConfigurationResponse()
    answer.config.num_datapoints, answer.config.collection_interval_seconds = datapoints, interval
    answer.memory.enabled = memory
    for path in volumes:
        answer.volumes.add(enabled=True, path=path)
    return {"GetResourcesMonitoringConfiguration": answer}


def _banners(number: int, message: str) -> dict[str, Any]:
    banner = agent_pb2.BannerConfig(enabled=True, message=message, background_color=ESCAPES)
    return {"GetAnnouncementBanners": agent_pb2.GetAnnouncementBannersResponse(announcement_banners=[banner] * number)}


def _fail(method: str, code: int = 0, text: str = "no") -> dict[str, Any]:
    async def answer(_request: Any) -> Any:
        await trio.lowlevel.checkpoint()
        raise RpcError(code, text)

    return {method: answer}


def _silent(method: str) -> dict[str, Any]:
    async def answer(_request: Any) -> Any:
        await trio.sleep_forever()

    return {method: answer}


METHODS = (
    "GetManifest",
    "UpdateStartup",
    "UpdateLifecycle",
    "GetAnnouncementBanners",
    "UpdateStats",
    "BatchUpdateAppHealths",
    "GetResourcesMonitoringConfiguration",
)
"Methods that every connection calls or may call."

ANSWERS: dict[str, dict[str, dict[str, Any]]] = {
    "answers: values": {
        "interval of statistics 2**63-1": _stats(BIG),
        "interval of statistics -2**63": _stats(-BIG - 1),
        "interval of statistics of 1 ns": _stats(0, 1),
        "interval of statistics of -1 ns": _stats(0, -1),
        "a volume with a zero byte": _monitoring(["/a\0b"]),
        "a volume of 1 MB": _monitoring(["/" + HUGE]),
        "a volume of escape sequences": _monitoring([ESCAPES]),
        "a volume without a name": _monitoring([""]),
        "the same volume 4,000 times": _monitoring(["/"] * 4000),
        "4,000 volumes": _monitoring([f"/nowhere/{n}" for n in range(4000)]),
        "100,000 volumes": _monitoring([f"/{n}" for n in range(100_000)]),
        "-1 readings": _monitoring(["/"], -1),
        "2**31-1 readings": _monitoring(["/"], 2**31 - 1),
        "readings every -1 s": _monitoring(["/"], 1, -1),
        "banners of escape sequences": _banners(1, ESCAPES),
        "a banner of 3 MB": _banners(1, HUGE * 3),
        "4,000 banners": _banners(4000, "x"),
        "200,000 banners": _banners(200_000, ""),
        "logs are full at once": {"BatchCreateLogs": agent_pb2.BatchCreateLogsResponse(log_limit_exceeded=True)},
        "an unknown state": {"UpdateLifecycle": agent_pb2.Lifecycle(state=77)},  # type: ignore[arg-type]
        "a version of 1 MB": {"UpdateStartup": agent_pb2.Startup(version=HUGE)},
    },
    "answers: errors": {
        f"{method}: {name}": _fail(method, code, text)
        for method in METHODS
        for name, code, text in (("no", 0, "no"), ("code 2**64-1 with escape sequences", 2**64 - 1, ESCAPES))
    },
    "answers: silence": {method: _silent(method) for method in METHODS if method != "GetManifest"},
}
