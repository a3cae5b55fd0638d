"""Decoding of the server's answers as the API's types."""

from __future__ import annotations

from typing import Protocol, TypeVar

from coder.base.json_types import Json, as_list

T = TypeVar("T")


class Answer(Protocol):
    """Response of either HTTP client."""

    @property
    def body(self) -> bytes: ...

    def json(self) -> Json: ...


def read(answer: Answer, kind: type[T]) -> T:
    """Decode the body as `kind`: a struct of `coder.api`, or a list of them.

    Raise NetError if it is not JSON, and msgspec.ValidationError for another shape (the CLI reports the request:
    `coder/cli/core/failures.py`).
    """
    import msgspec

    from coder.api.base.answers import read_answer

    try:
        return read_answer(answer.body, kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer.json()  # raises an error with its own message
        raise


def read_rows(answer: Answer, kind: type[T]) -> list[tuple[T, Json]]:
    """Decode a list, each entry with its raw JSON, which `-o json` passes on unchanged. Raise as `read` does."""
    return list(zip(read(answer, list[kind]), as_list(answer.json()), strict=True))  # type: ignore[valid-type]
