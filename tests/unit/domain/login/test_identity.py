"""Claims of a provider, and the person derived from them: claims are untrusted JSON."""

from __future__ import annotations

from typing import Any

import pytest

from coder.domain.login.identity import (
    ClaimFields,
    ClaimProblem,
    mapped,
    matching,
    person_of,
    username_from,
    words_of,
)

ALICE = {"iss": "https://idp", "sub": "s-1", "email": "alice@example.com", "preferred_username": "alice", "name": " A "}
FIELDS = ClaimFields()


def test_linked_id_is_issuer_and_subject() -> None:
    alice = person_of({**ALICE, "picture": "https://x/p"}, FIELDS)
    assert (alice.linked_id, alice.email, alice.username) == ("https://idp||s-1", "alice@example.com", "alice")
    assert (alice.name, alice.picture) == ("A", "https://x/p")
    own = ClaimFields(email="mail", username="uid", name="cn")
    assert person_of({"mail": "b@x.y", "uid": "bob", "cn": "Bob"}, own).username == "bob"
    # Some providers send the address as the name.
    assert person_of({**ALICE, "email": "", "preferred_username": "al@example.com"}, FIELDS).email == "al@example.com"


@pytest.mark.parametrize(
    ("claims", "options", "status"),
    [
        ({}, {}, None),
        ({"email_verified": True}, {}, None),
        ({"email_verified": False}, {}, 403),
        ({"email_verified": "false"}, {}, 403),
        ({"email_verified": "True"}, {}, None),
        ({"email_verified": None}, {}, None),
        ({"email_verified": "False"}, {}, 403),
        ({"email_verified": "no"}, {}, 403),
        ({"email_verified": 0}, {}, 403),
        ({"email_verified": []}, {}, 403),
        ({"email_verified": {"a": "b"}}, {}, 403),
        ({"email_verified": False}, {"ignore_verified": True}, None),
        ({"email": ""}, {}, 400),
        ({"email": 7, "preferred_username": ["a@b"]}, {}, 400),
        ({"email": "nonsense"}, {}, 400),
        ({"email": "a@evil.com\nb@example.com"}, {"domains": ("example.com",)}, 400),
        ({"email": "a@evil.com,b@example.com"}, {"domains": ("example.com",)}, 400),
        ({"email": "a@evil.com b@example.com"}, {"domains": ("example.com",)}, 400),
        ({"email": "a\x00@example.com"}, {"domains": ("example.com",)}, 400),
        ({"email": "@example.com"}, {"domains": ("example.com",)}, 400),
        ({"email": "", "preferred_username": "a@evil.com\nb@example.com"}, {}, 400),
        ({"email": "a@evil.com"}, {"domains": ("example.com",)}, 403),
        ({"email": "a@example.com.evil.com"}, {"domains": ("example.com",)}, 403),
        ({"email": "a@EXAMPLE.com"}, {"domains": ("example.com",)}, None),
        ({}, {"domains": ("@Example.com",)}, None),
    ],
)
def test_email_admission(claims: dict[str, Any], options: dict[str, Any], status: int | None) -> None:
    if status is None:
        assert person_of({**ALICE, **claims}, FIELDS, **options).email
        return
    with pytest.raises(ClaimProblem) as refused:
        person_of({**ALICE, **claims}, FIELDS, **options)
    assert refused.value.status == status and refused.value.title


def test_every_text_has_a_username() -> None:
    assert [username_from(text) for text in ("alice", "Alice B@x.y", "@", "")][::3] == ["alice", "user"]
    assert "@" not in username_from("Alice B@x.y") and " " not in username_from("Alice B@x.y")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", 1, None, ["b"]], ["a"]),
        ('["a", "b"]', ["a", "b"]),
        ("[a", ["[a"]),
        ("[" * 100_000, ["[" * 100_000]),
        ("a", ["a"]),
        ("", []),
        (None, []),
        ({"a": 1}, []),
        (7, []),
    ],
    ids=lambda value: str(value)[:20],
)
def test_names_are_read_from_lists(value: Any, words: list[str]) -> None:
    assert words_of({"groups": value}, "groups") == words
    assert words_of({}, "groups") == []


def test_names_are_mapped_and_chosen() -> None:
    assert mapped(["a", "b", "c"], {"a": "x", "b": ["x", "y"]}) == ["x", "y", "c"]
    assert mapped(["a", "c"], {"a": "x"}, keep=False) == ["x"]
    assert matching(["team", "other"], "^t") == ["team"]
    assert matching(["team", "other"], None) == ["team", "other"]
    assert matching(["team"], "(") == []
