"""Password strength, with the recorded refusals."""

from __future__ import annotations

import pytest

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


def test_repeats_and_runs_are_ignored() -> None:
    assert entropy_bits("aaaaaaaaaaaaaaaa") < entropy_bits("akqzmxow")
    assert entropy_bits("1234567890") < entropy_bits("4917380265")
    assert entropy_bits("qwertyuiop") < entropy_bits("qpwoeiruty")
