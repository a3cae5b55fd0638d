"""The one root error. Every failure a person may see is a `CoderError` with a code, a sentence and a next step."""

from __future__ import annotations


class CoderError(Exception):
    """A failure with a stable code.

    The message never repeats the cause's text: chain with `raise ... from ...`; `explain_error` prints the chain
    in one place.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


def explain_error(error: BaseException, *, with_hint: bool = True) -> str:
    """One line for people: the message, then its causes, then the hint."""
    parts = [_sentence(error)]
    cause = error.__cause__
    while cause is not None and len(parts) < 4:
        text = _sentence(cause)
        if text and text not in parts:
            parts.append(text)
        cause = cause.__cause__
    line = ": ".join(part for part in parts if part)
    hint = error.hint if isinstance(error, CoderError) and with_hint else ""
    return f"{line}\n{hint}" if hint else line


def _sentence(error: BaseException) -> str:
    if isinstance(error, CoderError):
        return error.message
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_sentence(inner) for inner in error.exceptions)
    text = str(error)
    return text or type(error).__name__
