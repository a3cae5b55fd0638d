"""Diagnostics of a provider: errors and warnings as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

Path = tuple[str | int, ...]
"""Attribute names and list positions from the resource's body inwards."""


class Severity(IntEnum):
    """Severity numbers of the plugin protocol."""

    ERROR = 1
    WARNING = 2


@dataclass(frozen=True, slots=True)
class Diagnostic:
    severity: Severity
    summary: str
    detail: str = ""
    path: Path = ()
    "Path of the attribute; empty for the whole resource."

    def at(self, path: Path) -> Diagnostic:
        """Return the same diagnostic with another path."""
        return replace(self, path=path)


def error(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, detail, path)


def warning(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    return Diagnostic(Severity.WARNING, summary, detail, path)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
