"""Rules for user secrets: names, and locations in a workspace.

Texts of upstream v2.34 where they were recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from coder.base.json_types import Json

MAX_VALUE = 32 << 10
"""Ours: bytes, above any key or certificate chain."""
FORMATS = ("env", "json", "yaml")
"""Formats of a file of secrets."""
MAX_IMPORTED = 256 << 10
"""Characters of such a file: the maximum number of imported secrets, of a usual size."""
NO_TARGET = (
    "An enabled secret must have at least one of env_name or file_path set. To keep a secret without injecting it, set "
    "enabled to false instead of clearing both targets."
)
_ENV = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED = frozenset(
    (
        "PATH HOME SHELL USER LOGNAME PWD OLDPWD LANG TERM IFS CDPATH ENV BASH_ENV ZDOTDIR TMPDIR TMP TEMP HOSTNAME "
        "SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY LD_PRELOAD LD_LIBRARY_PATH GIT_SSH_COMMAND"
    ).split()
)
"""Variables that login shells and the agent itself set."""


def explain_env_name(name: str) -> str:
    """Return why a name cannot be a secret's environment variable; empty when it can, or is empty."""
    if not name:
        return ""
    if not _ENV.fullmatch(name):
        return "must start with a letter or underscore, followed by letters, digits, or underscores"
    upper = name.upper()
    if upper in _RESERVED:
        return f"{upper} is a reserved environment variable name"
    if upper == "CODER" or upper.startswith("CODER_"):
        return "environment variables starting with CODER_ are reserved for internal use"
    return ""


def explain_file_path(path: str) -> str:
    """Return why a path cannot be a secret's file; empty when it can, or is empty."""
    if not path:
        return ""
    if not path.startswith(("~/", "/")):
        return "file path must start with ~/ or /"
    if "\0" in path or ".." in path.split("/"):
        return "file path must not contain .. or null bytes"
    return ""


def read_pairs(format_name: str, document: Json) -> Mapping[str, str] | str:
    """Return names and values of an imported file: parsed JSON or YAML, or the text of an env file.

    A text instead is the reason for refusal.
    """
    if format_name == "env":
        return _env_pairs(str(document))
    if not isinstance(document, dict):
        return "must be one object of names and values"
    pairs = {}
    for name, value in document.items():
        if isinstance(value, dict | list) or value is None:
            return f'"{name}" must have a plain value'
        pairs[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return pairs


def _env_pairs(text: str) -> Mapping[str, str] | str:
    pairs = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            return f"line {number}: expected NAME=value"
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        pairs[name.strip()] = value
    return pairs
