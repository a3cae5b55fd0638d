"""Values of the builder as expressions of Terraform's language. A value can never end its literal."""

from __future__ import annotations

import re

from coder.coderd.services.templates.builder.catalogue import BuilderVariable
from coder.domain.hcl.literals import text_literal

MAX_VALUE = 32 << 10
"""Characters of a value."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_LAST_PORT = 65535


def expression(variable: BuilderVariable, text: str, *, heredocs: bool) -> str:
    """Return a submitted value as Terraform. Raises ValueError with the reason, for the person who typed it.

    Without `heredocs` the value is a constant, as defaults of variables must be.
    """
    if len(text) > MAX_VALUE:
        raise ValueError(f"Must have at most {MAX_VALUE} characters.")
    if variable.type == "bool":
        return _bool(text)
    if variable.type == "number":
        return _number(variable.name, text)
    if "\x00" in text:
        raise ValueError("Must not contain a NUL character.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("Must be valid Unicode text.")
    return literal(text) if heredocs else text_literal(text)


def _bool(text: str) -> str:
    if text not in {"true", "false"}:
        raise ValueError("Must be true or false.")
    return text


def _number(name: str, text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError("Must be a number.")
    if name == "port" and not (text.isdecimal() and 1 <= int(text) <= _LAST_PORT):
        raise ValueError(f"Must be a port from 1 to {_LAST_PORT}.")
    return text


def literal(text: str) -> str:
    """Return a text as a literal: in quotes, or as a heredoc when it has several lines of printable characters."""
    lines = text.split("\n")
    if len(lines) == 1 or not all(line.replace("\t", " ").isprintable() for line in lines):
        return text_literal(text)
    mark = "EOT"
    while any(line.strip() == mark for line in lines):
        mark += "_"
    body = text.replace("${", "$${").replace("%{", "%%{")
    if text.endswith("\n"):
        return f"<<{mark}\n{body}{mark}"
    # A heredoc ends with a newline, which this text does not have.
    return f"chomp(<<{mark}\n{body}\n{mark}\n  )"
