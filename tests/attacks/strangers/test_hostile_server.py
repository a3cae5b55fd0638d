"""An agent against a hostile server: manifests, coordination, answers, bytes. docs/security.md counts the groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from coder.rpc.proto import agent_pb2
from tests.attacks.strangers.agent_server import HostileServer, Script, open_agent
from tests.attacks.strangers.kinds import sample
from tests.attacks.strangers.tables import coordination, manifests, rpc
from tests.attacks.strangers.test_hostile_dials import KINDS as DIALS
from tests.kit.paths import ROOT

T = TypeVar("T")
SETTLE, WHOLE_SETTLE = 0.05, 0.5
"Seconds for the tasks that an answer starts; a script's or a map's first steps take milliseconds."
RAW_SETTLE = 5.0
"Seconds for a connection that ends by itself; a table's pieces are sent in a moment."
FINAL = {
    agent_pb2.Lifecycle.READY,
    agent_pb2.Lifecycle.START_ERROR,
    agent_pb2.Lifecycle.START_TIMEOUT,
}


def every(groups: Mapping[str, Mapping[str, T]], step: int) -> list[tuple[str, T]]:
    """Return every n-th row of all groups, and the first of each."""
    rows = [(f"{group}: {name}", value) for group, table in groups.items() for name, value in table.items()]
    firsts = {f"{group}: {next(iter(table))}" for group, table in groups.items()}
    return [row for number, row in enumerate(rows) if number % step == 0 or row[0] in firsts]


def scripts(step: int) -> list[tuple[str, Script]]:
    """Rows that a running agent gets, one connection each."""
    rows = [(title, Script(coordinate=value)) for title, value in every(coordination.COORDINATION, step)]
    rows += [(title, Script(answers=value)) for title, value in every(coordination.ANSWERS, step)]
    rows += [(title, Script(maps=value)) for title, value in every({"maps": coordination.STREAMED_MAPS}, step)]
    return rows


def test_documented_counts() -> None:
    counts = {"maps": len(coordination.STREAMED_MAPS)}
    for groups in (manifests.MANIFESTS, coordination.COORDINATION, coordination.ANSWERS):
        counts |= {group: len(table) for group, table in groups.items()}
    rows = [f"| {group} | agent | {count} |" for group, count in counts.items()]
    rows.append(f"| bytes instead of RPC | agent | {len(rpc.KINDS)} |")
    rows.append(f"| answers to a dial | agent, provisioner daemon | {len(DIALS)} |")
    lines = (ROOT / "docs/security.md").read_text().splitlines()
    assert [row for row in rows if not any(line.startswith(row) for line in lines)] == []
    assert sum(counts.values()) >= 300


async def first_manifest(folder: Path, change: Callable[[agent_pb2.Manifest], None], settle: float) -> str:
    """A new agent gets the manifest first, and runs what it declares; then a genuine connection follows."""
    async with open_agent(folder, "http://127.0.0.1:1", Script(manifest=change)) as server:
        await server.wait_for(lambda: bool(server.ended) or bool(server.served) or server.connections > 1)
        if 1 in server.served:
            await server.wait_for(lambda: bool(server.ended or FINAL & set(server.states)))
        return await server.attack(settle=settle)


async def try_all(server: HostileServer, rows: list[tuple[str, Script]], settle: float) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for title, script in rows:
        if (found := await server.attack(script, settle=settle)) != "":
            wrong[title] = found
        if server.ended:
            break
    return wrong


async def test_agent_survives_manifests(tmp_path: Path) -> None:
    """A sample of them."""
    numbers = itertools.count()
    rows = every(manifests.MANIFESTS, 25)
    wrong = {title: await first_manifest(tmp_path / str(next(numbers)), change, SETTLE) for title, change in rows}
    assert {title: found for title, found in wrong.items() if found} == {}


async def test_agent_survives_answers(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as server:
        assert await try_all(server, scripts(20), SETTLE) == {}


async def test_agent_survives_raw_bytes(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as server:
        rows = [(one.title, Script(raw=one.pieces)) for one in sample(rpc.KINDS, 20)]
        assert await try_all(server, rows, RAW_SETTLE) == {}


@pytest.mark.soak
@pytest.mark.parametrize("group", manifests.MANIFESTS)
async def test_every_manifest(group: str, tmp_path: Path) -> None:
    wrong: dict[str, str] = {}
    for number, (name, change) in enumerate(manifests.MANIFESTS[group].items()):
        with trio.fail_after(120):
            if found := await first_manifest(tmp_path / str(number), change, WHOLE_SETTLE):
                wrong[name] = found
    assert wrong == {}


@pytest.mark.soak
async def test_every_answer(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as server:
        assert await try_all(server, scripts(1), WHOLE_SETTLE) == {}


@pytest.mark.soak
async def test_every_raw_byte(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as server:
        rows = [(one.title, Script(raw=one.pieces)) for one in rpc.KINDS]
        assert await try_all(server, rows, RAW_SETTLE) == {}
