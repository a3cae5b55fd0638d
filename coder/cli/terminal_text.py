"""What a terminal is shown: text and colours, and nothing that commands it.

Names, descriptions and logs are other people's words. On a terminal an escape sequence in them could rewrite what
stands above it, name the window, or fill the clipboard (ECMA-48, and the terminals' own extensions). Files and pipes
get every byte as it was. Does not live here: what `coder ssh` passes through, which is a terminal's own business, and
prompts, which prompt_toolkit draws on the bytes below.
"""

from __future__ import annotations

import io
import re
import sys
from typing import Any

_COMMANDS = re.compile(
    r"(\x1b\[[0-9;:]*m)"  # colours: kept, group 1
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])(?:[^\n\x07\x1b\x90-\x9f]*(?:\x07|\x1b\\|\x9c))?"  # what it says, if it ends
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u202a-\u202e\u2066-\u2069]"  # turn the order of letters round: a name reads as another
)
_RAW_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def cleaned(text: str, *, colours: bool = True) -> str:
    """The text without control characters other than newline and tab, and without escape sequences.

    Colours (SGR) stay, unless they are not wanted either.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _COMMANDS.sub(r"\1" if colours else "", text)


def one_line(text: str) -> str:
    """The text without colours either, and on one line."""
    return cleaned(text, colours=False).replace("\n", " ").replace("\t", " ")


def escaped(text: str) -> str:
    """JSON text of which `cleaned` takes nothing away, for the same value. Control characters below are escaped in it
    already."""
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class TerminalText(io.TextIOWrapper):
    """A standard stream that is a terminal."""

    def write(self, text: str, /) -> int:
        super().write(cleaned(text))
        return len(text)

    def command(self, sequence: str) -> None:
        """Writes what moves the cursor; never anything that somebody else wrote."""
        super().write(sequence)


def command(sequence: str) -> None:
    """The same on standard output, whatever it is."""
    stream = sys.stdout
    if isinstance(stream, TerminalText):
        stream.command(sequence)
    else:
        stream.write(sequence)


def guarded(stream: Any) -> Any:
    """The stream for words on a terminal; another file as it is. The one it was stays open below."""
    if isinstance(stream, TerminalText):
        return stream
    stream.flush()
    return TerminalText(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
