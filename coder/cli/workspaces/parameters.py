"""Flags for parameter values, and their parsing. `parameter_form.py` resolves the values of a build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core.command import Invocation
from coder.cli.core.value_text import read_values, value_text
from coder.cli.declarations.workspaces.parameters import ParameterOptions


def pairs(pieces: Sequence[str], flag: str) -> dict[str, str]:
    """Parse `name=value` texts. One flag can have several, separated by commas; lists keep their commas. Raise
    CoderError."""
    values = {}
    for line in _rejoined(pieces):
        name, equals, value = line.partition("=")
        if not equals:
            raise CoderError("parameter", f"--{flag} {quoted(line)} must have the form name=value")
        values[name] = value
    return values


def _rejoined(pieces: Sequence[str]) -> list[str]:
    """Rejoin texts that were split at commas inside quotes (CSV, upstream's format of lists) and JSON lists."""
    lines: list[str] = []
    for piece in pieces:
        if lines and _is_open(lines[-1]):
            lines[-1] += f",{piece}"
        else:
            lines.append(piece)
    return [
        line[1:-1].replace('""', '"') if line.startswith('"') and line.endswith('"') and len(line) > 1 else line
        for line in lines
    ]


def _is_open(line: str) -> bool:
    if line.startswith('"'):
        return line.count('"') % 2 == 1
    value = line.partition("=")[2]
    return value.startswith(("[", "{")) and not value.endswith(("]", "}"))


def requested_values(invocation: Invocation[ParameterOptions]) -> dict[str, str]:
    """Return the values of flags and the file; flags override the file."""
    values: dict[str, str] = {}
    path = invocation.options.rich_parameter_file
    if path:
        values |= values_of_file(Path(path))
    values |= pairs(invocation.options.build_option, "build-option")
    values |= pairs(invocation.options.ephemeral_parameter, "ephemeral-parameter")
    return values | pairs(invocation.options.parameter, "parameter")


class FileValue(str):
    """Value of a file. YAML's words for a bool, such as `yes`, get their meaning from the parameter's type."""

    __slots__ = ()


def values_of_file(path: Path) -> dict[str, FileValue]:
    """Read the values of a YAML file, one `name: value` per line: scalars as written, lists and maps as JSON. Raise
    CoderError, also for a name without a value."""
    values = {name: value_text(value) for name, value in read_values(path, "parameter").items()}
    empty = sorted(name for name, value in values.items() if value is None)
    if empty:
        names = ", ".join(quoted(name) for name in empty)
        raise CoderError("parameter", f"{path} has no value for {names}", 'Write "" for an empty text.')
    return {name: FileValue(value) for name, value in values.items() if value is not None}


_TRUE = frozenset({"true", "yes", "on", "y"})
_FALSE = frozenset({"false", "no", "off", "n"})


def bool_text(text: str) -> str:
    """Return YAML's words for true and false in the form of a bool parameter; other texts are unchanged."""
    word = text.lower()
    return "true" if word in _TRUE else "false" if word in _FALSE else text
