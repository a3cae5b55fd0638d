"""A failing item does not block the items after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from coder.api.base.refusals import Conflict
from coder.base.clock import FakeClock
from coder.coderd.services.foundation.isolated_items import process_items
from coder.coderd.services.notifications import notifications
from coder.coderd.services.workspaces import autostop_reminders


class KeptLog:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def warn(self, text: str, **fields: object) -> None:
        self.lines.append(("warn", text, fields))

    def error(self, text: str, **fields: object) -> None:
        self.lines.append(("error", text, fields))


async def _step(item: int) -> int | None:
    if item == 1:
        raise Conflict("It is being built.")
    if item == 2:
        raise ValueError("an unforeseen row")
    return item * 10 if item % 2 else None


@pytest.mark.parametrize(("most", "done"), [(None, [30, 50, 70]), (2, [30, 50]), (0, [])])
async def test_failing_item_is_logged(most: int | None, done: list[int]) -> None:
    said = KeptLog()
    result = await process_items(
        cast("Any", said), "not done", range(1, 8), _step, lambda item: {"item": item}, most=most
    )
    assert result == done
    if most != 0:
        (refused, failed) = said.lines
        assert refused == ("warn", "not done", {"item": 1, "reason": "It is being built."})
        assert failed[:2] == ("error", "not done") and failed[2]["item"] == 2
        assert isinstance(failed[2]["error"], ValueError)


async def test_failing_notice_blocks_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def remind(_tx: object, item: Any, *_: object) -> int:
        if item.workspace_id == "first":
            raise ValueError("an unforeseen row")
        return 1

    async def read(*_: object) -> list[Any]:
        return [SimpleNamespace(workspace_id=name) for name in ("first", "second", "third")]

    async def run(do: Any, *arguments: object) -> Any:
        return await do(None, *arguments)

    monkeypatch.setattr(autostop_reminders, "_remind", remind)
    monkeypatch.setattr(notifications, "site_of", lambda _ctx: None)
    ctx = SimpleNamespace(clock=FakeClock(), log=KeptLog(), db=SimpleNamespace(read=read, run=run))
    assert await autostop_reminders.remind(cast("Any", ctx)) == 2
    assert [fields["workspace"] for _, _, fields in ctx.log.lines] == ["first"]
