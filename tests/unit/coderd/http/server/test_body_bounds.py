"""Bodies are bounded: total bytes, elements and depth before decoding."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing

from coder.api.base.refusals import RateLimited, TooLarge
from coder.coderd.http.server import body_bounds, json
from coder.coderd.http.server.body_bounds import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    PERSON_HELD_BYTES,
    SMALL,
    BodyBudget,
    check_json,
)
from tests.kit.api.api_description import application
from tests.kit.server.server_in_process import World, running_coderd


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * (MAX_DEPTH + 1),
        b'{"a":' * (MAX_DEPTH + 1),
        b"[{}" + b",{}" * MAX_ELEMENTS + b"]",
        b"[[]" + b",[]" * MAX_ELEMENTS + b"]",
        b"[" + b"1," * MAX_ELEMENTS + b"1]",
        b'["\\"",' * (MAX_DEPTH + 1),
        b'"' + b"," * 10 + b'"' + b"," * (MAX_ELEMENTS + 1),
    ],
    ids=lambda raw: raw[:8].decode(),
)
def test_too_many_elements_are_refused(raw: bytes) -> None:
    with pytest.raises(TooLarge):
        check_json(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b"[{}" + b",{}" * 40_000 + b"]",
        b'{"text":"' + b",[{" * MAX_ELEMENTS + b'"}',
        b'{"text":"' + b'\\",' * MAX_ELEMENTS + b'"}',
        b'"' + b"," * (MAX_ELEMENTS + 1),
    ],
    ids=lambda raw: raw[:8].decode(),
)
def test_strings_contain_no_elements(raw: bytes) -> None:
    check_json(raw)


def test_budget_is_shared_and_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "STRANGERS_BYTES", 100)
    budget = BodyBudget()
    with budget.sender("") as item, budget.sender("") as two, budget.sender("ana") as ana:
        item.take(60)
        ana.take(1000)
        with pytest.raises(RateLimited):
            two.take(41)
        two.take(40)
    assert budget.held == {}
    with budget.sender("") as three:
        three.take(100)


def test_address_share_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "ADDRESS_BYTES", 50)
    budget = BodyBudget()
    with budget.sender("", "192.0.2.1") as item, budget.sender("", "192.0.2.1") as two:
        item.take(30)
        with pytest.raises(RateLimited):
            two.take(30)
        with budget.sender("", "192.0.2.2") as another, budget.sender("ana", "192.0.2.1") as ana:
            another.take(50)
            ana.take(1000)
    assert budget.held == {}


def test_every_body_route_has_a_limit() -> None:
    app = application()
    declarations = {id(view.route): view.route for view in app.view_functions.values() if hasattr(view, "route")}
    taking = [item for item in declarations.values() if item.body is not None or item.takes != "application/json"]
    assert len(taking) > 60
    assert all(item.limit > 0 for item in taking)
    large = {rule for item in taking for rule in item.rules if item.limit > 1 << 20}
    assert large == {
        "",
        "/organizations/<organization>/templateversions",
        "/templateversions/<id:version>",
        "/workspaces/<id:workspace>/builds",
        "/workspacebuilds/<id:build>/state",
        "/<id:agent>/speedtest/payload",
    }, "bodies of more than a megabyte: files, templates' messages, states, speed tests"


async def test_strangers_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "STRANGERS_BYTES", 150_000)
    async with running_coderd(first_user=True) as world:
        streams = [await _half_a_body(world) for _ in range(6)]
        budget = world.ctx.services.api.body_budget
        refused = await _first_answer(streams)
        assert b" 429 " in refused.splitlines()[0]
        assert budget.held.get("", 0) <= 150_000
        assert (await world.get("/healthz")).status_code == 200
        assert (await world.post("/api/v2/authcheck", {"checks": {}})).status_code == 200, "people have their own"
        for stream in streams:
            await stream.aclose()
        with trio.fail_after(60):
            while budget.held:
                await trio.sleep(0.01)


async def _half_a_body(world: World) -> trio.SocketStream:
    parts = urlsplit(world.url)
    stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 0)
    head = b"POST /api/v2/users/login HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
    await stream.send_all(head + b" " * 50_000)
    return stream


async def _first_answer(streams: list[trio.SocketStream]) -> bytes:
    answer = b""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            async def read(stream: trio.SocketStream) -> None:
                nonlocal answer
                answer = answer or await stream.receive_some(4096)
                nursery.cancel_scope.cancel()

            for stream in streams:
                nursery.start_soon(read, stream)
    return answer


async def test_server_refuses_many_elements() -> None:
    async with running_coderd(first_user=True) as world:
        headers = {"Content-Type": "application/json"}
        for raw in (b'{"checks":{"a":[' + b"1," * 300_000 + b"1]}}", b'{"checks":' + b"[" * 50_000):
            answer = await world.request("POST", "/api/v2/authcheck", content=raw, headers=headers)
            assert answer.status_code == 413, answer.text
            assert "smaller requests" in answer.json()["detail"]


async def test_too_many_parameters_are_refused() -> None:
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    }
    async with running_coderd() as world:
        for path in ("/healthz", "/api/v2/users/me", "/api/v2/workspaceagents/me/rpc", "/oauth2/authorize", "/"):
            valid = await world.get(f"{path}?{'a=1&' * 999}")
            assert valid.status_code in {200, 401, 403}, path
            for headers in ({}, handshake):
                many = await world.get(f"{path}?{'a=1&' * 1000}", headers=headers)
                assert many.status_code == 414, path
                assert many.json()["message"] == "The address has too many parameters."


async def test_bodies_of_a_user_wait(autojump_clock: trio.testing.MockClock) -> None:
    budget, order = BodyBudget(), []

    async def send_body(name: str, count: int, lasts: float) -> None:
        async with budget.turn("ana", count, 30.0):
            assert budget.held["memory of ana"] <= max(PERSON_HELD_BYTES, count)
            order.append(name)
            await trio.sleep(lasts)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send_body, "first", PERSON_HELD_BYTES, 2.0)
        await trio.sleep(1)
        nursery.start_soon(send_body, "second", SMALL + 1, 1.0)
        nursery.start_soon(send_body, "alone", 2 * PERSON_HELD_BYTES, 1.0)
        async with budget.turn("ben", PERSON_HELD_BYTES, 0.0):
            assert order == ["first"], "others do not wait for her"
    assert order[0] == "first" and set(order) == {"first", "second", "alone"}
    assert budget.held == {}


async def test_large_body_blocks_no_small_one(autojump_clock: trio.testing.MockClock) -> None:
    budget = BodyBudget()
    async with budget.turn("ana", 2 * PERSON_HELD_BYTES, 0.0), budget.turn("ana", SMALL, 0.0):
        assert sum(budget.held.values()) == 2 * PERSON_HELD_BYTES + SMALL
    async with AsyncExitStack() as held:
        for _ in range(PERSON_HELD_BYTES // SMALL):
            await held.enter_async_context(budget.turn("ana", SMALL, 0.0))
        with pytest.raises(RateLimited):
            await held.enter_async_context(budget.turn("ana", SMALL, 30.0))
    assert budget.held == {}


async def test_release_wakes_only_its_account(autojump_clock: trio.testing.MockClock) -> None:
    """Otherwise each end of a body would cost a check per waiting body."""
    budget, looked, order = BodyBudget(), 0, []
    has_room = budget._has_room

    def counting_check(account: str, count: int) -> bool:
        nonlocal looked
        looked += 1
        return has_room(account, count)

    budget._has_room = counting_check  # type: ignore[method-assign]

    async def wait(number: int, count: int) -> None:
        async with budget.turn("ana", count, 300.0):
            order.append(number)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery, budget.turn("ana", PERSON_HELD_BYTES, 0.0):
        for number in range(100):
            nursery.start_soon(wait, number, PERSON_HELD_BYTES if number == 50 else SMALL + 1)
            await trio.testing.wait_all_tasks_blocked()
        looked = 0
        for _ in range(100):
            with budget.sender("", "192.0.2.1") as share:
                share.take(1)
            async with budget.turn("ben", 1, 0.0):
                pass
        await trio.testing.wait_all_tasks_blocked()
        assert looked == 100, "as often as Ben came"
    assert order == sorted(order), "none is overtaken"
    assert looked <= 400
    assert budget.held == {} and budget._waiting == {}


async def test_long_wait_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    budget = BodyBudget()
    async with budget.turn("ana", PERSON_HELD_BYTES, 0.0):
        with pytest.raises(RateLimited):
            async with budget.turn("ana", SMALL + 1, 30.0):
                pass
        assert trio.current_time() >= 30
    assert budget.held == {}


async def test_bodies_count_until_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "PERSON_HELD_BYTES", 100_000)
    maxima: list[int] = []
    async with running_coderd(first_user=True) as world:
        budget = world.ctx.services.api.body_budget
        decode = json.parse_body

        def decoding(*args: Any, **options: Any) -> Any:
            maxima.append(max(size for account, size in budget.held.items() if " of " in account))
            return decode(*args, **options)

        monkeypatch.setattr(json, "parse_body", decoding)
        body = {"checks": {}, "filling": "x" * 60_000}
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(world.post, "/api/v2/authcheck", body)
    assert len(maxima) == 8
    assert 60_000 < max(maxima) <= 100_000
    assert budget.held == {}
