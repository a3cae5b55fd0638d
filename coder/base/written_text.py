"""Text files that people and their shells write.

A door reads such a file with `read_written`: values, settings, secrets, tokens. PowerShell's `>` writes UTF-16 with a
byte order mark, and editors on Windows begin UTF-8 with one; neither mark is part of the text.
"""

from __future__ import annotations

import codecs
from pathlib import Path

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer marks first: UTF-32's begins with UTF-16's."""


def read_written(path: Path) -> str:
    """Return the text of a file without its byte order mark. Raises OSError, and UnicodeError for other encodings."""
    return decode_written(path.read_bytes())


def decode_written(data: bytes) -> str:
    """Return the text of a file's bytes, in the encoding that its mark names, or UTF-8, with line breaks as `\\n`.
    Raises UnicodeError."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8-sig")
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
