"""Query parameters, read with upstream's refusals; several mistakes are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

from quart import request

from coder.api.base.refusals import Invalid
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.foundation.search import (
    int_fault,
    invalid_values,
    more_than_once,
    parse_go_bool,
    positive_fault,
    read_list,
)

_MAX_HOURS = 14
"""Maximum offset from UTC on earth."""
SESSION_PARAMETER = "coder_session_token"


class Page(NamedTuple):
    """Requested part of a list; zeros mean the whole list."""

    after_id: UUID | None
    limit: int
    offset: int


class Query:
    """Query of the current request, or `arguments`. Getters record mistakes; `check` raises them."""

    def __init__(
        self,
        message: str = "Query parameters have invalid values.",
        arguments: Mapping[str, list[str]] | None = None,
    ) -> None:
        self._args: Mapping[str, list[str]] = request.args.to_dict(flat=False) if arguments is None else arguments
        self._message = message
        self._wrong: list[tuple[str, str]] = []
        self._known: frozenset[str] | None = None

    def text(self, name: str, default: str = "") -> str:
        """Return the first value unchanged: for searches, formats and other texts that may be repeated."""
        return self._args[name][0] if name in self._args else default

    def one(self, name: str) -> str:
        """Return the value of a parameter that may occur once. Empty when it is absent or repeated (which is
        recorded)."""
        values = self._args.get(name, [""])
        if len(values) > 1:
            self.refuse(name, more_than_once(name, len(values)))
            return ""
        return values[0]

    def positive(self, name: str) -> int:
        """Return a number; 0 when absent."""
        text = self.one(name)
        if not text:
            return 0
        fault = positive_fault(text)
        if fault:
            self.refuse(name, f'Query param "{name}" must be a valid 32-bit positive integer: {fault}')
        return 0 if fault else int(text)

    def hours(self, name: str) -> int:
        """Return an offset from UTC, 0 when absent. Raises Invalid immediately."""
        text = self.one(name)
        value = go_int(text or "0")
        if value is None:
            self.refuse(
                name,
                f'Query param "{name}" must be a valid integer: strconv.Atoi: parsing "{text}": invalid syntax',
            )
        elif abs(value) > _MAX_HOURS:
            self.refuse(name, f'Query param "{name}" must be a valid integer between -{_MAX_HOURS} and {_MAX_HOURS}')
        self.check()
        return value or 0

    def only(self, *names: str) -> None:
        """Make `check` refuse every parameter outside `names` and the session's, after other mistakes."""
        self._known = frozenset((*names, SESSION_PARAMETER))

    def boolean(self, name: str) -> bool:
        return self.text(name).lower() in {"1", "t", "true"}

    def flag(self, name: str) -> bool:
        """Return a boolean; other values are refused."""
        text = self.one(name)
        value = parse_go_bool(text) if text else False
        if value is None:
            fault = f'strconv.ParseBool: parsing "{text}": invalid syntax'
            self.refuse(name, f'Query param "{name}" must be a valid boolean: {fault}')
        return bool(value)

    def uuid(self, name: str) -> UUID | None:
        text = self.one(name)
        if not text:
            return None
        try:
            return read_uuid(text)
        except ValueError:
            self.refuse(name, f'Query param "{name}" must be a valid uuid')
            return None

    def uuids(self, name: str) -> list[UUID]:
        """Return ids, comma-separated or repeated."""
        result, faults = read_list(self.parts(name), read_uuid)
        if faults:
            self.refuse(name, invalid_values(name, faults))
        return result

    def parts(self, name: str) -> list[str]:
        """Return the words of a list, unchanged."""
        values = self._args.get(name, [""])
        return [part for value in values for part in value.split(",")] if values[0] else []

    def page(self) -> Page:
        """Return `after_id`, `limit` and `offset`; they are validated even where they have no effect."""
        return Page(self.uuid("after_id"), self.positive("limit"), self.positive("offset"))

    def require(self, name: str) -> str:
        text = self.one(name) if self.text(name) else ""
        if not self.text(name):
            self.refuse(name, f'Query param "{name}" is required and cannot be empty')
        return text

    def refuse(self, name: str, detail: str) -> None:
        if (name, detail) not in self._wrong:  # reading a value twice records its mistake once
            self._wrong.append((name, detail))

    def check(self) -> None:
        """Raise Invalid if a mistake was recorded."""
        strange = () if self._known is None else [name for name in self._args if name not in self._known]
        wrong = [*self._wrong, *((name, f'"{name}" is not a valid query param') for name in strange)]
        if wrong:
            raise Invalid(self._message, validations=wrong)


def go_int(text: str) -> int | None:
    """Parse a number as Go's strconv does: no blanks, no underscores, ASCII digits only. None for anything else."""
    return None if int_fault(text) else int(text)


def read_arguments(raw: bytes) -> dict[str, list[str]]:
    """Parse a query string as Quart does."""
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True) if raw else {}


def path_uuid(text: str) -> UUID:
    """Parse a UUID in a path. Raises Invalid as upstream does."""
    try:
        return read_uuid(text)
    except ValueError as error:
        raise Invalid(f'Invalid UUID "{text}".', str(error)) from error
