"""Why there is no program that can be used: for ever, or now."""

from __future__ import annotations

from coder.base.errors import CoderError, explain_error


class UpgradeRefusedError(CoderError):
    """A program whose bytes are those the server means, and which must never be used here."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_refused", message)


class UpgradeNotNowError(CoderError):
    """No program that can be used, for a reason that may pass."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_not_now", message)


def reason_of(error: BaseException) -> str:
    """One line for a log."""
    return explain_error(error).split("\n")[0]
