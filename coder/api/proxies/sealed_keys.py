"""Algorithms of sealed keys (`appproxy/apps/app_tickets.py`) that the processes of workspace proxies read.

Version 2.34.0 of this project reads `dir` only and has the original's version number. So a proxy of this project
announces in a header of its registration what it reads, and a server stores the answer with the process's version.
"""

from __future__ import annotations

from datetime import timedelta

REGISTRATION_AGE = timedelta(seconds=90)
"""Age of a registration after which a process counts as ended: it missed two registrations."""
HEADER, READ = "Coder-Sealed-Key-Algorithms", "A256GCMKW, dir"
"Header of a registration, and its value for this version."
_OWN_AGENT = "coder/"
"Beginning of this project's User-Agent; the original's proxy sends its HTTP library's."
_MARK = " A256GCMKW"
"Addition to the stored version of a process that reads wrapped keys. A server of version 2.34.0 stores none."


def process_version(version: str, user_agent: str, algorithms: str) -> str:
    """Return the version to store for a process that registers with these headers."""
    is_wrapped = "A256GCMKW" in algorithms or not user_agent.startswith(_OWN_AGENT)
    return version + _MARK if is_wrapped else version


def reads_wrapped_keys(stored_version: str) -> bool:
    """Return whether a process with that stored version reads A256GCMKW."""
    return stored_version.endswith(_MARK)
