"""A shell works through every middlebox of company networks between users, agents and the server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import trio

from coder.base.secret import Secret
from coder.client.link import WorkspaceLink, open_link
from coder.mesh.core.paths import keepalive
from coder.mesh.drivers.pump import Pump
from coder.net.policy import DialPolicy
from coder.rpc import mux
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import AgentWorld, workspace_world
from tests.kit.network.middleboxes import AuthProxy, Handler, IdleCutter, Target, UpgradeStripper, serve_box
from tests.kit.stand_ins.certificates import Authority

TERMINAL = 2
NAME = "coder.test"
"Host name that only the test's proxies can resolve. Loopback names bypass proxies."


async def output_of_shell(link: WorkspaceLink) -> str:
    """Expected output of a terminal in the workspace for a sum."""
    await link.wait_reachable(15)
    async with await terminal(link, "echo sum=$((40+2)); sleep 0.2") as stream:
        return (await read_until(stream, b"sum=42")).decode()


async def terminal(link: WorkspaceLink, command: str) -> trio.abc.Stream:
    """Open a workspace terminal with a command."""
    stream: trio.abc.Stream = await link.connect(TERMINAL)
    init = {
        "ID": str(uuid4()),
        "Height": 24,
        "Width": 80,
        "Command": command,
        "Container": "",
        "ContainerUser": "",
        "BackendType": "",
    }
    raw = json.dumps(init).encode()
    await stream.send_all(len(raw).to_bytes(2, "little") + raw)
    return stream


async def read_until(stream: trio.abc.Stream, words: bytes) -> bytes:
    """Return the terminal's output until this text or its end."""
    output = b""
    while words not in output and (data := await stream.receive_some()):
        output += data
    assert words in output
    return output


@asynccontextmanager
async def scene_of(tmp_path: Path) -> AsyncIterator[tuple[AgentWorld, Target, Path]]:
    async with workspace_world() as view_context:
        host, port = view_context.world.url.removeprefix("http://").rsplit(":", 1)
        yield view_context, (host, int(port)), tmp_path / "agent"


async def through(
    view_context: AgentWorld, policy: DialPolicy, folder: Path, *, direct: bool = False
) -> tuple[str, Any]:
    """Run an agent and a client with this policy; return (the shell's output, the client's relay)."""
    with trio.fail_after(60):
        async with running_agent(view_context, policy, folder):
            person = policy.with_token(Secret(view_context.world.token))
            async with open_link(person, view_context.agent_id, direct=direct) as link:
                output = await output_of_shell(link)
                return output, link.node.status().relays[0]


@dataclass(frozen=True)
class Case:
    """Middlebox and the expected properties behind it."""

    name: str
    make: Callable[[Target], Handler]
    transport: str


STRIPPERS = (
    Case("knows only WebSockets", lambda to: UpgradeStripper(to, knows=("websocket",)), "websocket"),
    Case("strips upgrades", UpgradeStripper, "stream"),
    Case("refuses upgrades", lambda to: UpgradeStripper(to, "refuse"), "stream"),
)


async def test_shell_behind_every_middlebox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene_of(tmp_path) as (view_context, target, folder), trio.open_nursery() as nursery:
        for case in STRIPPERS:
            port = await nursery.start(serve_box, case.make(target))
            output, relay = await through(view_context, DialPolicy(f"http://127.0.0.1:{port}"), folder)
            assert "sum=42" in output, case.name
            assert relay.transport == case.transport, case.name
            assert relay.forced_websocket, case.name

        proxy = AuthProxy(target, "ana", "p@ss")
        port = await nursery.start(serve_box, proxy)
        proxies = {"http": f"http://ana:p%40ss@127.0.0.1:{port}", "no": "elsewhere.test"}
        output, relay = await through(view_context, DialPolicy(f"http://{NAME}:80", proxies=proxies), folder)
        assert "sum=42" in output
        assert relay.transport == "upgrade"
        assert set(proxy.tunnels) == {f"{NAME}:80"}
        assert len(proxy.tunnels) >= 4, "API, RPC and relay of both sides"
        assert not proxy.refused

        # Direct paths are enabled, but every datagram is dropped; a connection breaks after 1.5 idle seconds.
        monkeypatch.setattr(Pump, "udp", lambda *_: True)
        monkeypatch.setattr(Pump, "udp_batch", lambda *_: True)
        port = await nursery.start(serve_box, IdleCutter(target, 1.5))
        output, _ = await through(view_context, DialPolicy(f"http://127.0.0.1:{port}"), folder, direct=True)
        assert "sum=42" in output
        nursery.cancel_scope.cancel()


@pytest.mark.soak  # real seconds; in simulated ones: tests/unit/mesh/drivers/test_derp.py
async def test_shell_survives_idle_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are scaled to a fortieth: the middlebox's minute, and the keepalive intervals of relay and RPC
    connections."""
    monkeypatch.setattr(keepalive, "FIRST", keepalive.FIRST / 40)
    monkeypatch.setattr(mux, "KEEPALIVE_INTERVAL", mux.KEEPALIVE_INTERVAL / 40)
    lost: list[str] = []

    def note(fact: str, fields: Mapping[str, object]) -> None:
        if fact == "relay" and not fields["connected"]:
            lost.append(str(fields))

    async with scene_of(tmp_path) as (view_context, target, folder), trio.open_nursery() as nursery:
        box = IdleCutter(target, 60 / 40)
        policy = DialPolicy(f"http://127.0.0.1:{await nursery.start(serve_box, box)}")
        person = policy.with_token(Secret(view_context.world.token))
        with trio.fail_after(60):
            async with (
                running_agent(view_context, policy, folder),
                open_link(person, view_context.agent_id, direct=False, trace=note) as link,  # type: ignore[arg-type]
            ):
                await link.wait_reachable(15)
                async with await terminal(link, "echo ready; read x; echo got:$x; sleep 0.2") as stream:
                    await read_until(stream, b"ready")
                    await trio.sleep(150 / 40)
                    await stream.send_all(b'{"data": "words\\r"}')
                    await read_until(stream, b"got:words")
                assert not lost
        nursery.cancel_scope.cancel()


@pytest.mark.soak
async def test_shell_with_buffered_answers(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as (view_context, target, folder), trio.open_nursery() as nursery:
        port = await nursery.start(serve_box, UpgradeStripper(target, "refuse", buffers=True))
        output, relay = await through(view_context, DialPolicy(f"http://127.0.0.1:{port}"), folder)
        assert "sum=42" in output
        assert relay.transport == "stream"
        nursery.cancel_scope.cancel()


@pytest.mark.soak
async def test_shell_with_custom_tls_and_proxy(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue(NAME)
    mine = authority.issue("ana")
    settings: dict[str, Any] = {
        "tls_enable": True,
        "tls_address": "127.0.0.1:0",
        "tls_cert_file": (cert,),
        "tls_key_file": (key,),
        "tls_client_auth": "require-and-verify",
        "tls_client_ca_file": authority.file,
    }
    async with workspace_world(**settings) as view_context, trio.open_nursery() as nursery:
        secure = next(url for url in view_context.world.server.urls if url.startswith("https:"))
        box = AuthProxy(("127.0.0.1", int(secure.rsplit(":", 1)[1])), "ana", "secret")
        port = await nursery.start(serve_box, box)
        policy = DialPolicy(
            f"https://{NAME}",
            ca_file=authority.file,
            client_cert=mine[0],
            client_key=mine[1],
            proxies={"https": f"http://ana:secret@127.0.0.1:{port}"},
        )
        output, relay = await through(view_context, policy, tmp_path / "agent")
        assert "sum=42" in output
        assert relay.transport == "upgrade"
        assert set(box.tunnels) == {f"{NAME}:443"}
        nursery.cancel_scope.cancel()
