"""Texts as string literals of Terraform's language."""

from __future__ import annotations

import re

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'[\\"\x00-\x1f\x7f]|\$\{|%\{')
"""One pass: a second replacement would find the backslashes of the first, as in `C:\\bin`."""


def text_literal(text: str) -> str:
    """Return the literal of a text, in quotes. It is JSON too, unless the text has `${` or `%{`."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    part = match[0]
    if len(part) == 2:
        return part[0] + part
    return _ESCAPES.get(part) or f"\\u{ord(part):04x}"
