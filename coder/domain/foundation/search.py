"""The `q=` language of every list: `key:value` pairs, quotes around blanks, a bare term for the list's default key.

Source: docs/protocol/rest.md#lists and the recorded refusals. The language is not case-sensitive, except that a reader
may want its values as they were typed (`terms.raw`). Nothing here knows which keys a list has: a reader takes the keys
it knows with the typed getters of `Terms` and asks `refusals()` at the end, which also names the keys nobody took.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
MAX_QUERY = 8192
"Characters, ours: two hundred ids. What an address holds at most took sixteen milliseconds of everybody's time."
_GO_TIME = "2006-01-02T15:04:05.999999999Z07:00"


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """Why one field of a request is not acceptable: the API's `validations` entry."""

    field: str
    detail: str


def parse_go_bool(text: str) -> bool | None:
    """What Go's strconv.ParseBool accepts; None for anything else."""
    return True if text in _TRUE else False if text in _FALSE else None


def split_outside_quotes(text: str, delimiter: str, *, keep_quotes: bool = False) -> list[str]:
    """Cuts at `delimiter` where it stands outside double quotes; drops empty pieces. An open quote runs to the end."""
    pieces, piece, quoted = [], "", False
    for char in text:
        if char == '"':
            quoted = not quoted
            if keep_quotes:
                piece += char
        elif char == delimiter and not quoted:
            pieces.append(piece)
            piece = ""
        else:
            piece += char
    pieces.append(piece)
    return [piece for piece in pieces if piece]


class Terms:
    """A parsed query. Getters record what was wrong instead of raising, so that one answer names every mistake."""

    def __init__(self, values: dict[str, list[str]], refusals: Iterable[FieldRefusal] = ()) -> None:
        self._values = values
        self._taken: set[str] = set()
        self._refusals = list(refusals)

    def add(self, key: str, value: str) -> None:
        """Another value for `key`, as if it had been written `key:value`."""
        self._values.setdefault(key, []).append(value)

    def many(self, key: str) -> list[str]:
        """Every value of a key that may be repeated."""
        self._taken.add(key)
        return self._values.get(key, [])

    def one(self, key: str) -> str:
        """The only value of a key, or an empty string."""
        values = self.many(key)
        if len(values) > 1:
            self.refuse(
                key,
                f'Query param "{key}" provided more than once, found {len(values)} times. '
                "Only provide 1 instance of this query param.",
            )
        return values[0] if values else ""

    def boolean(self, key: str) -> bool | None:
        """None when the key is absent or not a boolean (which is recorded)."""
        text = self.one(key)
        if not text:
            return None
        value = parse_go_bool(text)
        if value is None:
            self.refuse(
                key,
                f'Query param "{key}" must be a valid boolean: strconv.ParseBool: parsing "{text}": invalid syntax',
            )
        return value

    def time(self, key: str) -> datetime | None:
        """An RFC 3339 time; it has to be quoted, because it contains colons."""
        text = self.one(key).upper()
        if not text:
            return None
        value = parse_rfc3339(text)
        if value is None:
            year = text[: len(text) - len(text.lstrip("0123456789"))]
            at = text if len(year) < 4 else text[4:]
            self.refuse(
                key,
                f'Query param "{key}" must be a valid date format ({_GO_TIME}): parsing time "{text}" as '
                f'"{_GO_TIME}": cannot parse "{at}" as "{"2006" if len(year) < 4 else "-"}"',
            )
        return value

    def uuid(self, key: str) -> UUID | None:
        text = self.one(key)
        return self._uuid(key, text) if text else None

    def uuids(self, key: str) -> list[UUID]:
        """Comma-separated ids."""
        found = [self._uuid(key, part) for value in self.many(key) for part in value.split(",") if part]
        return [value for value in found if value is not None]

    def choice(self, key: str, allowed: Iterable[str]) -> str:
        """The value if it is one of `allowed` (refused otherwise), or an empty string."""
        text = self.one(key)
        if text and text not in set(allowed):
            self.refuse(key, f'Query param "{key}" has invalid value: "{text}" is not a valid value')
            return ""
        return text

    def refuse(self, key: str, detail: str) -> None:
        self._refusals.append(FieldRefusal(key, detail))

    def refusals(self) -> list[FieldRefusal]:
        """Everything wrong so far, and every key that no getter asked for. Call it last."""
        unknown = [
            FieldRefusal(key, f'"{key}" is not a valid query param') for key in self._values if key not in self._taken
        ]
        return [*self._refusals, *unknown]

    def _uuid(self, key: str, text: str) -> UUID | None:
        try:
            return UUID(text)
        except ValueError:
            self.refuse(key, f'Query param "{key}" must be a valid uuid: {explain_bad_uuid(text)}')
            return None


def parse_query(query: str, default_key: str, *, lower: bool = True) -> Terms:
    """Cuts a query into terms, unless it is too long. Neighbouring bare words are one value of `default_key`."""
    if len(query) > MAX_QUERY:
        return Terms({}, [FieldRefusal("q", f"Query must not be longer than {MAX_QUERY} characters")])
    text = query.lower() if lower else query
    values: dict[str, list[str]] = {}
    for element in _join_bare_words(split_outside_quotes(text, " ", keep_quotes=True)):
        if element.startswith(":") or element.endswith(":"):
            return Terms({}, [FieldRefusal("q", f"Query element \"{element}\" cannot start or end with ':'")])
        parts = split_outside_quotes(element, ":")
        if len(parts) > 2:
            return Terms({}, [FieldRefusal("q", f"Query element \"{element}\" can only contain 1 ':'")])
        if len(parts) == 1:
            values.setdefault(default_key, []).append(parts[0])
        elif parts:
            values.setdefault(parts[0].lower(), []).append(parts[1])
    return Terms(values)


def explain_bad_uuid(text: str) -> str:
    """The words Go's uuid package uses."""
    return f"invalid UUID length: {len(text)}" if len(text) not in {32, 36, 38, 45} else "invalid UUID format"


_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def parse_rfc3339(text: str) -> datetime | None:
    """A time as Go's RFC3339Nano layout reads it; finer than a microsecond is cut off. None if it is not one."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        value = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
        return value.replace(microsecond=int((fraction or "0").ljust(6, "0")[:6])).astimezone(UTC)
    except (ValueError, OverflowError):  # no such day; or only in UTC before the year 1
        return None


def _join_bare_words(tokens: list[str]) -> list[str]:
    elements: list[str] = []
    open_word = False
    for token in tokens:
        bare = ":" not in token
        if bare and open_word:
            elements[-1] += f" {token}"
        else:
            elements.append(token)
        open_word = bare
    return elements
