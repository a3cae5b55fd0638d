"""Clients that were lost twice. Their revocations are in `test_coordination.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.coderd.rpc_endpoints.absent_clients import AbsentClients


async def test_client_lost_again_is_rewatched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of the first watch was pending already, and must not end the second."""
    ends = [trio.Event(), trio.Event()]
    waiting = iter(ends)

    async def until_revoked(*_: Any) -> None:
        await next(waiting).wait()

    async def is_revoked(_agents: Any) -> bool:
        return False

    monkeypatch.setattr(AbsentClients, "_until_revoked", until_revoked)
    revoked: list[tuple[UUID, list[UUID]]] = []
    coordinator = SimpleNamespace(revoke=lambda peer, agents: revoked.append((peer, agents)))
    peer, first, second = uuid4(), uuid4(), uuid4()
    async with trio.open_nursery() as nursery:
        services = SimpleNamespace(relay=SimpleNamespace(coordinator=coordinator))
        absent = AbsentClients(cast("Any", SimpleNamespace(nursery=nursery, services=services)))
        absent.watch(peer, cast("Any", None), [first], is_revoked)
        await trio.testing.wait_all_tasks_blocked()
        ends[0].set()
        absent.watch(peer, cast("Any", None), [second], is_revoked)
        await trio.testing.wait_all_tasks_blocked()
        assert revoked == []
        ends[1].set()
    assert revoked == [(peer, sorted([first, second]))]
