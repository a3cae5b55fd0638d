"""Every kind of try against the processes that strangers meet; docs/security.md has the table of groups.

The suite runs a sample in process; the soak run makes every try on real processes, judges each group by another user's
waiting time, processes, logs, descriptors, memory and files, and prints the table.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from coder.provisionerd.config import TerraformConfig
from coder.provisionerd.executors.echo import EchoExecutor
from coder.provisionerd.executors.terraform import TerraformExecutor
from tests.attacks.strangers import cli as cli_driver
from tests.attacks.strangers.agent import AgentAttacker, forwarded
from tests.attacks.strangers.daemon import DaemonAttacker, RawServer
from tests.attacks.strangers.edge import EdgeAttacker
from tests.attacks.strangers.judge import Judge
from tests.attacks.strangers.kinds import Kind, sample
from tests.attacks.strangers.place import HANGS, Place, Shape, open_place
from tests.attacks.strangers.relay import RelayAttacker
from tests.attacks.strangers.tables import agent, agent_services, cli, edge, jobs, relay, rpc, tls
from tests.kit.paths import ROOT

TABLES: Mapping[str, Sequence[Kind]] = {
    "relay": relay.KINDS,
    "edge": edge.KINDS,
    "workspace proxy": [one for one in relay.KINDS if one.stage != "carried"] + edge.KINDS,
    "relay with TLS": relay.KINDS + tls.RELAY,
    "edge with TLS": edge.KINDS + tls.EDGE,
    "workspace proxy with TLS": [one for one in [*relay.KINDS, *tls.RELAY] if one.stage != "carried"]
    + edge.KINDS
    + tls.EDGE,
    "agent": [*agent.KINDS, *agent_services.KINDS],
    "provisioner daemon": rpc.KINDS,
    "command line": cli.KINDS,
}
JOBS = {**jobs.ECHO, "templates": jobs.TERRAFORM}


def counts() -> dict[str, dict[str, int]]:
    """Return the number of kinds by group and process."""
    found: dict[str, dict[str, int]] = {}
    for process, kinds in TABLES.items():
        if process.endswith(" with TLS") and process.removesuffix(" with TLS") in TABLES:
            kinds = [one for one in kinds if one.group.startswith("TLS ")]
        for group, members in grouped(kinds).items():
            found.setdefault(group, {})[process] = len(members)
    return found | {group: {"provisioner daemon": len(made)} for group, made in JOBS.items()}


def documented() -> list[str]:
    """Return the beginnings of the rows in docs/security.md."""
    return [f"| {group} | {', '.join(numbers)} | {max(numbers.values())} |" for group, numbers in counts().items()]


def grouped(kinds: Sequence[Kind]) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for one in kinds:
        groups.setdefault(one.group, []).append(one)
    return groups


def test_each_process_meets_200_kinds() -> None:
    for process, kinds in TABLES.items():
        assert len({one.title for one in kinds}) == len(kinds), process
        assert len({(one.stage, one.pieces, one.then) for one in kinds}) > len(kinds) * 0.98, process
        made = sum(numbers.get(process, 0) for numbers in counts().values())
        assert process.endswith("with TLS") or made >= 200, process


def test_documented_counts() -> None:
    lines = (ROOT / "docs/security.md").read_text().splitlines()
    assert [row for row in documented() if not any(line.startswith(row) for line in lines)] == []


async def test_hostile_servers_do_not_stop_daemon(tmp_path: Path) -> None:
    """A sample; each connection is followed by a genuine one, whose job succeeds."""
    server = RawServer()
    attacker = DaemonAttacker(server, {"echo": EchoExecutor()}, tmp_path)
    async with attacker.running():
        for one in sample(rpc.KINDS, 30):
            await attacker.raw(one)
        for made in jobs.ECHO["states"].values():
            await attacker.run(made())
        await attacker.works()


def test_command_server_survives_strange_requests() -> None:
    with cli_driver.open_attacker() as attacker:
        for one in sample([one for one in cli.KINDS if one.stage != "answer"], 20):
            assert attacker.run(one) == "", one.title
        assert attacker.works()
        assert (attacker.folder / "log").read_text() == ""


def test_caller_sees_no_traceback_of_worker(tmp_path: Path) -> None:
    """A file mask of 32 bits fails after the caller's standard error was taken over."""
    errors = tmp_path / "errors"
    with cli_driver.open_attacker() as attacker, socket.socket(socket.AF_UNIX) as channel:
        channel.connect(str(attacker.path))
        read, write = os.pipe()
        folder = os.open("/", os.O_RDONLY)
        with errors.open("wb") as file:
            socket.send_fds(channel, [cli.request(mask=0xFFFFFFFF)], [*[file.fileno()] * 3, folder, read])
            assert channel.recv(100) == b""
        for number in (folder, read, write):
            os.close(number)
    assert errors.read_bytes() == b""


def test_commands_survive_hostile_server() -> None:
    with cli_driver.open_attacker() as attacker:
        for one in sample([one for one in cli.KINDS if one.stage == "answer"], 100):
            assert attacker.run(one) == "", one.title


# ---- the whole, on real processes


SHAPES = (
    Shape("several processes"),
    Shape("several processes, TLS", tls=True),
    Shape("one process", processes=1),
    Shape("one process, TLS", processes=1, tls=True),
)


def cases(process: str) -> list[Any]:
    """Return shape and process of a list's runs. The workspace proxy is one process beside any server."""
    rows = []
    for shape in SHAPES:
        for name in (process, *(["workspace proxy"] if shape.processes > 1 else [])):
            rows.append(pytest.param(shape, f"{name} with TLS" if shape.tls else name, id=f"{name}, {shape.name}"))
    return rows


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_place(request.param, tmp_path_factory.mktemp("certificates")) as opened:
        yield opened


@pytest.fixture(scope="module")
def judge(place: Place) -> Judge:
    secrets = {"an agent's token": place.agent_token, "a session": place.user_token, "the owner's": place.server.token}
    return Judge(place, secrets)


def judged(judge: Judge, process: str, group: str, tries: int) -> None:
    print(f"| {judge.place.shape.name} | {process} | {group} | {tries} | {judge.rows[-1][2]:.1f} |")
    assert judge.take_findings() == []


def test_finding_fails_one_test(tmp_path: Path) -> None:
    judge = Judge(cast(Any, SimpleNamespace(server=SimpleNamespace(folder=tmp_path))), {})
    judge.findings.append("the victim waited")
    assert judge.take_findings() == ["the victim waited"]
    assert judge.take_findings() == []


@pytest.mark.soak
@pytest.mark.parametrize(("place", "process"), cases("relay"), indirect=["place"])
def test_every_try_at_relay(place: Place, judge: Judge, process: str) -> None:
    address = place.proxy_address if process.startswith("workspace proxy") else place.address
    at_relay = {*relay.KINDS, *tls.RELAY}
    for group, kinds in grouped([one for one in TABLES[process] if one in at_relay]).items():
        attacker = RelayAttacker(address)

        def attack(attacker: RelayAttacker = attacker, kinds: list[Kind] = kinds) -> None:
            for one in kinds:
                answer = attacker.run(one)
                assert b" 500 " not in answer[:20], one.title
                assert HANGS not in answer, one.title
                judge.search(one.title, answer.decode("latin-1"))
            assert attacker.victim_works()
            attacker.close()

        judge.group(group, len(kinds), attack)
        judged(judge, process, group, len(kinds))


@pytest.mark.soak
@pytest.mark.parametrize(("place", "process"), cases("edge"), indirect=["place"])
def test_every_try_at_applications(place: Place, judge: Judge, process: str) -> None:
    is_proxy = process.startswith("workspace proxy")
    at_edge = {*edge.KINDS, *tls.EDGE}
    address, host = (place.proxy_address, "far.test") if is_proxy else (place.address, "apps.test")
    for group, kinds in grouped([one for one in TABLES[process] if one in at_edge]).items():
        attacker = EdgeAttacker(address, place.app, place.app_host(host), place.agent_id, place.user_token)

        def attack(attacker: EdgeAttacker = attacker, kinds: list[Kind] = kinds) -> None:
            for one in kinds:
                answer = attacker.run(one)
                assert b" 500 " not in answer[:20], one.title
                assert HANGS not in answer, one.title
            attacker.close()
            assert attacker.works()

        judge.group(group, len(kinds), attack)
        judged(judge, process, group, len(kinds))


@pytest.mark.soak
@pytest.mark.parametrize("place", SHAPES[:1], indirect=True)
def test_every_try_at_agent(place: Place, judge: Judge) -> None:
    with forwarded(place) as ports:
        attacker = AgentAttacker(ports)
        assert attacker.works()  # loads what the first connection loads
        for group, kinds in grouped(TABLES["agent"]).items():

            def attack(kinds: list[Kind] = kinds) -> None:
                for one in kinds:
                    attacker.run(one)
                attacker.close()
                assert attacker.works()

            judge.group(group, len(kinds), attack)
            judged(judge, "agent", group, len(kinds))
        assert attacker.sessions == sum(one.stage == "session" for one in agent.KINDS)


@pytest.mark.soak
async def test_every_try_at_daemon(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    terraform = TerraformExecutor(TerraformConfig(cache_dir=tmp_path / "cache", environment=environment))
    server = RawServer()
    attacker = DaemonAttacker(server, {"echo": EchoExecutor(), "terraform": terraform}, tmp_path / "work")
    async with attacker.running():
        for one in rpc.KINDS:
            with trio.fail_after(60):
                await attacker.raw(one)
        for group, made in JOBS.items():
            for name, make in made.items():
                with trio.fail_after(300):
                    ended = await attacker.run(make())
                assert jobs.SECRET not in str(ended), f"{group}: {name}"
                lines = "".join(line for _, _, _, line in server.lines())
                assert jobs.SECRET not in lines or "pieces" in name, f"{group}: {name}"
            await attacker.works()
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.soak
def test_every_try_at_command_line() -> None:
    with cli_driver.open_attacker() as attacker:
        wrong = {one.title: found for one in cli.KINDS if (found := attacker.run(one))}
        assert wrong == {}
        assert attacker.works()
