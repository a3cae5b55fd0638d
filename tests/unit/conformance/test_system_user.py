"""The system user owns prebuilt workspaces and cannot be changed: every changing operation that names a user, with it.

Generated from the API's description, with bodies that are valid for any other user.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from coder.coderd.store import tables
from coder.coderd.store.engine.metadata import metadata
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from coder.coderd.store.tables.people import users
from tests.conformance.bodies import BODIES
from tests.conformance.world import Populated, populated
from tests.kit.api.api_description import operations
from tests.kit.api.api_fuzzer import fill
from tests.kit.api.callable_operations import SETTINGS, described, shape

_NAMES = ("prebuilds", str(PREBUILDS_USER_ID), str(PREBUILDS_USER_ID).upper())
_OF_A_USER = ("{user}", "/scim/v2/Users/{")


async def _state(world: Populated) -> dict[str, Any]:
    """Return the user itself, and the number of its rows in each table of personal objects, which is zero."""
    tables.load_all()

    async def read(tx: Any) -> dict[str, Any]:
        own = select(users).where(users.c.id == PREBUILDS_USER_ID)
        result = {"itself": str((await tx.execute(own)).one())}
        for table in metadata.tables.values():
            for column in table.columns:
                if any(key.column is users.c.id for key in column.foreign_keys):
                    mine = select(func.count()).select_from(table).where(column == PREBUILDS_USER_ID)
                    result[str(column)] = (await tx.execute(mine)).scalar_one()
        return result

    return await world.world.ctx.db.read(read)


async def test_system_user_is_immutable() -> None:
    names = {
        f"{method} {path}"
        for method, path, _ in operations()
        if method != "GET" and any(mark in path for mark in _OF_A_USER)
    }
    assert len(names) > 40
    good = {shape(key): key for key in BODIES}
    wrong, asked = [], 0
    async with populated(**SETTINGS) as world:
        before = await _state(world)
        async for item in described(world, names.__contains__, refused=True):
            place = "user" if "user" in item.values else next(iter(item.values))
            key = good.get(shape(item.name), "")
            body = await world.body(key, "victim") if key else item.body
            for name in _NAMES:
                asked += 1
                path = fill(item.path, {**item.values, place: name})
                response = await world.world.request(item.method, path, headers=item.headers, token="", json=body)
                world.world.client.cookies.clear()
                if response.status_code not in {403, 404}:
                    wrong.append(f"{item.method} {path} {body}: {response.status_code} {response.text[:150]}")
        after = await _state(world)
        assert len(before) > 20
        assert {key: (before[key], after[key]) for key in before if before[key] != after[key]} == {}
    assert asked == len(_NAMES) * len(names)
    assert not wrong, "\n".join(wrong)
