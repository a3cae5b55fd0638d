"""The `q=` language of every list: `key:value` pairs, quotes around blanks, a bare term for the list's default key.

Source: docs/protocol/rest.md#lists and the recorded refusals. The language is not case-sensitive, but a reader can take
the values as typed (`terms.raw`). This module does not know the keys of a list: a reader takes its keys with the typed
getters of `Terms` and calls `refusals()` at the end, which also names the keys that were not taken.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from coder.domain.foundation.go_uuid import read_uuid

Value = TypeVar("Value")

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
MAX_QUERY = 8192
"""Ours: characters, for two hundred ids. The longest query an address can hold blocked the server for sixteen
milliseconds."""
_WILDCARDS = frozenset("%_\\")
MAX_PATTERN, MAX_PATTERNS = 256, 32
"""Ours: characters of a text with wildcards of LIKE, and texts of one key. The database compares each with
each row, and its effort grows with the product of both lengths."""
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Other letters keep their case: the database compares them, and its rule may not know them."""
_GO_TIME = "2006-01-02T15:04:05.999999999Z07:00"


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """Reason why a field of a request is not acceptable: the API's `validations` entry."""

    field: str
    detail: str


def parse_go_bool(text: str) -> bool | None:
    """Parse a boolean as Go's strconv.ParseBool; None for anything else."""
    return True if text in _TRUE else False if text in _FALSE else None


def split_outside_quotes(text: str, delimiter: str, *, keep_quotes: bool = False) -> list[str]:
    """Split at `delimiter` outside double quotes; drop empty pieces. An open quote extends to the end."""
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


def _is_long_pattern(text: str) -> bool:
    return len(text) > MAX_PATTERN and not _WILDCARDS.isdisjoint(text)


class Terms:
    """Parsed query. Getters record errors instead of raising, so that one response names every mistake."""

    def __init__(self, values: dict[str, list[str]], refusals: Iterable[FieldRefusal] = ()) -> None:
        self._values = values
        self._taken: set[str] = set()
        self._refusals = list(refusals)

    def add(self, key: str, value: str) -> None:
        """Add a value for `key`, as if it had been written `key:value`."""
        self._values.setdefault(key, []).append(value)

    def many(self, key: str) -> list[str]:
        """Return every value of a key that may be repeated."""
        self._taken.add(key)
        return self._values.get(key, [])

    def one(self, key: str) -> str:
        """Return the only value of a key. Empty when there is none, or more than one (which is recorded)."""
        values = self.many(key)
        if len(values) > 1:
            self.refuse(key, more_than_once(key, len(values)))
            return ""
        return values[0] if values else ""

    def pattern(self, key: str) -> str:
        """Return the only value of a key whose text may hold LIKE's wildcards; a long one with wildcards is refused."""
        value = self.one(key)
        if _is_long_pattern(value):
            self.refuse(key, f'Query param "{key}" with wildcards must not be longer than {MAX_PATTERN} characters')
            return ""
        return value

    def patterns(self, key: str, read: Callable[[str], Value]) -> list[Value]:
        """Return `list_of` for texts that may hold LIKE's wildcards: long ones, and many, are refused."""

        def bounded(text: str) -> Value:
            if _is_long_pattern(text):
                raise ValueError(f"text with wildcards must not be longer than {MAX_PATTERN} characters")
            return read(text)

        count = sum(value.count(",") + 1 for value in self.many(key))
        if count > MAX_PATTERNS:
            self.refuse(key, f'Query param "{key}" must not have more than {MAX_PATTERNS} values, found {count}')
            return []
        return self.list_of(key, bounded)

    def boolean(self, key: str) -> bool | None:
        """Return a boolean; None when the key is absent or not a boolean (which is recorded)."""
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
        """Return an RFC 3339 time; it has to be quoted, because it contains colons."""
        text = self.one(key).upper()
        if not text:
            return None
        value = parse_rfc3339(text)
        if value is None:
            self.refuse(
                key, f'Query param "{key}" must be a valid date format ({_GO_TIME}): {explain_time(text, _GO_TIME)}'
            )
        return value

    def uuid(self, key: str) -> UUID | None:
        text = self.one(key)
        if not text:
            return None
        try:
            return read_uuid(text)
        except ValueError:
            self.refuse(key, f'Query param "{key}" must be a valid uuid')
            return None

    def uuids(self, key: str) -> list[UUID]:
        """Return comma-separated ids."""
        return self.list_of(key, read_uuid)

    def int64(self, key: str) -> int | None:
        """Return an integer; None when the key is absent or not a whole number that a database can hold (which is
        recorded)."""
        text = self.one(key)
        fault = int_fault(text) if text else ""
        if fault:
            self.refuse(key, f'Query param "{key}" must be a valid 64-bit integer: {fault}')
        return None if fault or not text else int(text)

    def list_of(self, key: str, read: Callable[[str], Value]) -> list[Value]:
        """Return comma-separated values, each parsed by `read` (which raises ValueError); all errors share one
        refusal."""
        values = self.many(key)
        if not values or not values[0]:
            return []
        result, faults = read_list([part for value in values for part in value.split(",")], read)
        if faults:
            self.refuse(key, invalid_values(key, faults))
        return result

    def choices(self, key: str, allowed: Collection[str]) -> list[str]:
        """Return comma-separated words, each an item of `allowed`."""

        def read(text: str) -> str:
            if text not in allowed:
                raise ValueError(f'"{text}" is not a valid value')
            return text

        return self.list_of(key, read)

    def choice(self, key: str, allowed: Iterable[str]) -> str:
        """Return the value if it is an item of `allowed` (refused otherwise), or an empty string."""
        text = self.one(key)
        if text and text not in set(allowed):
            self.refuse(key, f'Query param "{key}" has invalid value: "{text}" is not a valid value')
            return ""
        return text

    def refuse(self, key: str, detail: str) -> None:
        self._refusals.append(FieldRefusal(key, detail))

    def refusals(self) -> list[FieldRefusal]:
        """Return all recorded errors, with every key that no getter took. Call it last."""
        unknown = [
            FieldRefusal(key, f'"{key}" is not a valid query param') for key in self._values if key not in self._taken
        ]
        return [*self._refusals, *unknown]


def parse_query(query: str, default_key: str, *, lower: bool = True) -> Terms:
    """Split a query into terms, unless it is too long. Adjacent bare words are one value of `default_key`."""
    if len(query) > MAX_QUERY:
        return Terms({}, [FieldRefusal("q", f"Query must not be longer than {MAX_QUERY} characters")])
    text = query.translate(_SMALL) if lower else query
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


_INT = re.compile(r"[+-]?[0-9]{1,30}")


def int_fault(text: str, bits: int = 64) -> str:
    """Return why Go's strconv.ParseInt refuses a text, in its words; empty when it accepts it."""
    if not _INT.fullmatch(text):
        return f'strconv.ParseInt: parsing "{text}": invalid syntax'
    if not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        return f'strconv.ParseInt: parsing "{text}": value out of range'
    return ""


def positive_fault(text: str) -> str:
    """Return the same for page parameters: whole numbers of 32 bits, 0 or more."""
    return int_fault(text, 32) or ("value is negative" if int(text) < 0 else "")


def read_list(parts: Iterable[str], read: Callable[[str], Value]) -> tuple[list[Value], list[str]]:
    """Return the values `read` parsed from each part, and the errors it raised (ValueError); with an error no value is
    kept."""
    results: list[Value] = []
    faults: list[str] = []
    for part in parts:
        try:
            results.append(read(part))
        except ValueError as error:
            faults.append(str(error))
    return ([] if faults else results), faults


def more_than_once(name: str, times: int) -> str:
    """Return the refusal text for a repeated parameter."""
    return (
        f'Query param "{name}" provided more than once, found {times} times. '
        "Only provide 1 instance of this query param."
    )


def invalid_values(name: str, faults: Iterable[str]) -> str:
    """Return the refusal text for a list parameter with invalid members."""
    return f'Query param "{name}" has invalid values: ' + "\n".join(faults)


def explain_time(text: str, layout: str = "2006-01-02T15:04:05Z07:00") -> str:
    """Return why a text is not an RFC 3339 time, or not a day, in Go's words: the first part of the layout that is
    missing."""
    at = text
    for element, expected in _TIME_PARTS if "T" in layout else _TIME_PARTS[:_DAY_PARTS]:
        match = re.match(element, at)
        if match is None:
            return f'parsing time "{text}" as "{layout}": cannot parse "{at}" as "{expected}"'
        bounds = _TIME_BOUNDS.get(expected)
        if bounds is not None and int(match[0][:2]) not in bounds[1]:
            return f'parsing time "{text}": {bounds[0]} out of range'
        at = at[match.end() :]
    problem = f'extra text: "{at}"' if at else "day out of range"
    return f'parsing time "{text}": {problem}'


_TIME_PARTS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d\d", "01"),
    ("-", "-"),
    (r"\d\d", "02"),
    ("T", "T"),
    (r"\d\d", "15"),
    (":", ":"),
    (r"\d\d", "04"),
    (":", ":"),
    (r"\d\d(?:\.\d+)?", "05"),
    (r"Z|[+-]\d\d:\d\d", "Z07:00"),
)
_DAY_PARTS = 5
_TIME_BOUNDS = {
    "01": ("month", range(1, 13)),
    "15": ("hour", range(24)),
    "04": ("minute", range(60)),
    "05": ("second", range(60)),
}
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def parse_rfc3339(text: str) -> datetime | None:
    """Parse a time as Go's RFC3339Nano layout does, truncated to microseconds. None if it is invalid."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        value = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
        return value.replace(microsecond=int((fraction or "0").ljust(6, "0")[:6])).astimezone(UTC)
    except (ValueError, OverflowError):  # no such day; or only in UTC before the year 1
        return None


def explain_rfc3339(text: str) -> str:
    """Return why a text is not a time, in Go's words; empty when it is."""
    return "" if parse_rfc3339(text) else explain_time(text)


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
