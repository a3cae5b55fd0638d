"""Clients that were lost twice. What they lose, and when: `test_coordination.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.coderd.rpc_endpoints.absent_clients import AbsentClients


async def test_a_client_that_is_lost_again_as_its_right_ends_is_watched_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of the first watching was on its way already, and must not take the second for its own."""
    ends = [trio.Event(), trio.Event()]
    waiting = iter(ends)

    async def until_shut_out(*_: Any) -> None:
        await next(waiting).wait()

    async def is_shut_out(_agents: Any) -> bool:
        return False

    monkeypatch.setattr(AbsentClients, "_until_shut_out", until_shut_out)
    revoked: list[tuple[UUID, list[UUID]]] = []
    coordinator = SimpleNamespace(revoke=lambda peer, agents: revoked.append((peer, agents)))
    peer, one, two = uuid4(), uuid4(), uuid4()
    async with trio.open_nursery() as nursery:
        absent = AbsentClients(cast("Any", SimpleNamespace(nursery=nursery, part=lambda _kind: coordinator)))
        absent.watch(peer, cast("Any", None), [one], is_shut_out)
        await trio.testing.wait_all_tasks_blocked()
        ends[0].set()
        absent.watch(peer, cast("Any", None), [two], is_shut_out)
        await trio.testing.wait_all_tasks_blocked()
        assert revoked == []
        ends[1].set()
    assert revoked == [(peer, sorted([one, two]))]
