"""Filters of SCIM lists."""

from __future__ import annotations

from typing import Any

import pytest

from coder.domain.people.scim_filters import is_match, parse_filter, value_of

USER: dict[str, Any] = {"ident": "1", "username": "ada-l", "email": "Ada.L@example.com", "active": True}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ('userName eq "ada-l"', True),
        ('userName Eq "ADA.L@EXAMPLE.COM"', True),
        ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ada-l"', True),
        ('emails.value eq "ada.l@example.com" and active eq true', True),
        ('id eq "1" AND userName eq "ada-l"', True),
        ('userName eq "ada-l" and active eq false', False),
        ('userName eq "a\\"b"', False),
        ('externalId eq "00u1"', False),
        ('id eq "2"', False),
        ('active eq "true"', True),
    ],
)
def test_comparisons_are_applied(text: str, matches: bool) -> None:
    assert is_match(parse_filter(text), **USER) is matches


@pytest.mark.parametrize(
    "text",
    [
        'userName sw "a"',
        "userName pr",
        'userName eq "a" or id eq "1"',
        'userName eq "a" and',
        'not (userName eq "a")',
        'roles eq "owner"',
        'emails[type eq "home"].value eq "a"',
        'userName eq "a\\u0000b"',
        'userName eq "a\\x"',
        "userName eq ada",
        'userName eq "a" id eq "1"',
        "\x00",
        "(" * 3000,
    ],
)
def test_other_filters_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_filter(text)


def test_first_value_of_attributes() -> None:
    comparisons = parse_filter('active eq true and emails eq "a@b.c"')
    assert value_of(comparisons, "userName", "emails") == "a@b.c"
    assert value_of(comparisons, "id") is None
