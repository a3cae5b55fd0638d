"""Access lists of many workspaces at once: how many statements it takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

from coder.coderd.store.access.acls import clear_workspace_acls, revoke_person
from coder.coderd.store.workspaces.change_feed import parse_change

ORGANIZATION, PERSON = uuid4(), uuid4()


class _Asked:
    """A transaction in which so many workspaces were shared."""

    def __init__(self, places: list[tuple[UUID, UUID]]) -> None:
        self.places = places
        self.payloads: list[str] = []
        self.count = 0

    async def execute(self, statement: Any, values: Any = None) -> Any:
        self.count += 1
        if values and values["channel"] == "workspace_changes":
            self.payloads += values["payloads"]
        return [SimpleNamespace(owner_id=owner, id=workspace) for owner, workspace in self.places]


async def test_everybody_is_told_in_as_many_statements_as_one() -> None:
    for many in (1, 500):
        cleared, revoked = (_Asked([(uuid4(), uuid4()) for _ in range(many)]) for _ in range(2))
        await clear_workspace_acls(cast("Any", cleared), ORGANIZATION, people_only=False)
        await revoke_person(cast("Any", revoked), ORGANIZATION, PERSON)
        for asked, statements in ((cleared, 3), (revoked, 4)):
            told = [parse_change(payload) for payload in asked.payloads]
            assert [(one.owner_id, one.workspace_id) for one in told] == asked.places
            assert asked.count == statements


async def test_nobody_is_told_of_nothing() -> None:
    asked = _Asked([])
    await clear_workspace_acls(cast("Any", asked), ORGANIZATION, people_only=True)
    assert (asked.payloads, asked.count) == ([], 2)
