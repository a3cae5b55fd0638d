"""Filters of SCIM lists (RFC 7644 section 3.4.2.2): comparisons by `eq`, joined by `and`; value paths of `emails`.

Identity providers look for a user by one unique attribute before they create it. Other operators are refused, never
ignored: an ignored filter would return other users than the requested ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from coder.domain.people.scim_documents import USER_SCHEMA

ATTRIBUTES = {name.lower(): name for name in ("id", "externalId", "userName", "emails", "emails.value", "active")}
"""Comparable attributes of a user. `externalId` is not stored, so it equals nothing."""
LONGEST = 1024
"""Maximum characters of a filter."""
_COMPARISON = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.:\-]*)\s+eq\s+(?P<value>\"(?:[^\"\\]|\\.)*\"|true|false)\s*(?P<end>and\s|$)",
    re.IGNORECASE,
)

_WORK = re.compile(
    r"\bemails\[\s*(?:type\s+eq\s+\"work\"|primary\s+eq\s+true)\s*"
    r"(?:\](?:\.value)?|and\s+value(?P<compared>\s+eq\s+\"(?:[^\"\\]|\\.)*\")\s*\])",
    re.IGNORECASE,
)
"""A value path (RFC 7644 section 3.5.2): the only address of a user is primary and of type work."""

Comparison = tuple[str, str | bool]
"""An attribute by its canonical name, and the value it must equal."""


def parse_filter(text: str) -> list[Comparison]:
    """Return the comparisons of a filter, none of an empty one. Raises ValueError for every other filter."""
    if len(text) > LONGEST:
        raise ValueError(f"A filter has at most {LONGEST} characters.")
    result, rest = list[Comparison](), _WORK.sub(lambda match: f"emails.value{match['compared'] or ''}", text.strip())
    while rest:
        match = _COMPARISON.match(rest)
        if match is None or (match["end"] and match.end() == len(rest)):
            raise ValueError('Only comparisons by eq, joined by and, are supported: userName eq "ada".')
        result.append((_attribute(match["name"]), _value(match["value"])))
        rest = rest[match.end() :]
    return result


def _attribute(name: str) -> str:
    plain = name.lower().removeprefix(f"{USER_SCHEMA.lower()}:")
    if plain not in ATTRIBUTES:
        raise ValueError(f"The attribute {name} cannot be compared. Use one of {', '.join(ATTRIBUTES.values())}.")
    return ATTRIBUTES[plain]


def _value(text: str) -> str | bool:
    if not text.startswith('"'):
        return text.lower() == "true"
    value = json.loads(text)  # RFC 7644: a string is written as in JSON
    if "\0" in value:
        raise ValueError("A value must not contain a zero byte.")
    return str(value)


def value_of(comparisons: Iterable[Comparison], *names: str) -> str | None:
    """Return the first text that one of these attributes must equal."""
    return next((value for name, value in comparisons if name in names and isinstance(value, str)), None)


def is_match(comparisons: Sequence[Comparison], *, ident: str, username: str, email: str, active: bool) -> bool:
    """Return whether a user satisfies every comparison. Names and addresses are compared without regard to case.

    A provider's `userName` is usually an address, from which the username was derived: it equals either.
    """
    address = email.lower()
    values: dict[str, set[str | bool]] = {
        "id": {ident},
        "userName": {username.lower(), address},
        "emails": {address},
        "emails.value": {address},
        "active": {active, str(active).lower()},
    }
    return all(
        (value.lower() if isinstance(value, str) else value) in values.get(attribute, ())
        for attribute, value in comparisons
    )
