"""What a provider has to say about a configuration: errors and warnings as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

Path = tuple[str | int, ...]
"""Attribute names and list positions from the resource's body inwards."""


class Severity(IntEnum):
    """Numbers of the plugin protocol."""

    ERROR = 1
    WARNING = 2


@dataclass(frozen=True, slots=True)
class Diagnostic:
    severity: Severity
    summary: str
    detail: str = ""
    path: Path = ()
    "Empty: the whole resource."

    def at(self, path: Path) -> Diagnostic:
        """The same words about another place."""
        return replace(self, path=path)


def error(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, detail, path)


def warning(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    return Diagnostic(Severity.WARNING, summary, detail, path)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(one.severity is Severity.ERROR for one in diagnostics)
