"""Admission of agents: in order, bounded, and with a time to come back for those that are sent away."""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

import pytest
import trio
from sqlalchemy import update

from coder.api.base.refusals import Unavailable
from coder.appproxy.http.overload import OverloadSign
from coder.coderd.rpc_endpoints import agents
from coder.coderd.services.network import agent_admission
from coder.coderd.services.network.agent_admission import (
    AT_ONCE,
    CHECKS_AT_ONCE,
    LONGEST_REST,
    LONGEST_WAIT,
    MOST_WAITING,
    OF_ONE_AGENT,
    SHARE,
    SLOWEST_PACE,
    AgentAdmission,
)
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.tables.agents import workspace_agents
from coder.net.carried_stream import has_room
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent, dial_link, eventually, workspace_world

COUNT = 1500


async def _busy(admission: AgentAdmission) -> list[agent_admission.Arrival]:
    return [await admission.enter(object()) for _ in range(AT_ONCE)]


def _retry_after(refusal: Unavailable) -> int:
    return int(dict(refusal.headers)["Retry-After"])


async def test_arrivals_enter_in_order(autojump_clock: Any) -> None:
    admission = AgentAdmission(trio.current_time, OverloadSign())
    first = await _busy(admission)
    order: list[int] = []

    async def arrive(number: int) -> None:
        arrival = await admission.enter(object())
        order.append(number)
        await trio.sleep(0.01)
        arrival.end()

    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon(arrive, number)
            await trio.testing.wait_all_tasks_blocked()
        assert (order, admission.running, admission.waiting) == ([], AT_ONCE, 40)
        for arrival in first:
            arrival.end()
            arrival.end()  # again is harmless
    assert sorted(order) == list(range(40))
    assert all(abs(at - number) < AT_ONCE for at, number in enumerate(order)), "tasks of one turn run in any order"
    assert (admission.running, admission.waiting) == (0, 0)


async def test_full_queue_spreads_the_others(autojump_clock: Any) -> None:
    admission = AgentAdmission(trio.current_time, OverloadSign())
    arrivals = await _busy(admission)
    refused: list[int] = []

    async def wait() -> None:
        try:
            arrivals.append(await admission.enter(object()))
        except Unavailable as refusal:
            refused.append(_retry_after(refusal))

    async with trio.open_nursery() as nursery:
        for _ in range(MOST_WAITING):
            nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        room = admission.waiting
        for _ in range(300):
            with pytest.raises(Unavailable) as caught:
                await admission.enter(object())
            refused.append(_retry_after(caught.value))
        assert refused == sorted(refused)
        spread = SHARE * SLOWEST_PACE * len(refused)
        assert refused[-1] - refused[0] >= spread - 1, "they come back over the time that their arrivals need"
        nursery.cancel_scope.cancel()
    assert 200 < room <= MOST_WAITING
    assert all(1 <= seconds <= LONGEST_REST for seconds in refused)


async def test_last_agents_rest_not_longer_than_needed(autojump_clock: Any) -> None:
    """Arrivals take half as long at the end of a storm. Times are the mock clock's."""
    admission, rest = AgentAdmission(trio.current_time, OverloadSign()), random.Random(1)
    served: list[float] = []

    async def arrive() -> None:
        while True:
            try:
                arrival = await admission.enter(object())
            except Unavailable as refusal:
                await trio.sleep(_retry_after(refusal) + rest.uniform(0, 0.3))
                continue
            seconds = 0.3 if len(served) < COUNT / 2 else 0.15
            await trio.sleep(seconds)
            served.append(seconds)
            arrival.end()
            return

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(COUNT):
            nursery.start_soon(arrive)
    assert trio.current_time() - began < 1.15 * sum(served) / AT_ONCE, "1.4 if they return exactly at the first pace"


async def test_slow_beginning_leaves_no_gap(autojump_clock: Any) -> None:
    """While all connections are made at once, arrivals take longer; the times to return must not count with that."""
    admission, chance = AgentAdmission(trio.current_time, OverloadSign()), random.Random(1)
    slow, fast, slowness = 0.05, 0.02, 12.0
    ends: list[float] = []
    began = trio.current_time()

    async def arrive(number: int) -> None:
        await trio.sleep(chance.uniform(0, slowness / 2))
        while True:
            try:
                arrival = await admission.enter(number)
            except Unavailable as refusal:
                await trio.sleep(_retry_after(refusal) * chance.uniform(1.0, 1.2))
                continue
            each = slow if trio.current_time() - began < slowness else fast
            await trio.sleep(each * AT_ONCE)
            arrival.end()
            ends.append(trio.current_time() - began)
            return

    async with trio.open_nursery() as nursery:
        for number in range(COUNT):
            nursery.start_soon(arrive, number)
    needed = slowness + (COUNT - slowness / slow) * fast
    assert sorted(ends)[int(0.95 * COUNT)] < 1.1 * needed, "1.5 if those refused again return behind all others"


async def test_queue_that_stands_still_refuses(autojump_clock: Any) -> None:
    admission = AgentAdmission(trio.current_time, OverloadSign())
    await _busy(admission)
    began = trio.current_time()
    with pytest.raises(Unavailable):
        await admission.enter(object())
    assert trio.current_time() - began == pytest.approx(LONGEST_WAIT)
    assert admission.waiting == 0


async def test_token_checks_are_bounded(autojump_clock: Any) -> None:
    """A slow database must not collect the tasks and descriptors of clients that have left."""
    overload = OverloadSign()
    admission, refused = AgentAdmission(trio.current_time, overload), list[float]()

    async def check(seconds: float) -> None:
        try:
            async with admission.checking():
                await trio.sleep(seconds)
        except Unavailable:
            refused.append(trio.current_time())

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(CHECKS_AT_ONCE + MOST_WAITING):
            nursery.start_soon(check, 2 * LONGEST_WAIT)
        await trio.testing.wait_all_tasks_blocked()
        assert not overload.is_set("")
        await check(0)
        assert refused == [began]
        assert overload.is_set("")
    assert len(refused) == 1 + MOST_WAITING
    assert set(refused[1:]) == {began + LONGEST_WAIT}
    await check(0)
    assert len(refused) == 1 + MOST_WAITING, "free again"


async def test_one_agent_does_not_hold_all_turns() -> None:
    admission = AgentAdmission(trio.current_time, OverloadSign())
    arrivals = [await admission.enter("one") for _ in range(OF_ONE_AGENT)]
    with pytest.raises(Unavailable):
        await admission.enter("one")
    (await admission.enter("another")).end()
    arrivals.pop().end()
    (await admission.enter("one")).end()


async def test_cancelled_arrival_loses_no_slot(autojump_clock: Any) -> None:
    admission = AgentAdmission(trio.current_time, OverloadSign())
    arrivals = await _busy(admission)

    async def arrive() -> None:
        (await admission.enter(object())).end()

    for turn_comes in (False, True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(arrive)
            await trio.testing.wait_all_tasks_blocked()
            if turn_comes:
                arrivals.pop().end()
            nursery.cancel_scope.cancel()
    assert (admission.running, admission.waiting) == (AT_ONCE - 1, 0)


async def test_upgrade_is_refused_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the first agent has its manifest."""
    monkeypatch.setattr(agent_admission, "AT_ONCE", 1)
    monkeypatch.setattr(agent_admission, "MOST_WAITING", 0)
    async with workspace_world() as view_context:
        world, path = view_context.world, "/api/v2/workspaceagents/me/rpc?version=2.10&role=agent"
        policy = DialPolicy(world.url, proxies={})
        async with connected_agent(view_context) as agent:
            assert await has_room(policy)
            with pytest.raises(HttpError) as caught:
                await dial_link(world, path, token=view_context.token)
            assert (caught.value.status, caught.value.is_enveloped) == (503, True)
            assert caught.value.retry_after >= 1
            assert not await has_room(policy), "otherwise agents would take it for a middlebox"
            with pytest.raises(HttpError) as caught:
                await dial_link(world, path, token=str(uuid4()))
            assert caught.value.status == 401, "its token is looked at before it waits"
            await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
            async with connected_agent(view_context):
                pass

        async def is_free() -> bool:
            return world.ctx.services.api.agent_admission.running == 0

        await eventually(is_free)


async def test_token_is_checked_again_after_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "OUTDATED_AFTER", 0.0)
    async with workspace_world() as view_context:
        world, path = view_context.world, "/api/v2/workspaceagents/me/rpc?version=2.10&role=agent"
        admission = world.ctx.services.api.agent_admission
        first = await _busy(admission)
        async with trio.open_nursery() as nursery:

            async def arrive() -> None:
                with pytest.raises(HttpError) as caught:
                    await dial_link(world, path, token=view_context.token)
                assert caught.value.status == 401

            nursery.start_soon(arrive)

            async def waits() -> bool:
                return admission.waiting == 1

            await eventually(waits)
            await world.ctx.db.run(_forget_tokens)
            for arrival in first:
                arrival.end()


async def _forget_tokens(tx: Tx) -> None:
    await tx.execute(update(workspace_agents).values(auth_token=uuid4()))
