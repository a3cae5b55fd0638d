"""Password strength, with the recorded sentences."""

from __future__ import annotations

import pytest

from coder.coderd.services.access.passwords import hash_password, verify_password
from coder.domain.access.passwords import entropy_bits, explain_password


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("SomeSecure123!", ""),
        ("Rec0rded-Pass!", ""),
        ("correct horse battery staple", ""),
        (
            "password",
            "insecure password, try including more special characters, using uppercase letters, using numbers or "
            "using a longer password",
        ),
        (
            "",
            "insecure password, try including more special characters, using lowercase letters, using uppercase "
            "letters, using numbers or using a longer password",
        ),
        ("Aa1!" * 20, "password must be no more than 64 characters"),
    ],
)
def test_explain(password: str, why: str) -> None:
    assert explain_password(password) == why


def test_repeats_and_runs_do_not_count() -> None:
    assert entropy_bits("aaaaaaaaaaaaaaaa") < entropy_bits("akqzmxow")
    assert entropy_bits("1234567890") < entropy_bits("4917380265")
    assert entropy_bits("qwertyuiop") < entropy_bits("qpwoeiruty")


async def test_hashes_verify_and_nobody_has_no_password() -> None:
    hashed = await hash_password("SomeSecure123!")
    assert hashed.startswith("$argon2id$")
    assert await verify_password(hashed, "SomeSecure123!")
    assert not await verify_password(hashed, "other")
    assert not await verify_password("", "nobody has this password")
    assert not await verify_password("garbage", "x")
