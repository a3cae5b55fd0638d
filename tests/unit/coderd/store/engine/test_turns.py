"""Long work on the database's loop: other tasks run in between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import pytest

from coder.coderd.services.provisioning.daemon_calls import find_zero_byte
from coder.coderd.services.provisioning.resources import insert_resources
from coder.coderd.services.templates.imports import import_results
from coder.coderd.store.engine import turns
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.engine.turns import ROWS, Turns, insert_rows
from coder.coderd.store.tables.node_keys import node_keys
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2

MANY = 5000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def recorded_turns(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Record each yielded turn."""
    results: list[None] = []

    async def let_others_run() -> None:
        results.append(None)

    monkeypatch.setattr(turns, "TURN", -1.0)
    monkeypatch.setattr(turns, "let_others_run", let_others_run)
    return results


class Statements:
    """Transaction that records its statements."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def execute(self, _statement: Any, values: Any = None) -> Any:
        self.sizes.append(len(values) if isinstance(values, list) else 0)
        return []


async def test_rows_are_written_in_batches() -> None:
    created = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal created
        for _ in range(MANY):
            created += 1
            yield {}

    class Counting(Statements):
        async def execute(self, statement: Any, values: Any = None) -> Any:
            assert created == sum(self.sizes) + len(values)
            return await super().execute(statement, values)

    written = Counting()
    await insert_rows(cast("Tx", written), node_keys, rows())
    assert sum(written.sizes) == MANY and max(written.sizes) == ROWS


def _resources() -> list[provisioner_pb2.Resource]:
    agent = provisioner_pb2.Agent(
        name="main",
        apps=[provisioner_pb2.App(slug=f"a{number}") for number in range(100)],
        scripts=[provisioner_pb2.Script()] * 100,
        metadata=[provisioner_pb2.Agent.Metadata(key="k")] * 100,
    )
    first = provisioner_pb2.Resource(name="first", agents=[agent])
    return [first, *(provisioner_pb2.Resource(name=f"r{number}") for number in range(MANY))]


async def test_large_plan_is_stored_in_turns(recorded_turns: list[None]) -> None:
    match = _resources()
    result = provisionerd_pb2.CompletedJob.WorkspaceBuild(resources=match)
    assert not await find_zero_byte(provisionerd_pb2.CompletedJob(workspace_build=result), Turns())
    assert len(recorded_turns) > MANY
    recorded_turns.clear()
    written = Statements()
    await insert_resources(cast("Tx", written), uuid4(), "start", match, NOW)
    # Each item becomes a row, and is traversed; the same holds for agents' children.
    assert len(recorded_turns) > 2 * (MANY + 300)
    assert max(written.sizes) == ROWS


async def test_parameters_are_stored_in_turns(recorded_turns: list[None]) -> None:
    many = [provisioner_pb2.RichParameter(name=str(number)) for number in range(MANY)]
    result = provisionerd_pb2.CompletedJob.TemplateImport(rich_parameters=many)
    assert len(await import_results._parameter_rows(uuid4(), result, Turns())) == MANY
    assert len(recorded_turns) == MANY
