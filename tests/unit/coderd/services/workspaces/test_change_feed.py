"""Queue of a watcher, and the notices of changes."""

from uuid import UUID

import pytest

from coder.coderd.services.workspaces.change_feed import Watch
from coder.coderd.store.workspaces.change_feed import Change, parse_change


async def test_equal_changes_merge_and_overflow_resyncs() -> None:
    watch = Watch()
    change = Change("state", UUID(int=1), UUID(int=2))
    watch.put(change)
    watch.put(change)
    assert await watch.next() == change
    assert watch.drain() == []
    for number in range(1001):
        watch.put(Change("state", UUID(int=1), UUID(int=number)))
    assert await watch.next() == Change("resync")


def test_notices_are_parsed() -> None:
    text = f"logs {UUID(int=1)} {UUID(int=2)} {UUID(int=3)}"
    assert parse_change(text) == Change("logs", UUID(int=1), UUID(int=2), UUID(int=3))
    with pytest.raises(ValueError, match="not enough values"):
        parse_change("nonsense")
