"""Hashed passwords."""

from __future__ import annotations

import pytest

from coder.coderd.services.access.passwords import hash_password, is_outdated, verify_password


async def test_hash_verifies_password() -> None:
    hashed = await hash_password("SomeSecure123!")
    assert hashed.startswith("$argon2id$")
    assert await verify_password(hashed, "SomeSecure123!")
    assert not await verify_password(hashed, "other")
    assert not await verify_password("", "no user has this password")
    assert not await verify_password("garbage", "x")


ORIGINAL = (
    "$pbkdf2-sha256$65535$MDEyMzQ1Njc4OWFiY2RlZg$"
    "GMH2lvkF0AK8zIOj+5p3Sd/FzudXpJJ0UZ1QzAIDo4VPLdAfRNajSaf6VhZTzdXkBwn8Ugz1nMxA0VkvUOPzig"
)


async def test_original_hash_verifies_password() -> None:
    assert is_outdated(ORIGINAL)
    assert await verify_password(ORIGINAL, "SomeSecure123!")
    assert not await verify_password(ORIGINAL, "SomeSecure123")
    assert not is_outdated(await hash_password("x"))


@pytest.mark.parametrize(
    "hashed",
    [
        "$pbkdf2-sha256$",
        "$pbkdf2-sha256$65535$MDEy",
        "$pbkdf2-sha256$x$MDEy$MDEy",
        "$pbkdf2-sha256$0$MDEy$MDEy",
        "$pbkdf2-sha256$99999999$MDEy$MDEy",
        "$pbkdf2-sha256$1$MDEy$",
        "$pbkdf2-sha256$1$M*Ey$MDEy",
        "$pbkdf2-sha256$1$M$MDEy",
    ],
)
async def test_malformed_original_hash_fails(hashed: str) -> None:
    assert not await verify_password(hashed, "")
