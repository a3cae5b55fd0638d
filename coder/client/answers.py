"""What a server answered, as the shape the API says it has."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Answer(Protocol):
    """Of either HTTP client."""

    @property
    def body(self) -> bytes: ...

    def json(self) -> Any: ...


def read(answer: Answer, kind: type[T]) -> T:
    """The body as `kind`: a struct of `coder.api`, or a list of them.

    Raises NetError when it is no JSON at all, msgspec.ValidationError when it is not of that shape (command lines tell
    which request was answered so: `coder/cli/failures.py`).
    """
    import msgspec

    from coder.api.base.answers import read_answer

    try:
        return read_answer(answer.body, kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer.json()  # says so in its own words
        raise


def read_rows(answer: Answer, kind: type[T]) -> list[tuple[T, Any]]:
    """A list, each entry beside what the server said: `-o json` passes that on as it came. Raises as `read`."""
    return list(zip(read(answer, list[kind]), answer.json() or (), strict=True))  # type: ignore[valid-type]
