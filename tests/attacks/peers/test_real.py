"""The tries of `tables/` on real processes: an agent, and the UDP ports of an agent and of the server's processes.

Soak runs only. Judged like the other groups of strangers: another user's waiting time, processes, logs, descriptors,
memory. Calls to addresses outside of this machine are left to the simulated network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import trio

from coder.mesh.core.stack.tcp.states import TcpState
from tests.attacks.peers.place import Attack
from tests.attacks.peers.real import REACHABLE, RealAttack, RealConn, open_attack, throw, udp_ports
from tests.attacks.peers.tables import options, outer, packets, segments
from tests.attacks.strangers.edge import EdgeAttacker
from tests.attacks.strangers.judge import Judge
from tests.attacks.strangers.place import Place, Shape, open_place

Play = Callable[[RealAttack], object]
PATIENCE = 300.0
LOCAL = {name: make for name, make in outer.DISCO.items() if not name.startswith(("call to", "call with", "fifty"))}
LOCAL = {
    name: make for name, make in LOCAL.items() if name not in ("call that alternates", "pong for the witness's ping")
}
OUTER = {**outer.WIREGUARD, **LOCAL, **outer.STUN}

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_place(Shape("of several processes"), tmp_path_factory.mktemp("certificates")) as opened:
        yield opened


@pytest.fixture(scope="module")
def judge(place: Place) -> Judge:
    secrets = {"an agent's token": place.agent_token, "a session": place.user_token, "the owner's": place.server.token}
    return Judge(place, secrets)


def _in_state(state: TcpState, play: segments.Play, a: RealAttack) -> None:
    play(RealConn(a).reach(state, active=False))


def _opening(value: bytes, a: RealAttack) -> None:
    options.in_syn(RealConn(a), value)


def _open(value: bytes, a: RealAttack) -> None:
    options.in_segment(RealConn(a).reach(TcpState.ESTABLISHED, active=False), value)


def _groups() -> dict[str, dict[str, Play]]:
    def inner(make: packets.Make) -> Play:
        return lambda a: (a.inner(*make(a)), a.answers())

    def relayed(make: Callable[[Attack], list[bytes]]) -> Play:
        return lambda a: (a.relay(*make(a)), a.answers(0.01))

    tcp: dict[str, Play] = {
        f"{state.value}: {name}": partial(_in_state, state, play)
        for state in REACHABLE
        for name, play in segments.SEGMENTS.items()
    }
    tcp |= {f"SYN: {name}": partial(_opening, value) for name, value in options.OPTIONS.items()}
    tcp |= {f"segment: {name}": partial(_open, value) for name, value in options.OPTIONS.items()}
    tables = {"IP": packets.IP, "IP fragments": packets.FRAGMENTS, "ICMPv6": packets.ICMP, "UDP and TSMP": packets.UDP}
    made = {"TCP": tcp}
    made |= {group: {name: inner(make) for name, make in table.items()} for group, table in tables.items()}
    made["relayed WireGuard, disco and STUN"] = {name: relayed(make) for name, make in OUTER.items()}
    return made


async def _play(place: Place, tries: dict[str, Play]) -> int:
    played = 0
    with trio.fail_after(PATIENCE):
        async with open_attack(place.server.url, place.user_token, place.agent_id) as attack:
            for play in tries.values():
                await trio.to_thread.run_sync(play, attack)
                played += 1
    return played


@pytest.mark.parametrize("group", _groups())
def test_every_try_of_peer_at_agent(place: Place, judge: Judge, group: str) -> None:
    tries = _groups()[group]
    witness = EdgeAttacker(place.address, place.app, place.app_host(), place.agent_id, place.user_token)

    def attack() -> None:
        assert trio.run(_play, place, tries) == len(tries)
        assert witness.works(), "the application behind the agent is not served"

    judge.group(f"peer: {group}", len(tries), attack)
    print(f"| {group} | real agent | {len(tries)} | {judge.rows[-1][2]:.1f} |")
    assert judge.take_findings() == []


@pytest.mark.parametrize("process", ["agent", "edge", "relay", "api-1"])
def test_every_try_of_stranger_at_udp_ports(place: Place, judge: Judge, process: str) -> None:
    ports = udp_ports(place.pids()[process])

    async def make() -> list[list[bytes]]:
        async with open_attack(place.server.url, place.user_token, place.agent_id) as attack:
            return [await trio.to_thread.run_sync(partial(made, attack)) for made in OUTER.values()]

    tries = trio.run(make)

    def attack() -> None:
        for datagrams in tries:
            for port in ports:
                assert throw(datagrams, port) <= len(datagrams)

    judge.group(f"stranger at UDP: {process}", len(tries) * len(ports), attack)
    print(f"| stranger | real {process}, {len(ports)} ports | {len(tries) * len(ports)} | {judge.rows[-1][2]:.1f} |")
    assert judge.take_findings() == []
