"""Access lists of many workspaces: number of statements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

from coder.coderd.store.access.acls import clear_workspace_acls, revoke_user
from coder.coderd.store.workspaces.change_feed import parse_change

ORGANIZATION, PERSON = uuid4(), uuid4()


class _Asked:
    """Transaction with that many shared workspaces."""

    def __init__(self, places: list[tuple[UUID, UUID]]) -> None:
        self.places = places
        self.payloads: list[str] = []
        self.count = 0

    async def execute(self, statement: Any, values: Any = None) -> Any:
        self.count += 1
        if values and values["channel"] == "workspace_changes":
            self.payloads += values["payloads"]
        return [SimpleNamespace(owner_id=owner, id=workspace) for owner, workspace in self.places]


async def test_notices_use_constant_statements() -> None:
    for many in (1, 500):
        cleared, revoked = (_Asked([(uuid4(), uuid4()) for _ in range(many)]) for _ in range(2))
        await clear_workspace_acls(cast("Any", cleared), ORGANIZATION, people_only=False)
        await revoke_user(cast("Any", revoked), ORGANIZATION, PERSON)
        for transaction, statements in ((cleared, 3), (revoked, 4)):
            changes = [parse_change(payload) for payload in transaction.payloads]
            assert [(item.owner_id, item.workspace_id) for item in changes] == transaction.places
            assert transaction.count == statements


async def test_no_change_sends_no_notice() -> None:
    transaction = _Asked([])
    await clear_workspace_acls(cast("Any", transaction), ORGANIZATION, people_only=True)
    assert (transaction.payloads, transaction.count) == ([], 2)
