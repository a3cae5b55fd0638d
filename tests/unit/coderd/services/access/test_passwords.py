"""Hashed passwords."""

from __future__ import annotations

from coder.coderd.services.access.passwords import hash_password, verify_password


async def test_hash_verifies_password() -> None:
    hashed = await hash_password("SomeSecure123!")
    assert hashed.startswith("$argon2id$")
    assert await verify_password(hashed, "SomeSecure123!")
    assert not await verify_password(hashed, "other")
    assert not await verify_password("", "no user has this password")
    assert not await verify_password("garbage", "x")
