"""What an identity provider says of a person, and what follows: name, organizations, groups, roles. Pure.

Claims are JSON of a stranger: every value is checked for its kind before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coder.domain.foundation.names import name_from
from coder.domain.foundation.patterns import PatternProblem, compiled

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimFields:
    """Which claims hold what (`--oidc-email-field` and its kin)."""

    email: str = "email"
    username: str = "preferred_username"
    name: str = "name"


class ClaimProblem(ValueError):  # noqa: N818 - says what is wrong with the claims
    """The claims do not make a user; the text is for the person, `title` for the page's heading."""

    def __init__(self, title: str, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.title, self.status = title, status


@dataclass(frozen=True, slots=True)
class Person:
    """A person as a provider describes it."""

    linked_id: str
    "Stable for the life of the account there: issuer and subject."
    email: str
    username: str
    name: str
    picture: str = ""


def text_of(claims: Claims, field: str) -> str:
    value = claims.get(field)
    return value.strip() if isinstance(value, str) else ""


def person_of(
    claims: Claims, fields: ClaimFields, *, domains: Sequence[str] = (), ignore_verified: bool = False
) -> Person:
    """Raises ClaimProblem: no usable e-mail address, not verified, of a foreign domain."""
    username, email = text_of(claims, fields.username), text_of(claims, fields.email)
    if not email:
        if "@" not in username:  # some providers send the address as the name
            raise ClaimProblem("No email", "No email found in OIDC payload!", 400)
        email = username
    if claims.get("email_verified") in {False, "false"} and not ignore_verified:
        raise ClaimProblem(
            "Unverified email", f'Verify the "{email}" email address on your OIDC provider to authenticate!'
        )
    if "@" not in email:
        raise ClaimProblem("No email", "The email in the OIDC payload is no address.", 400)
    if domains and email.rpartition("@")[2].lower() not in {domain.lower().lstrip("@") for domain in domains}:
        raise ClaimProblem(
            "Email domain", "Your email is not from an authorized domain! Please contact your administrator."
        )
    return Person(
        linked_id=f"{text_of(claims, 'iss')}||{text_of(claims, 'sub')}",
        email=email,
        username=username_from(username or email),
        name=text_of(claims, fields.name)[:128].strip(),
        picture=text_of(claims, "picture"),
    )


def username_from(text: str) -> str:
    """The nearest valid username: what stands before an @, other characters as dashes; "user" when nothing is left."""
    return name_from(text.partition("@")[0], "user")


def words_of(claims: Claims, field: str) -> list[str]:
    """A claim that lists names: a list, a JSON list as text, or one name."""
    value = claims.get(field)
    if isinstance(value, str):
        if value.startswith("["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                pass  # a name that begins with a bracket
        if isinstance(value, str):
            return [value] if value else []
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return []


def mapped(words: Iterable[str], mapping: Mapping[str, Any], *, keep: bool = True) -> list[str]:
    """`words` by a mapping to one name or several; those without an entry stay where `keep` says so."""
    found: list[str] = []
    for word in words:
        target = mapping.get(word)
        if target is None:
            found += [word] if keep else []
        else:
            found += [target] if isinstance(target, str) else [str(item) for item in target]
    return list(dict.fromkeys(found))


def matching(words: Iterable[str], pattern: str | None) -> list[str]:
    """The words in which `pattern` is found; all of them without one. An unusable pattern matches nothing."""
    if not pattern:
        return list(words)
    try:
        found = compiled(pattern)
    except PatternProblem:
        return []
    return [word for word in words if found.search(word)]
