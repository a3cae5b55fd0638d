"""Errors of an upgrade: permanent or temporary."""

from __future__ import annotations

from coder.base.errors import CoderError, explain_error


class UpgradeRefusedError(CoderError):
    """The server's program has the announced bytes but must never be used here."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_refused", message)


class UpgradeNotNowError(CoderError):
    """No program can be used now, for a reason that may pass."""

    def __init__(self, message: str) -> None:
        super().__init__("upgrade_not_now", message)


def reason_of(error: BaseException) -> str:
    """Return one line for a log."""
    return explain_error(error).split("\n")[0]
