"""A node of the overlay (or a relay) as a process, controlled over its standard streams, one JSON object a line.

For tests that put nodes into network namespaces. Run as `python -m tests.kit.network.overlay_process ROLE …`:
  relay HOST                       -> {"port": …, "stun": …}, then serves until its input ends
  router INSIDE OUTSIDE HOST     -> lends ports by PCP; needs NatNetwork.lend_ports
  node NUMBER HOST PORT STUN [nodirect] -> {"info": …} whenever it changes; then commands:
      {"peer": info}             install a peer
      {"serve": PORT}            count and hash what comes in on a TCP port -> {"serving": PORT}, then {"received": …}
      {"send": PORT, "to": N, "bytes": …, "rate": …}   -> {"sent": …, "path": …}, {"done": …, "sha256": …}
      {"enough": true}           ends a sending without "bytes"
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import partial
from typing import Any

import trio

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.wire import portmap
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.stun import serve_stun
from coder.mesh.node import Node, NodeConfig, PeerConfig, SelfInfo, open_node
from tests.kit.network import network_namespaces
from tests.kit.network.middleboxes import Router, serve_router
from tests.kit.network.overlay_pair import REGION, address, dial_bare, one_region, serve_bare

CHUNK = 16 * 1024


def put(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def info_of(info: SelfInfo) -> dict[str, Any]:
    return {
        "key": info.public_key.hex(),
        "disco": info.disco_key.hex(),
        "addresses": [str(a) for a in info.addresses],
        "endpoints": [str(e) for e in info.endpoints],
        "home": info.preferred_derp,
    }


async def relay(host: str) -> None:
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(serve_bare, server, host)
        stun_port: int = await nursery.start(serve_stun, host, 0)
        put(port=port, stun=stun_port)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


class LendingRouter(Router):
    """Tells the packet filter what it promises."""

    def __init__(self, outside: str, host: str) -> None:
        super().__init__(outside)
        self.host = host

    def _map(self, inside: int, wanted: int, lifetime: int) -> tuple[int, int]:
        port, lifetime = super()._map(inside, wanted, lifetime)
        if port:
            rule = f'add rule ip nat pre iifname "eth0" udp dport {port} dnat to {self.host}:{inside}'
            subprocess.run([network_namespaces.find_tool("nft"), rule], check=True)
            put(lent=port)
        return port, lifetime


async def router(inside: str, outside: str, host: str) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_router, LendingRouter(outside, host), inside, portmap.PORT)
        put(ready=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


async def node(number: int, host: str, port: int, stun_port: int, direct: bool) -> None:
    config = NodeConfig((address(number),), one_region(host, port, stun_port), dial_bare, direct=direct)
    enough = trio.Event()
    async with open_node(config) as mesh, trio.open_nursery() as nursery:
        nursery.start_soon(tell, mesh)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            command = json.loads(line)
            if "peer" in command:
                install(mesh, command["peer"])
            elif "serve" in command:
                nursery.start_soon(serve, mesh, command["serve"])
            elif "send" in command:
                nursery.start_soon(send, mesh, command, enough)
            elif "enough" in command:
                enough.set()
        nursery.cancel_scope.cancel()


async def tell(mesh: Node) -> None:
    changes = mesh.self_changed()
    if mesh.self_info.preferred_derp:
        put(info=info_of(mesh.self_info))
    async for info in changes:
        if info.preferred_derp:
            put(info=info_of(info))


def install(mesh: Node, peer: dict[str, Any]) -> None:
    mesh.set_peer(
        PeerConfig(
            PublicKey(bytes.fromhex(peer["key"])),
            PublicKey(bytes.fromhex(peer["disco"])),
            tuple(peer["addresses"]),
            REGION,
            tuple(peer["endpoints"]),
        )
    )


async def serve(mesh: Node, port: int) -> None:
    listener = mesh.tcp_listen(port)
    put(serving=port)
    stream = await listener.accept()
    digest = hashlib.sha256()
    total = 0
    told = trio.current_time()
    while data := await stream.receive_some():
        digest.update(data)
        total += len(data)
        if trio.current_time() - told > 0.1:
            told = trio.current_time()
            put(received=total)
    put(finished=total, sha256=digest.hexdigest())
    await stream.aclose()


async def send(mesh: Node, command: dict[str, Any], enough: trio.Event) -> None:
    to = address(command["to"])
    await mesh.wait_reachable(to)
    stream = await mesh.tcp_connect(to, command["send"])
    digest = hashlib.sha256()
    began = trio.current_time()
    sent = 0
    told = 0.0
    number = 0
    while not enough.is_set() if "bytes" not in command else sent < command["bytes"]:
        number += 1
        chunk = number.to_bytes(8, "big") * (CHUNK // 8)
        digest.update(chunk)
        await stream.send_all(chunk)
        sent += len(chunk)
        await trio.sleep_until(began + sent / command["rate"])
        if trio.current_time() - told > 0.1:
            told = trio.current_time()
            status = mesh.status().peers[0]
            put(
                sent=sent,
                path=status.path,
                endpoint=status.endpoint,
                direct=status.direct_bytes,
                relayed=status.relayed_bytes,
            )
    await stream.send_eof()
    await stream.receive_some()
    put(done=sent, sha256=digest.hexdigest())


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        trio.run(relay, sys.argv[2])
    elif sys.argv[1] == "router":
        trio.run(partial(router, *sys.argv[2:5]))
    else:
        trio.run(node, int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), "nodirect" not in sys.argv)
