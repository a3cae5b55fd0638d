"""Liveness and readiness: their answers while parts of the server are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.base.clock import FakeClock
from coder.coderd.processes.layout import processes_of
from coder.coderd.services.foundation.this_process import Sibling, ThisProcess, instance_id
from coder.coderd.services.site.probes import REPLACING
from tests.kit.server.server_in_process import World, running_coderd

MACHINE = UUID(int=7 << 64)


def _process_without(*lost: str) -> ThisProcess:
    """Return the first process of a server with two, some of whose siblings are lost."""
    own, *others = processes_of(2)
    process = ThisProcess(own.name, instance_id(MACHINE, 0), own.duties, count=1 + len(others))
    process.update(
        Sibling(spec.name, instance_id(MACHINE, number), "", tuple(spec.duties))
        for number, spec in enumerate(others, 1)
        if spec.name not in lost
    )
    return process


async def _answers(world: World) -> dict[str, tuple[int, str]]:
    answers = {}
    for path in ("/livez", "/readyz", "/healthz", "/latency-check"):
        answer = await world.get(path, token="")
        answers[path] = (answer.status_code, answer.text)
    return answers


def _break_database(world: World) -> None:
    # The server's own statements are answered meanwhile, which would end the outage.
    availability: Any = world.ctx.db.availability
    availability.answered = lambda: None
    availability.failed(OSError("away"))
    clock: Any = world.ctx.clock
    clock.advance(11)


OK = (200, "OK")


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        pytest.param(lambda _: None, {}, id="in order"),
        pytest.param(
            _break_database,
            dict.fromkeys(("/readyz", "/healthz"), (503, "the database does not answer")),
            id="no database",
        ),
        pytest.param(
            lambda world: setattr(world.ctx, "stopping", _set()),
            {"/readyz": (503, "the server is shutting down")},
            id="shutting down",
        ),
        pytest.param(lambda world: setattr(world.ctx, "process", _process_without()), {}, id="all siblings"),
        pytest.param(
            lambda world: setattr(world.ctx, "process", _process_without("relay", "loops")),
            {"/readyz": (503, "no process has the duty 'relay'")},
            id="a sibling is lost",
        ),
        pytest.param(lambda world: setattr(world.ctx, "process", _process_without("api-2")), {}, id="one of two"),
    ],
)
async def test_probe_answers(spoil: Callable[[World], None], expected: dict[str, tuple[int, str]]) -> None:
    async with running_coderd(clock=FakeClock()) as world:
        before = world.ctx.process, world.ctx.stopping
        spoil(world)
        answers = await _answers(world)
        world.ctx.process, world.ctx.stopping = before
        assert answers == dict.fromkeys(answers, OK) | expected


async def test_sibling_that_is_not_replaced() -> None:
    clock = FakeClock()
    async with running_coderd(clock=clock) as world:
        before, world.ctx.process = world.ctx.process, _process_without("loops")
        assert await _answers(world) == dict.fromkeys(await _answers(world), OK)
        clock.advance(REPLACING + 1)
        assert (await world.get("/livez")).text.splitlines() == [
            f"no process has had the duty {duty!r} for 61 s" for duty in ("daemons", "loops", "metrics")
        ]
        own = world.ctx.process
        own.update(
            [*own.siblings.values(), Sibling("loops", instance_id(MACHINE, 9), "", ("loops", "daemons", "metrics"))]
        )
        assert (await _answers(world))["/livez"] == OK
        world.ctx.process = before


@pytest.mark.parametrize("method", ["GET", "HEAD"], ids=["fast path", "Quart"])
async def test_latency_check_shows_an_overload(method: str) -> None:
    async with running_coderd() as world:
        for address, is_shown in (("192.0.2.9", False), ("127.0.0.1", True)):
            world.ctx.process.overload.set(address)
            answer = await world.request(method, "/latency-check", token="")
            assert (answer.status_code, answer.headers.get("coder-overloaded")) == (200, "1" if is_shown else None)
            assert answer.headers["access-control-allow-origin"] == "*"


def _set() -> trio.Event:
    event = trio.Event()
    event.set()
    return event
