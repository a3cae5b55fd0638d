"""String that is masked in logs, tracebacks and `repr`."""

from __future__ import annotations

from typing import Final


class Secret:
    """Secret text; `reveal` is the only access, so that every use can be searched for."""

    __slots__ = ("_value",)
    _value: Final[str]

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def equals(self, other: str) -> bool:
        """Compare in constant time."""
        import hmac

        return hmac.compare_digest(self._value.encode(), other.encode())

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__
