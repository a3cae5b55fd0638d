"""Queue of a watcher, and the notices of changes."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from coder.coderd.services.workspaces.change_feed import Watch, WorkspaceChangeFeed
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


def test_notices_nobody_waits_for_are_not_parsed() -> None:
    """Lines of ten thousand agents: only those of a watched one are worth it, whatever else is watched."""
    feed = WorkspaceChangeFeed(SimpleNamespace())  # type: ignore[arg-type]
    ids = [UUID(int=number) for number in range(4)]
    logs = [f"logs {ids[0]} {ids[1]} {agent}" for agent in ids[2:]]
    state = f"state {ids[0]} {ids[1]} "
    assert not any(map(feed._may_concern_anyone, [*logs, state]))
    with feed.watch(workspace_id=ids[1]):
        assert [feed._may_concern_anyone(notice) for notice in (*logs, state)] == [False, False, True]
        with feed.watch(agent_id=ids[2]):
            with feed.watch(agent_id=ids[2]):
                pass
            assert [feed._may_concern_anyone(notice) for notice in (*logs, state)] == [True, False, True]
        assert [feed._may_concern_anyone(notice) for notice in (*logs, state)] == [False, False, True]
