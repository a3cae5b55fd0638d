"""The password file of libpq: `host:port:database:user:password`, with * for any and \\ before a colon or backslash.

The driver reads it without removing the escapes, so that such passwords would be wrong.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path

from coder.base.log import get_logger

_log = get_logger("database")
_FIELD = re.compile(r"((?:\\.|[^\\:])*)(?::|$)")


def find_password(path: Path, hosts: Sequence[str], ports: Sequence[int], database: str, user: str) -> str | None:
    """Return the password of the first line that matches one of the hosts; None without one.

    A file that others may read is ignored, as by libpq.
    """
    try:
        if not path.is_file():
            return None
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            _log.warn("a password file is ignored, because others may read it; set its mode to 0600", path=str(path))
            return None
        lines = [_fields(line) for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        _log.warn("a password file cannot be read", path=str(path), error=error)
        return None
    for host, port in zip(hosts, ports, strict=True):
        known = ("localhost" if host.startswith("/") else host, str(port), database, user)
        for line in lines:
            if len(line) == 5 and all(field in {"*", value} for field, value in zip(line, known, strict=False)):
                return line[4]
    return None


def _fields(line: str) -> list[str]:
    fields, at = list[str](), 0
    while at <= len(line) and len(fields) < 5:
        match = _FIELD.match(line, at)
        if match is None:
            break
        fields.append(re.sub(r"\\(.)", r"\1", match[1]))
        if match.end() == len(line) and not match[0].endswith(":"):
            break
        at = match.end()
    return fields
