"""Claims of an identity provider, and the name, organizations, groups and roles derived from them. Pure.

Claims are untrusted JSON: the type of every value is checked before use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coder.base.json_types import Json
from coder.domain.foundation.names import name_from
from coder.domain.foundation.patterns import PatternProblem, compiled

Claims = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ClaimFields:
    """Names of the claims that are read (`--oidc-email-field` and similar flags)."""

    email: str = "email"
    username: str = "preferred_username"
    name: str = "name"


class ClaimProblem(ValueError):  # noqa: N818 - says what is wrong with the claims
    """Claims that do not make a user; the text is for the user, `title` for the page's heading."""

    def __init__(self, title: str, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.title, self.status = title, status


@dataclass(frozen=True, slots=True)
class Person:
    """Person described by a provider."""

    linked_id: str
    """Issuer and subject; stable for the life of the provider's account."""
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
    """Return the person. Raises ClaimProblem if the e-mail address is missing, unverified or of a foreign domain."""
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
        raise ClaimProblem("No email", "The email in the OIDC payload is not an address.", 400)
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
    """Return the nearest valid username: the part before an @, other characters as dashes; "user" when empty."""
    return name_from(text.partition("@")[0], "user")


def words_of(claims: Claims, field: str) -> list[str]:
    """Return the names in a claim: a list, a JSON list as text, or a single name."""
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


def mapped(words: Iterable[str], mapping: Mapping[str, str | Sequence[str]], *, keep: bool = True) -> list[str]:
    """Map `words` to one or several names each; `keep` retains words without an entry."""
    result: list[str] = []
    for word in words:
        target = mapping.get(word)
        if target is None:
            result += [word] if keep else []
        else:
            result += [target] if isinstance(target, str) else [str(item) for item in target]
    return list(dict.fromkeys(result))


def matching(words: Iterable[str], pattern: str | None) -> list[str]:
    """Return the words that match `pattern`, or all without a pattern. An unusable pattern matches nothing."""
    if not pattern:
        return list(words)
    try:
        result = compiled(pattern)
    except PatternProblem:
        return []
    return [word for word in words if result.search(word)]
