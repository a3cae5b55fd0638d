"""What people call things by: an id or a name, and never one's name for another's id."""

from __future__ import annotations

from uuid import UUID

import pytest

from coder.coderd.store.engine.names import as_id, find_group, find_organization, find_user
from tests.kit.coderd import running_coderd

IDENTITY = UUID("6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11")


@pytest.mark.parametrize("text", [str(IDENTITY), str(IDENTITY).upper(), f"urn:uuid:{IDENTITY}", f"{{{IDENTITY}}}"])
def test_an_id_is_what_can_be_no_name(text: str) -> None:
    assert as_id(text) == IDENTITY


@pytest.mark.parametrize("text", [IDENTITY.hex, IDENTITY.hex.upper(), "me", "", "a" * 32, str(IDENTITY)[:-1]])
def test_what_can_be_a_name_is_one(text: str) -> None:
    assert as_id(text) is None


async def test_somebody_called_like_anothers_id_is_not_taken_for_them() -> None:
    """An identity provider's people often choose what they are called."""
    async with running_coderd(first_user=True) as world:
        victim, _ = await world.member("victim")
        organization = UUID(world.organization_id)
        eve, _ = await world.member(UUID(victim).hex)
        shown = (await world.get(f"/api/v2/users/{UUID(victim).hex}")).json()
        assert shown["id"] == eve
        for name in (UUID(victim).hex, UUID(victim).hex.upper()):
            assert str(await world.ctx.db.read(find_user, name)) == eve
            suspended = await world.put(f"/api/v2/users/{name}/status/suspend")
            assert (suspended.status_code, suspended.json()["id"]) == (200, eve)
        assert (await world.get(f"/api/v2/users/{victim}")).json()["status"] == "active"
        assert await world.ctx.db.read(find_organization, organization.hex) is None
        everyone = await world.ctx.db.read(find_group, world.organization_id)
        assert everyone is not None and await world.ctx.db.read(find_group, everyone.id.hex) is None
