"""Query parameters, read with upstream's refusals; several mistakes are answered together."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs
from uuid import UUID

from quart import request

from coder.coderd.services.foundation.errors import Invalid
from coder.domain.foundation.go_uuid import read_uuid
from coder.domain.foundation.search import int_fault, invalid_values, parse_go_bool, positive_fault, read_list

_MAX_HOURS = 14
"""No place on earth is farther from UTC."""
SESSION_PARAMETER = "coder_session_token"


class Query:
    """The current request's query, or `arguments`. Getters note mistakes; `check` raises them."""

    def __init__(
        self,
        message: str = "Query parameters have invalid values.",
        arguments: Mapping[str, list[str]] | None = None,
    ) -> None:
        self._args = request.args if arguments is None else {name: values[0] for name, values in arguments.items()}
        self._message = message
        self._wrong: list[tuple[str, str]] = []

    def text(self, name: str, default: str = "") -> str:
        return self._args.get(name, default)

    def positive(self, name: str) -> int:
        """0 when absent."""
        text = self.text(name)
        if not text:
            return 0
        fault = positive_fault(text)
        if fault:
            self.refuse(name, f'Query param "{name}" must be a valid 32-bit positive integer: {fault}')
        return 0 if fault else int(text)

    def hours(self, name: str) -> int:
        """An offset from UTC, 0 when absent. Raises Invalid at once."""
        text = self.text(name)
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
        """Notes every parameter that is none of `names` nor the session's."""
        for name in self._args:
            if name not in names and name != SESSION_PARAMETER:
                self.refuse(name, f'"{name}" is not a valid query param')

    def boolean(self, name: str) -> bool:
        return self.text(name).lower() in {"1", "t", "true"}

    def flag(self, name: str) -> bool:
        """The same; what is no boolean is refused."""
        text = self.text(name)
        value = parse_go_bool(text) if text else False
        if value is None:
            fault = f'strconv.ParseBool: parsing "{text}": invalid syntax'
            self.refuse(name, f'Query param "{name}" must be a valid boolean: {fault}')
        return bool(value)

    def uuid(self, name: str) -> UUID | None:
        text = self.text(name)
        if not text:
            return None
        try:
            return read_uuid(text)
        except ValueError:
            self.refuse(name, f'Query param "{name}" must be a valid uuid')
            return None

    def uuids(self, name: str) -> list[UUID]:
        """Comma-separated."""
        found, faults = read_list(self.text(name).split(",") if self.text(name) else [], read_uuid)
        if faults:
            self.refuse(name, invalid_values(name, faults))
        return found

    def require(self, name: str) -> str:
        text = self.text(name)
        if not text:
            self.refuse(name, f'Query param "{name}" is required and cannot be empty')
        return text

    def refuse(self, name: str, detail: str) -> None:
        self._wrong.append((name, detail))

    def check(self) -> None:
        """Raises Invalid when anything was wrong."""
        if self._wrong:
            raise Invalid(self._message, validations=self._wrong)


def go_int(text: str) -> int | None:
    """A number as Go's strconv reads it: no blanks, no underscores, digits of ASCII alone. None for anything else."""
    return None if int_fault(text) else int(text)


MAX_PARAMETERS = 1000
"Of an address, ours. Ten thousand fit into a head, and taking them apart keeps everybody waiting for ten milliseconds."

TOO_MANY_PARAMETERS = (
    b'{"message":"The address has too many parameters.","detail":"At most %d are read."}' % MAX_PARAMETERS
)
"What a client is told of it, with status 414."


def has_too_many(raw: bytes) -> bool:
    """Whether an address has more parameters than anybody means. `raw` may hold its path, too."""
    return raw.count(b"&") >= MAX_PARAMETERS


def read_arguments(raw: bytes) -> dict[str, list[str]]:
    """A query string, as Quart reads it."""
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True) if raw else {}


def path_uuid(text: str) -> UUID:
    """A UUID in a path. Raises Invalid as upstream does."""
    try:
        return read_uuid(text)
    except ValueError as error:
        raise Invalid(f'Invalid UUID "{text}".', str(error)) from error
