"""Rows that failed, apart from rows that this machine cannot measure: only the first fail the run."""

from __future__ import annotations

from collections.abc import Mapping

_MARK = "failed: "


def reason(error: BaseException) -> str:
    """Return the reason to put into `skipped` for a row that failed."""
    return f"{_MARK}{type(error).__name__}: {error}"


def failed(skipped: Mapping[str, str]) -> list[str]:
    """Return the names of the rows that failed."""
    return [name for name, why in skipped.items() if why.startswith(_MARK)]
