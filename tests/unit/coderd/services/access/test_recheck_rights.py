"""Rechecks of a stream's right, with a scripted check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from coder.api.base.refusals import Forbidden, NotFound
from coder.coderd.services.access import recheck_rights
from coder.coderd.services.access.recheck_rights import PAUSE, run_while_allowed


class ScriptedCheck:
    """Scripted notices and results of the check; the last result repeats."""

    def __init__(self, *answers: Exception | str) -> None:
        self.answers = list(answers)
        self.times: list[float] = []
        self.followed: list[object] = []
        self._next = trio.Event()

    @property
    def services(self) -> SimpleNamespace:
        return SimpleNamespace(rights_changes=self)

    def next_change(self) -> trio.Event:
        return self._next

    def tell(self) -> None:
        told, self._next = self._next, trio.Event()
        told.set()

    async def ask(self) -> str:
        self.times.append(trio.current_time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def follow(self, result: str) -> None:
        self.followed.append(result)
        await trio.sleep_forever()

    async def run(self) -> bool:
        context: Any = self
        return await run_while_allowed(context, self.ask, self.follow)


AWAY = RuntimeError("the database is away")


@pytest.mark.parametrize("refusal", [NotFound(), Forbidden("no"), AWAY])
async def test_first_check_error_propagates(refusal: Exception) -> None:
    asked = ScriptedCheck(refusal)
    with pytest.raises(type(refusal)):
        await asked.run()
    assert asked.followed == []


async def test_allowed_stream_runs_to_end() -> None:
    asked = ScriptedCheck("it")
    context: Any = asked
    heard = []

    async def follow(result: str) -> None:
        heard.append(result)

    assert await run_while_allowed(context, asked.ask, follow)
    assert (heard, len(asked.times)) == (["it"], 1)


@pytest.mark.parametrize("refusal", [NotFound(), Forbidden("no")])
async def test_notice_during_first_check_counts(refusal: Exception, autojump_clock: Any) -> None:
    asked = ScriptedCheck("it", refusal)
    first = asked.ask

    async def overtaken() -> str:
        result = await first()
        asked.tell()
        return result

    context: Any = asked
    assert not await run_while_allowed(context, overtaken, asked.follow)
    assert asked.times == [0.0, 0.0]


async def test_failed_check_is_retried(autojump_clock: Any) -> None:
    asked = ScriptedCheck("it", AWAY, AWAY, NotFound())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked.run)
        await trio.testing.wait_all_tasks_blocked()
        asked.tell()
    assert asked.times[:2] == [0.0, 0.0]
    assert len(asked.times) == 4 and asked.times[-1] < recheck_rights.CHECK_INTERVAL


async def test_checks_are_rate_limited(autojump_clock: Any) -> None:
    asked = ScriptedCheck("it")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked.run)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(100):
            asked.tell()
            await trio.sleep(PAUSE / 50)
        assert 2 <= len(asked.times) <= 1 + 1 + 100 / 50 / 0.8
        before = len(asked.times)
        await trio.sleep(3 * (recheck_rights.CHECK_INTERVAL + 2 * PAUSE))
        assert len(asked.times) >= before + 3
        nursery.cancel_scope.cancel()
