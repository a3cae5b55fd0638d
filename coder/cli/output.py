"""Output of commands: tables, JSON, prompts, relative times. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from coder.base.errors import CoderError
from coder.cli.advice.unanswered import unanswered
from coder.cli.command import Invocation

if TYPE_CHECKING:
    from msgspec import Struct, UnsetType

    Time = datetime | str | UnsetType | None

Row = Mapping[str, object]

_NO_CELLS = frozenset({"Mn", "Me", "Cf"})
"Unicode categories of combining marks and format characters, which have no width."


def print_json(value: Any) -> None:
    """Print a value as JSON; on a terminal, escape texts that would control it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if sys.stdout.isatty():
        from coder.cli.terminal_text import escaped

        text = escaped(text)
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a table with upper-case headers and two blanks between columns."""
    format_cell = _on_terminal if sys.stdout.isatty() else _cell
    table = [[column.upper() for column in columns]]
    table += [[format_cell(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(_width(line[index]) for line in table) for index in range(len(columns))]
    if sys.stdout.isatty():
        _print_fitting(columns, table, widths)
        return
    for line in table:
        cells = [text + " " * (width - _width(text)) for text, width in zip(line, widths, strict=True)]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _print_fitting(columns: Sequence[str], table: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Print a table for terminals: coloured and as wide as the terminal."""
    from coder.cli.colour import CELL_STYLES, paint

    room = _columns()
    widths = fit_widths(widths, [_width(column) for column in columns], room)
    if _excess(widths, room) > 0:  # headers wrap to several lines if that saves width
        widths = fit_widths(widths, [max(map(_width, column.split())) for column in columns], room)
    lines = [[(cell, "bold") for cell in line] for line in _wrapped_headers(table[0], widths)]
    lines += [[(cell, CELL_STYLES.get(cell, "")) for cell in line] for line in table[1:]]
    for line in lines:
        cells = []
        for (text, style), width in zip(line, widths, strict=True):
            text_cut = cut(text, width)
            cells.append(paint(text_cut, style) + " " * (width - _width(text_cut)))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def print_rows(invocation: Invocation, rows: Callable[[], Sequence[Row]], raw: Callable[[], Any]) -> None:
    """Print the rows of a list command, following `--output` and `--column`."""
    if invocation["output"] == "json":
        print_json(raw())
        return
    print_table(chosen_columns(invocation), rows())


def chosen_columns(invocation: Invocation) -> list[str]:
    """Return the column names as the rows have them."""
    return [column.lower() for column in invocation["column"]]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{value[key]}" for key in sorted(value)) + "]"
    return str(value)


def _on_terminal(value: object) -> str:
    """Return a cell as one line: a user's text must not look like another row, nor colour the next cells."""
    from coder.cli.terminal_text import one_line

    return one_line(_cell(value))


def fit_widths(widths: Sequence[int], minimums: Sequence[int], columns: int) -> list[int]:
    """Shrink the widths of columns to fit into `columns`: the widest first, none below `minimums`.

    The result is wider if that is impossible.
    """
    fitted = list(widths)
    excess = _excess(fitted, columns)
    while excess > 0:
        shrinkable = [index for index in range(len(fitted)) if fitted[index] > max(minimums[index], 5)]
        if not shrinkable:
            break
        fitted[max(shrinkable, key=lambda index: fitted[index])] -= 1
        excess -= 1
    return fitted


def _excess(widths: Sequence[int], columns: int) -> int:
    return sum(widths) + 2 * (len(widths) - 1) - columns


def _wrapped_headers(headers: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return the header lines: a header too long for its column wraps at words."""
    from textwrap import wrap

    cells = [wrap(header, width, break_long_words=False) for header, width in zip(headers, widths, strict=True)]
    return [[cell[line] if line < len(cell) else "" for cell in cells] for line in range(max(map(len, cells)))]


def _columns() -> int:
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 10_000
    except (OSError, ValueError):
        return 10_000


def cut(text: str, width: int) -> str:
    """Cut the text to at most `width` terminal cells, ending with an ellipsis if it is cut."""
    if text.isascii():
        return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
    used = end = 0
    for index, char in enumerate(text):
        used += _cells(char)
        if used > width:
            return f"{text[:end]}…"
        if used < width:
            end = index + 1
    return text


def _width(text: str) -> int:
    """Return the number of terminal cells of a text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    """Return a character's cells: 2 for wide East Asian characters and emoji, 0 for combining and invisible ones."""
    if char < "\u0300":
        return 1
    from unicodedata import category, east_asian_width

    return 0 if category(char) in _NO_CELLS else 2 if east_asian_width(char) in "WF" else 1


def say(text: str = "") -> None:
    """Print progress and notes to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def confirm(invocation: Invocation, question: str, *, default: bool = False) -> None:
    """Ask for confirmation, unless `--yes` is set. Raise CoderError `canceled` for no (or at end of input)."""
    if invocation.options.get("yes"):
        return
    sys.stdout.write(f"> {question} ({'YES/no' if default else 'yes/NO'}) ")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise unanswered(question, "--yes")
    answer = line.strip().lower()
    if answer in {"y", "yes"} or (not answer and default):
        return
    raise CoderError("canceled", "canceled")


def ask_until(question: str, check: Callable[[str], str], *, default: str = "") -> str:
    """Return a line that `check` accepts; at a terminal, print the error and prompt again.

    Raise CoderError at end of input, and for an invalid answer without a terminal.
    """
    while fault := check(answer := ask(question, default=default)):
        if not sys.stdin.isatty():
            raise CoderError("bad_answer", fault)
        say(f"  {fault}")
    return answer


def ask(question: str, *, default: str = "", secret: bool = False) -> str:
    """Prompt for one line. Raise CoderError at end of input."""
    prompt = f"> {question}" + (f" ({default})" if default else "") + " "
    if secret and sys.stdin.isatty():
        import getpass

        return getpass.getpass(prompt) or default
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise unanswered(question)
    return line.strip() or default


def parse_time(text: Time) -> datetime | None:
    """Return a time of the API as datetime, also from RFC 3339 text; None for absent or zero times."""
    if isinstance(text, datetime):
        return text if text.year > 1 else None
    if not text or text.startswith("0001-"):
        return None
    body = text[:-1] + "+00:00" if text.endswith("Z") else text
    head, dot, tail = body.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        body = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    return datetime.fromisoformat(body)


def fields_of(thing: Struct) -> dict[str, object]:
    """Return the set fields of an answer by their JSON names, for tables whose columns are fields."""
    from msgspec import UNSET
    from msgspec.structs import asdict

    fields = {name: api_time(value) if isinstance(value, datetime) else value for name, value in asdict(thing).items()}
    return {name: value for name, value in fields.items() if value is not UNSET}


def clock_time(text: Time) -> str:
    """Format a time of the API in the local zone: `Nov 21 08:34:38`; empty for none."""
    at = parse_time(text)
    return at.astimezone().strftime("%b %d %H:%M:%S") if at else ""


def api_time(at: datetime) -> str:
    """Format a time as the API does: RFC 3339 in UTC, with the fraction's significant digits."""
    seconds = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{seconds}.{at.microsecond:06}".rstrip("0") + "Z" if at.microsecond else f"{seconds}Z"


def go_time(text: Time) -> str:
    """Format a time as upstream's tables do: RFC 3339 to the second in UTC, empty for none."""
    at = parse_time(text)
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def short_duration(value: timedelta) -> str:
    """Format a duration in its two largest units: `15m`, `2h30m`, `3d4h`, `<1m`."""
    total = int(value.total_seconds())
    if total < 60:
        return "<1m"
    days, rest = divmod(total, 86400)
    hours, rest = divmod(rest, 3600)
    parts = [(days, "d"), (hours, "h"), (rest // 60, "m")]
    largest = [f"{number}{unit}" for number, unit in parts if number][:2]
    return "".join(largest)


def since(text: Time, now: datetime | None = None) -> str:
    at = parse_time(text)
    return short_duration((now or datetime.now(UTC)) - at) if at else ""
