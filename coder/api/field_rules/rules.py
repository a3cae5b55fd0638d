"""Rules for single fields of requests, by the tag that clients know.

A rule is a predicate with values on both sides of its bound, from which tests are made. The table in
`coder/api/field_rules/table.py` assigns rules to fields; services check rules over several fields or the database.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from coder.base.json_types import Json
from coder.domain.foundation.names import (
    MAX_DISPLAY_NAME,
    MAX_NAME,
    MAX_VERSION_NAME,
    RESERVED,
    is_display_name,
    is_name,
    is_version_name,
)
from coder.domain.foundation.web_addresses import split_untrusted

MAX_REAL_NAME = 128
MAX_GROUP_NAME = 255
MAX_DESCRIPTION = 127
MAX_VERSION_MESSAGE = 1 << 20

FieldValue = Json | UUID | datetime | msgspec.Struct
Values = tuple[FieldValue | Sequence[UUID], ...]
Field_contra = TypeVar("Field_contra", contravariant=True)
Explain = Callable[[Field_contra], str]
"""Return the fault of a value; empty when it is valid."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_GROUP_NAME = re.compile(r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")


@dataclass(frozen=True, slots=True)
class FieldRule(Generic[Field_contra]):
    """Rule for a field; a violation is reported with `tag`."""

    tag: str
    holds: Callable[[Field_contra], bool]
    examples: Callable[[], tuple[Values, Values]]
    """Values for `inside` and `outside`; created on demand, since a running server needs no texts of a megabyte."""
    says: Explain[Field_contra] | None = None
    """Text about a value that breaks the rule, where clients receive a text instead of the tag."""
    message: str = ""
    """Message above the text, if it differs from the message above tags."""
    listed: bool = True
    """Whether the field is listed among the validations; otherwise the text is the detail."""

    @property
    def inside(self) -> Values:
        """Return values at the bound that pass."""
        return self.examples()[0]

    @property
    def outside(self) -> Values:
        """Return values just past the bound."""
        return self.examples()[1]


def failed(field: str, tag: str, value: object) -> tuple[str, str]:
    """Return the validation of a field that broke the rule `tag`."""
    return field, f'Validation failed for tag "{tag}" with value: "{_display_text(value)}"'


def first_broken(value: Field_contra, rules: Iterable[FieldRule[Field_contra]]) -> FieldRule[Field_contra] | None:
    """Return the first of `rules` that the value breaks."""
    return next((rule for rule in rules if not rule.holds(value)), None)


def told(field: str, value: Field_contra, rule: FieldRule[Field_contra]) -> tuple[str, str]:
    """Return the validation of a field whose value breaks the rule."""
    return failed(field, rule.tag, value) if rule.says is None else (field, rule.says(value))


def first_fault(field: str, value: Field_contra, rules: Iterable[FieldRule[Field_contra]]) -> tuple[str, str] | None:
    """Return the first of `rules` that the value breaks, as a validation."""
    rule = first_broken(value, rules)
    return None if rule is None else told(field, value, rule)


def is_zero(value: object) -> bool:
    """Return whether a decoder that fills in absent values would confuse the value with an absent one."""
    return value.int == 0 if isinstance(value, UUID) else value in ("", None, 0, [], {})


def _display_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(str, value)) + "]"
    return "" if value is None else str(value)


def is_email(text: str) -> bool:
    """Return whether there is text before and after a single @, without blanks; the mail server is the real judge."""
    local, at, host = text.rpartition("@")
    return bool(at and local and host) and not any(c.isspace() for c in text) and "@" not in local and "." in host


def is_real_name(text: str) -> bool:
    return len(text) <= MAX_REAL_NAME and text == text.strip()


def is_group_name(text: str) -> bool:
    """Return whether `text` can name a group: like other names, but longer, since identity providers create them."""
    return len(text) <= MAX_GROUP_NAME and _GROUP_NAME.fullmatch(text) is not None and text not in RESERVED


def explain_base64(text: str) -> str:
    """Return why a text is not base64, in Go's words; empty when it is."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        encoded = _BASE64.match(text)
        return f"illegal base64 data at input byte {encoded.end() if encoded else 0}"
    return ""


def is_http_url(text: str) -> bool:
    if not text.isprintable() or " " in text:  # the library drops line ends, which a header would not
        return False
    parts = split_untrusted(text)
    return parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and not parts.fragment


def unless_empty(rule: FieldRule[Field_contra]) -> FieldRule[Field_contra]:
    """Return the rule for an optional field."""

    def examples() -> tuple[Values, Values]:
        inside, outside = rule.examples()
        return ("", *inside), tuple(value for value in outside if not is_zero(value))

    return FieldRule(rule.tag, lambda value: is_zero(value) or rule.holds(value), examples)


def one_of(*choices: str) -> FieldRule[str]:
    outside = f"{choices[0]}x", choices[0].upper()
    return FieldRule("oneof", lambda value: value in choices, lambda: (choices, outside))


ITSELF = "itself"
"""Value of a rule's message that repeats its text as the message."""


def explained(
    explain: Explain[Field_contra], inside: Values, outside: Values, message: str = "", *, listed: bool = True
) -> FieldRule[Field_contra]:
    """Return a rule with a text of its own: `explain` returns the fault of a value, or ""."""
    return FieldRule("", lambda value: not explain(value), lambda: (inside, outside), explain, message, listed)


def unless(holds: Callable[[Field_contra], bool], sentence: str) -> Explain[Field_contra]:
    """Return an `explain` with one text for every value that does not pass `holds`."""
    return lambda value: "" if holds(value) else sentence


def at_most(limit: int, sentence: str, size: Callable[[str], int] = len) -> FieldRule[str]:
    """Return the same for a text's size."""

    def examples() -> tuple[Values, Values]:
        return ("a" * limit,), ("a" * (limit + 1),)

    return FieldRule("", lambda text: size(text) <= limit, examples, lambda _: sentence)


def shorter_than(limit: int) -> FieldRule[str]:
    """Limit characters, not bytes."""

    def examples() -> tuple[Values, Values]:
        return ("a" * (limit - 1), "ü" * (limit - 1)), ("a" * limit, "ü" * limit)

    return FieldRule("lt", lambda text: len(text) < limit, examples)


def _named(tag: str, holds: Callable[[str], bool], longest: int, *bad: str) -> FieldRule[str]:
    def examples() -> tuple[Values, Values]:
        return ("a", "A-1", "a" * longest), ("a" * (longest + 1), "-a", "a--b", "a b", *bad)

    return FieldRule(tag, holds, examples)


def _titled(tag: str, holds: Callable[[str], bool], longest: int) -> FieldRule[str]:
    return FieldRule(tag, holds, lambda: (("", "a b", "ü" * longest), ("a" * (longest + 1), " a", "a ")))


REQUIRED: FieldRule[object] = FieldRule("required", lambda value: not is_zero(value), lambda: (("a",), ("",)))
REQUIRED_ID: FieldRule[object] = FieldRule(
    "required", lambda value: not is_zero(value), lambda: ((UUID(int=1),), (UUID(int=0),))
)
EMAIL = FieldRule("email", is_email, lambda: (("a@b.c",), ("a", "a@", "@b.c", "a b@c.d", "a@b@c.d", "a@b")))
HTTP_URL = FieldRule(
    "http_url",
    is_http_url,
    lambda: (("http://a", "https://a.b/c?d=e"), ("zzz", "ftp://a", "http://", "//a", "http://a/\r\nb")),
)
USERNAME = _named("username", is_name, MAX_NAME, "new", "create", "a_b", "")
WORKSPACE_NAME = _named("workspace_name", is_name, MAX_NAME, "new", "a_b", "")
TEMPLATE_NAME = _named("template_name", is_name, MAX_NAME, "new", "a_b", "")
ORGANIZATION_NAME = _named("organization_name", is_name, MAX_NAME, "new", "a_b")
GROUP_NAME = _named("group_name", is_group_name, MAX_GROUP_NAME, "new", "create", "a_b")
VERSION_NAME = _named("template_version_name", is_version_name, MAX_VERSION_NAME)
REAL_NAME = _titled("user_real_name", is_real_name, MAX_REAL_NAME)
TEMPLATE_TITLE = _titled("template_display_name", is_display_name, MAX_DISPLAY_NAME)
ORGANIZATION_TITLE = _titled("organization_display_name", is_display_name, MAX_DISPLAY_NAME)
GROUP_TITLE = _titled("group_display_name", is_display_name, MAX_DISPLAY_NAME)
APP_NAME = _named("oauth2_app_name", is_name, MAX_NAME, "new", "a_b")
DESCRIPTION = shorter_than(MAX_DESCRIPTION + 1)
VERSION_MESSAGE = shorter_than(MAX_VERSION_MESSAGE + 1)

Rules = Sequence[FieldRule[Field_contra]]
