"""Markdown as plain text, for single-line displays such as descriptions of parameters.

Not a renderer: it removes common markup of descriptions and leaves everything else alone. No rule matches past the next
opening of its own kind: otherwise a text made of openings costs the square of its length.
"""

from __future__ import annotations

import re

_INSIDE = r"(?:[^()\s<>]|\([^()\s<>]*\))*"
"""Text of a link, with balanced parentheses."""
_PLACE = rf"\(<?({_INSIDE})>?(?:\s(?:[^()]|\([^()]*\))*)?\)"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^```.*$", re.MULTILINE), ""),
    (re.compile(r"!\[([^\[\]]*)\]" + _PLACE), r"\1"),
    (re.compile(r"\[([^\[\]]+)\]" + _PLACE), r"\1 (\2)"),
    # A bare address is a link without a text of its own.
    (re.compile(r"<(https?://[^<>\s]+)>|(?<![\w(/<\"'`])(https?://[^\s<>()`]*[^\s<>()`.,;:!?'\"*_~])"), r"(\1\2)"),
    (re.compile(r"^ {0,3}#{1,6}\s+", re.MULTILINE), ""),
    (re.compile(r"^ {0,3}>\s?", re.MULTILINE), ""),
    (re.compile(r"`([^`]+)`"), r"\1"),
    (re.compile(r"(\*\*|__)(?=\S)((?:(?!\1).)+)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
    (re.compile(r"~~(?=\S)((?:(?!~~).)+)(?<=\S)~~"), r"\1"),
    (re.compile(r"<[a-zA-Z/][^<>\n]*>"), ""),
)


def plain_text(markdown: str) -> str:
    """Turn `Where *it* [runs](https://…)` into `Where it runs (https://…)`."""
    text = markdown
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip()
