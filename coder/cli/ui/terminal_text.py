"""Filter for text on terminals: keeps text and colours, removes control sequences.

Names, descriptions and logs come from other users. On a terminal, an escape sequence in them could rewrite earlier
output, rename the window, or fill the clipboard (ECMA-48, and the terminals' own extensions). Files and pipes get every
byte unchanged. `coder ssh` bypasses this filter, because it is a terminal; so do prompts, which prompt_toolkit draws on
the underlying byte stream.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

_COMMANDS = re.compile(
    r"(\x1b\[[0-9;:]*m)"  # colours, which are kept: group 1
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # a control string (OSC, DCS, …) with its content, if it is terminated
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])(?:[^\n\x07\x1b\x90-\x9f]*(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u202a-\u202e\u2066-\u2069]"  # reverse the order of letters, so that a name reads as another
)
_RAW_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def cleaned(text: str, *, colours: bool = True) -> str:
    """Remove escape sequences, and control characters other than newline and tab.

    Keeps colours (SGR) unless `colours` is false.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _COMMANDS.sub(r"\1" if colours else "", text)


def one_line(text: str) -> str:
    """Return the text on one line and without colours."""
    return cleaned(text, colours=False).replace("\n", " ").replace("\t", " ")


def escaped(text: str) -> str:
    """Escape JSON text so that `cleaned` does not change its value. C0 control characters are already escaped in
    JSON."""
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class TerminalText(io.TextIOWrapper):
    """Standard stream that is a terminal."""

    def write(self, text: str, /) -> int:
        super().write(cleaned(text))
        return len(text)

    def command(self, sequence: str) -> None:
        """Write cursor movements unfiltered; never pass text of other users."""
        super().write(sequence)


def command(sequence: str) -> None:
    """Return the text as `cleaned` if standard output is a terminal, else unchanged."""
    stream = sys.stdout
    if isinstance(stream, TerminalText):
        stream.command(sequence)
    else:
        stream.write(sequence)


def filtered(stream: TextIO) -> TextIO:
    """Wrap a stream that is a terminal; return other streams unchanged. The underlying stream stays open."""
    if isinstance(stream, TerminalText):
        return stream
    stream.flush()
    return TerminalText(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
