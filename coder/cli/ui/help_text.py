"""Help texts of commands and groups."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from datetime import timedelta

from coder.base.config import LIST_KINDS, Option
from coder.base.version import BUILD_VERSION
from coder.cli.core.command import Command
from coder.cli.core.options import Options
from coder.cli.core.parsing import format_value


def help_text(
    command: Command[Options], children: Sequence[tuple[str, str]] = (), aliases: Sequence[str] = (), width: int = 0
) -> str:
    """Return the help text: version, usage, aliases, examples, subcommands, options; wrapped to the terminal."""
    columns = width or _help_width()
    name = f"coder {command.words}".rstrip()
    lines = [
        f"coder {BUILD_VERSION}",
        "",
        "USAGE:",
        *_wrapped(f"{name} {'[flags] ' if command.options else ''}{command.usage}", 2, columns, hanging=4),
    ]
    lines += ["", *_wrapped(command.summary, 2, columns)] if command.summary else []
    lines += ["", f"  Aliases: {', '.join(aliases)}"] if aliases else []
    lines += [""] if command.long else []
    for row in command.long.splitlines():
        # An indented row is a command line and is not wrapped.
        lines += [f"  {row}"] if row.startswith(" ") or not row else _wrapped(row, 2, columns)
    for description, line in command.examples:
        lines += ["", *_wrapped(f"- {description}:", 2, columns), "", f"      $ {line}"]
    if children:
        longest = max(len(word) for word, _ in children)
        lines += ["", "SUBCOMMANDS:"]
        for word, text in children:
            first, *rest = _wrapped(text, longest + 8, columns) or [""]
            lines += [f"    {word.ljust(longest)}    {first.strip()}".rstrip(), *rest]
    visible = [option for option in command.options if not option.hidden and option.flag]
    groups: dict[str, list[Option]] = {}
    for option in visible:
        groups.setdefault(option.group, []).append(option)
    for group, members in groups.items():
        lines += ["", f"{group.upper()} OPTIONS:" if group else "OPTIONS:"]
        for option in members:
            lines += _option_lines(option, columns)
    lines += ["", "———", "Run `coder --help` for a list of global options."]
    return "\n".join(lines) + "\n"


def _help_width() -> int:
    """Return the terminal's columns, at most 100; 80 without a terminal."""
    try:
        return max(40, min(100, os.get_terminal_size(sys.stdout.fileno()).columns or 80))
    except (OSError, ValueError):
        return 80


def _wrapped(text: str, indent: int, columns: int, hanging: int = 0) -> list[str]:
    blank = " " * indent
    options = {"initial_indent": blank, "subsequent_indent": blank + " " * hanging, "break_on_hyphens": False}
    return textwrap.wrap(text, max(columns, indent + 20), break_long_words=False, **options)  # type: ignore[arg-type]


def _option_lines(option: Option, columns: int) -> list[str]:
    short = f"-{option.short}, " if option.short else "    "
    kind = "|".join(option.choices) if option.choices else option.kind
    kind = f"[{kind}]" if option.choices and option.kind in LIST_KINDS else kind
    env = f", ${option.env}" if option.env else ""
    default = option.default
    tail = f" (default: {format_value(default)})" if default not in ("", False, None, (), 0, timedelta()) else ""
    head = f"  {short}--{option.flag} {kind}{env}{tail}"
    return [*_wrapped_head(head, columns), *_wrapped(option.help, 10, columns), ""]


def _wrapped_head(head: str, columns: int) -> list[str]:
    """Wrap the line of a flag after blanks, and inside lists of choices or values."""
    lines = [""]
    for piece in re.split(r"(?<=[ |,])", head):
        if len((lines[-1] + piece).rstrip()) > columns and lines[-1].strip():
            lines.append(" " * 14)
        lines[-1] += piece
    return [line.rstrip() for line in lines]
